"""Writes `docs/reference/conformance.md` from fresh runs: `python -m tests.conformance.write_page`."""

import tempfile
from pathlib import Path

from tests.conformance.report import render
from tests.conformance.runs import PAGE, run_everything


def main() -> None:
    """Run everything and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(render(run_everything(Path(folder))))


if __name__ == "__main__":
    main()
