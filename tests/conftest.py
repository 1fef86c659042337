"""What every test may rely on."""

import os

import hypothesis
import pytest

# A machine under load is slow, not wrong; and what fails in CI has to fail again at a desk.
hypothesis.settings.register_profile("desk", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "desk")


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """The loop that the product runs on."""
    return "asyncio", {"use_uvloop": os.name != "nt"}
