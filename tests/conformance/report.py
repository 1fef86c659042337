"""The page `docs/reference/conformance.md`, made from runs of the official suite.

The same results give the same page: nothing in it depends on ports, times or how long a run took.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from tests.conformance.expectations import Expectation, Generation, Leg, expected, unexpected
from tests.conformance.suite import ScenarioResult, SuiteResult

_NOTHING: Final = "–"


@dataclass(frozen=True)
class Run:
    """One run of the suite, and what it was run against."""

    leg: Leg
    generation: Generation
    result: SuiteResult

    @property
    def target(self) -> str:
        """What was measured, in words."""
        return f"{self.leg}, {self.generation}"


def render(runs: Sequence[Run]) -> str:
    """The page, ending with a line break; runs keep their order, and one target and spec version should occur once."""
    return "\n\n".join(_parts(runs)) + "\n"


def _parts(runs: Sequence[Run]) -> Iterable[str]:
    spec_versions = sorted({run.result.spec_version for run in runs})
    suites = ", ".join(f"`{version}`" for version in sorted({run.result.suite_version for run in runs}))
    yield "# MCP conformance"
    yield (
        f"Results of the official suite, `@modelcontextprotocol/conformance` {suites}, with every scenario of each version of "
        "the specification. *Direct* is the fixture server of the tests alone; *through the bridge* is Bridgehead in front of "
        "it. A *legacy* server knows only the versions with a handshake, a *modern* one only 2026-07-28, a *dual* one both. "
        "Each cell says how many checks passed and how many failed."
    )
    yield "## Totals"
    yield _totals(runs, spec_versions)
    for spec_version in spec_versions:
        yield f"## Scenarios of {spec_version}"
        yield _scenarios([run for run in runs if run.result.spec_version == spec_version])
    yield "## What a server cannot have"
    yield from _exceptions(runs)
    yield "## Other failures"
    yield _other_failures(runs)


def _totals(runs: Sequence[Run], spec_versions: Sequence[str]) -> str:
    cells = {(run.target, run.result.spec_version): _total(run.result) for run in runs}
    targets = dict.fromkeys((run.leg, run.generation) for run in runs)
    rows = [
        [leg, generation, *(cells.get((f"{leg}, {generation}", version), _NOTHING) for version in spec_versions)]
        for leg, generation in targets
    ]
    return _table(["leg", "backend", *spec_versions], rows)


def _total(result: SuiteResult) -> str:
    warned = f" ({result.warned} warned)" if result.warned else ""
    return f"{result.passed} / {result.failed}{warned}"


def _scenarios(runs: Sequence[Run]) -> str:
    results = [{scenario.name: scenario for scenario in run.result.scenarios} for run in runs]
    names = dict.fromkeys(name for result in results for name in result)
    rows = [[f"`{name}`", *(_scenario(result.get(name)) for result in results)] for name in names]
    return _table(["scenario", *(run.target for run in runs)], rows)


def _scenario(scenario: ScenarioResult | None) -> str:
    if scenario is None:
        return _NOTHING
    counts = f"{scenario.passed} / {scenario.failed}"
    return f"**{counts}**" if scenario.failed else counts


def _exceptions(runs: Sequence[Run]) -> Iterable[str]:
    any_named = False
    for run in runs:
        named = expected(run.leg, run.generation, run.result.spec_version)
        if named:
            any_named = True
            yield f"### {run.target}, {run.result.spec_version}"
            yield "\n".join(_by_reason(named))
    if not any_named:
        yield "Nothing."


def _by_reason(named: Sequence[Expectation]) -> Iterable[str]:
    for reason, group in groupby(named, key=lambda each: each.reason):
        places = ", ".join(_place(each) for each in group)
        yield f"- {reason[0].upper()}{reason[1:]}: {places}."


def _place(each: Expectation) -> str:
    checks = ", ".join(f"`{check}`" for check in each.checks)
    return f"`{each.scenario}`" + (f" ({checks})" if checks else "")


def _other_failures(runs: Sequence[Run]) -> str:
    lines = [
        f"- {run.target}, {run.result.spec_version}: `{scenario}`, `{check}`"
        for run in runs
        for scenario, check in dict.fromkeys(
            (failure.scenario, failure.check) for failure in unexpected(run.leg, run.generation, run.result)
        )
    ]
    return "\n".join(lines) or "None."


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
