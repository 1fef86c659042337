"""The fixture server passes the official suite alone, so that whatever fails through the bridge is the bridge's doing."""

import pytest

from tests.conformance.expectations import GENERATIONS, SPEC_VERSIONS, Generation, outdated, unexpected
from tests.conformance.fixture_process import serving
from tests.conformance.suite import run_suite

LEAST_PASSED = {
    ("dual", "2025-11-25"): 84,
    ("dual", "2026-07-28"): 152,
    ("legacy", "2025-11-25"): 84,
    ("legacy", "2026-07-28"): 11,
    ("modern", "2025-11-25"): 30,
    ("modern", "2026-07-28"): 152,
}


@pytest.mark.parametrize("spec_version", SPEC_VERSIONS)
@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_fixture_fails_only_what_its_generation_cannot_have(generation: Generation, spec_version: str) -> None:
    with serving(generation) as url:
        result = run_suite(url, spec_version)

    assert unexpected("direct", generation, result) == ()
    assert outdated("direct", generation, result) == ()
    assert result.passed >= LEAST_PASSED[generation, spec_version]
