"""Every run of the official suite that is reported: the fixture alone, and the bridge in front of it."""

from pathlib import Path
from typing import Final

from tests.conformance.bridge_process import bridging
from tests.conformance.expectations import GENERATIONS, SPEC_VERSIONS, Generation, Leg
from tests.conformance.fixture_process import serving
from tests.conformance.report import Run
from tests.conformance.suite import run_suite

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "conformance.md"
TARGETS: Final[tuple[tuple[Leg, Generation], ...]] = (
    *(("direct", generation) for generation in GENERATIONS),
    *(("through the bridge", generation) for generation in GENERATIONS),
)


def run(leg: Leg, generation: Generation, spec_version: str, tmp_path: Path) -> Run:
    """Run the suite once."""
    if leg == "direct":
        with serving(generation) as url:
            return Run(leg, generation, run_suite(url, spec_version))
    with bridging(generation, "http", tmp_path) as url:
        return Run(leg, generation, run_suite(url, spec_version))


def run_everything(tmp_path: Path) -> list[Run]:
    """Run the suite against every target in both spec versions, a folder of its own for each."""
    runs: list[Run] = []
    for leg, generation in TARGETS:
        for spec_version in SPEC_VERSIONS:
            folder = tmp_path / f"{len(runs)}"
            folder.mkdir()
            runs.append(run(leg, generation, spec_version, folder))
    return runs
