"""`bridgehead completion SHELL`: the script that teaches a shell to complete our command lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

_SCRIPTS = Path(__file__).parent.parent / "completions"
_FILES = {"bash": "bash.sh", "zsh": "zsh.sh", "fish": "fish.fish", "powershell": "powershell.ps1"}


def command(
    *,
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell"],
        typer.Argument(help="The shell: bash, zsh, fish or powershell.", metavar="SHELL"),
    ],
) -> None:
    """Print the script; its first line says where to load it."""
    sys.stdout.write((_SCRIPTS / _FILES[shell]).read_text(encoding="utf-8"))
