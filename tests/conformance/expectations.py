"""What a server of one generation cannot pass, named one by one, with the reason.

`direct` is the fixture alone; `through the bridge` is the bridge in front of it. Everything that is not named here must pass.
A scenario that is named as a whole fails at its first step, so that which of its checks fail says nothing.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tests.conformance.suite import SuiteResult

Generation: TypeAlias = Literal["dual", "legacy", "modern"]
Leg: TypeAlias = Literal["direct", "through the bridge"]

GENERATIONS: Final[tuple[Generation, ...]] = ("dual", "legacy", "modern")
SPEC_VERSIONS: Final = ("2025-11-25", "2026-07-28")


@dataclass(frozen=True)
class Expectation:
    """One scenario that fails, and why; `checks` names the checks that do, or is empty for the scenario as a whole."""

    scenario: str
    reason: str
    checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """One failed check that nothing expects; `message` is for people, and may name ports."""

    scenario: str
    check: str
    message: str


_NO_MODERN: Final = "the server refuses 2026-07-28, as every server written before that version does"
_NO_HANDSHAKE: Final = "the server refuses `initialize`, which 2026-07-28 removed"

_NEED_MODERN: Final = (
    "server-stateless",
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "sep-2164-resource-not-found",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
    "http-custom-header-server-validation",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
    "input-required-result-non-tool-request",
    "input-required-result-result-type",
    "input-required-result-unsupported-methods",
    "input-required-result-tampered-state",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
)

_NEED_HANDSHAKE: Final = (
    "server-initialize",
    "server-session-lifecycle",
    "logging-set-level",
    "ping",
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "json-schema-2020-12",
    "elicitation-sep1034-defaults",
    "server-sse-polling",
    "server-sse-multiple-streams",
    "elicitation-sep1330-enums",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "dns-rebinding-protection",
)

_EXPECTED: Final[dict[tuple[Leg, Generation, str], tuple[Expectation, ...]]] = {
    ("direct", "legacy", "2026-07-28"): tuple(Expectation(name, _NO_MODERN) for name in _NEED_MODERN),
    ("direct", "modern", "2025-11-25"): tuple(Expectation(name, _NO_HANDSHAKE) for name in _NEED_HANDSHAKE),
    ("through the bridge", "legacy", "2026-07-28"): (
        Expectation(
            "input-required-result-basic-elicitation",
            "the check wants the server's own key for the question, and a question that a legacy server pushes has none",
            ("sep-2322-elicitation-incomplete",),
        ),
    ),
}


def expected(leg: Leg, generation: Generation, spec_version: str) -> tuple[Expectation, ...]:
    """What such a run cannot pass."""
    return _EXPECTED.get((leg, generation, spec_version), ())


def unexpected(leg: Leg, generation: Generation, result: SuiteResult) -> tuple[Failure, ...]:
    """Every failed check that nothing expects."""
    known = {each.scenario: each.checks for each in expected(leg, generation, result.spec_version)}
    return tuple(
        Failure(scenario.name, check.id, check.message)
        for scenario in result.scenarios
        for check in scenario.failures
        if scenario.name not in known or (known[scenario.name] and check.id not in known[scenario.name])
    )


def outdated(leg: Leg, generation: Generation, result: SuiteResult) -> tuple[str, ...]:
    """Every scenario that is expected to fail and did not."""
    failed = {scenario.name for scenario in result.scenarios if scenario.failures}
    return tuple(
        each.scenario for each in expected(leg, generation, result.spec_version) if each.scenario not in failed
    )
