"""The official suite against the fixture alone and through the bridge: nothing fails but what a backend cannot have."""

from pathlib import Path

import pytest

from tests.conformance.bridge_process import bridging
from tests.conformance.expectations import GENERATIONS, SPEC_VERSIONS, Generation, Leg, outdated, unexpected
from tests.conformance.report import Run, render
from tests.conformance.runs import PAGE, run_everything
from tests.conformance.suite import run_suite

LEAST_PASSED = {
    ("direct", "dual", "2025-11-25"): 84,
    ("direct", "dual", "2026-07-28"): 152,
    ("direct", "legacy", "2025-11-25"): 84,
    ("direct", "legacy", "2026-07-28"): 11,
    ("direct", "modern", "2025-11-25"): 30,
    ("direct", "modern", "2026-07-28"): 152,
    ("through the bridge", "dual", "2025-11-25"): 80,
    ("through the bridge", "dual", "2026-07-28"): 152,
    ("through the bridge", "legacy", "2025-11-25"): 80,
    ("through the bridge", "legacy", "2026-07-28"): 149,
    ("through the bridge", "modern", "2025-11-25"): 80,
    ("through the bridge", "modern", "2026-07-28"): 152,
}
"""Pinned, so that a run in which checks silently did not happen is no success."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """All runs, made once."""
    return run_everything(tmp_path_factory.mktemp("conformance"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("spec_version", SPEC_VERSIONS)
@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("leg", ["direct", "through the bridge"])
def test_nothing_fails_but_what_the_backend_cannot_have(
    runs: list[Run], leg: Leg, generation: Generation, spec_version: str
) -> None:
    (result,) = (
        run.result
        for run in runs
        if (run.leg, run.generation, run.result.spec_version) == (leg, generation, spec_version)
    )

    assert unexpected(leg, generation, result) == ()
    assert outdated(leg, generation, result) == ()
    assert result.passed >= LEAST_PASSED[leg, generation, spec_version]


def test_the_page_in_the_reference_says_what_these_runs_showed(runs: list[Run]) -> None:
    assert PAGE.read_text() == render(runs), "run `python -m tests.conformance.write_page`"


@pytest.mark.parametrize("spec_version", SPEC_VERSIONS)
def test_a_backend_over_standard_input_and_output_passes_as_well(tmp_path: Path, spec_version: str) -> None:
    with bridging("dual", "stdio", tmp_path) as url:
        result = run_suite(url, spec_version)

    assert unexpected("through the bridge", "dual", result) == ()
    assert result.passed >= LEAST_PASSED["through the bridge", "dual", spec_version]
