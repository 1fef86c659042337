"""The command line inside the test's own process, which spares each command a second of imports."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from subprocess import CompletedProcess

import pytest

from bridgehead.cli import root


@dataclass
class Inside:
    """Runs `bridgehead` as its script does; standard input is no terminal, and the environment is what the test says."""

    monkeypatch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]
    environ: Mapping[str, str]

    def __call__(
        self, *arguments: str, stdin: str = "", extra: Mapping[str, str] | None = None
    ) -> CompletedProcess[str]:
        with self.monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            for name, value in {**self.environ, **(extra or {})}.items():
                patch.setenv(name, value)
            code = root.run(list(arguments))
        shown, told = self.capture.readouterr()
        return CompletedProcess(list(arguments), code, shown, told)
