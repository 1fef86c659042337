"""Whether the program of a backend is where its configuration says; nothing is started for that."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from bridgehead.config.placeholders import StdioLaunch

_BROUGHT_BY = {
    "bun": "Bun",
    "bunx": "Bun",
    "deno": "Deno",
    "docker": "Docker",
    "node": "Node.js",
    "npm": "Node.js",
    "npx": "Node.js",
    "podman": "Podman",
    "python": "Python",
    "python3": "Python",
    "uv": "uv",
    "uvx": "uv",
}


def install_hint(program: str) -> str:
    """What to install to have that program, as the beginning of a sentence."""
    brought_by = _BROUGHT_BY.get(program)
    return f"install {brought_by}" if brought_by is not None else "install it"


def find_program(launch: StdioLaunch, environ: Mapping[str, str]) -> Path | None:
    """The file that would be started, or None where there is none.

    A name without a slash is looked for on the PATH of the child: its own where `env` sets one, else the bridge's.
    """
    program = launch.command
    if os.sep in program:
        program = str((launch.cwd or Path.cwd()) / program)
    own = launch.env.get("PATH")
    found = shutil.which(program, path=own.reveal() if own is not None else environ.get("PATH", os.defpath))
    return Path(found) if found is not None else None


def lacking(
    launch: StdioLaunch, environ: Mapping[str, str], *, written: StdioLaunch | None = None
) -> tuple[str, str, str] | None:
    """What keeps the program from being started, as field, sentence and what to do; None where nothing does.

    What is looked for is the launch; what is shown is the launch as written, where it is given: without the values of secrets.
    """
    shown = written or launch
    if launch.cwd is not None and not launch.cwd.is_dir():
        kind = "is a file, not a directory" if launch.cwd.exists() else "does not exist"
        return "cwd", f"its working directory {shown.cwd} {kind}.", "create it, or correct `cwd`."
    if find_program(launch, environ) is None:
        if os.sep in launch.command and ((launch.cwd or Path.cwd()) / launch.command).is_file():
            sentence = f"the file `{shown.command}` may not be run (permission denied)."
            return "command", sentence, f"`chmod +x {shown.command}`, or correct `command`."
        place = "" if os.sep in launch.command else " on the PATH"
        return (
            "command",
            f"there is no program `{shown.command}`{place}.",
            (f"{install_hint(shown.command)}, or correct `command`."),
        )
    return None
