"""The runtimes that backends need: whether they are there, and which version. Only those that some backend needs are asked."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from bridgehead.config import ResolvedBackend, StdioLaunch, find_program, install_hint
from bridgehead.diagnosis.model import Finding, Level, Program

_RUNTIMES = frozenset(
    {"bun", "bunx", "deno", "docker", "node", "npm", "npx", "podman", "python", "python3", "uv", "uvx"}
)
_ALSO_NEEDS = {"npx": "node", "npm": "node", "uvx": "uv", "bunx": "bun"}
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
_PATIENCE_S = 10
_FIRST_LINE_BYTES = 256


def programs_needed(launches: Mapping[str, ResolvedBackend], environ: Mapping[str, str]) -> list[Program]:
    """Every runtime that one of these backends needs, in the order of the alphabet."""
    needed: dict[tuple[str, str], list[str]] = {}
    for name, resolved in launches.items():
        launch = resolved.launch
        if isinstance(launch, StdioLaunch):
            own = launch.env.get("PATH")
            path = own.reveal() if own is not None else environ.get("PATH", os.defpath)
            for program in _needs(launch, environ):
                needed.setdefault((program, path), []).append(name)
    return [_looked_up(program, path, tuple(backends)) for (program, path), backends in sorted(needed.items())]


def program_findings(programs: list[Program]) -> list[Finding]:
    """One finding a runtime."""
    return [
        Finding(
            Level.PROBLEM,
            f"program {program.name}",
            f"it is not on the PATH, and {_listed(program.needed_by)} it.",
            f"{install_hint(program.name)}, and start the bridge again.",
        )
        if program.path is None
        else Finding(
            Level.WELL,
            f"program {program.name}",
            f"{program.version or 'does not tell its version'} at {program.path}; {_listed(program.needed_by)} it.",
        )
        for program in programs
    ]


def interpreter_findings(launch: ResolvedBackend, environ: Mapping[str, str]) -> Iterator[Finding]:
    """A script whose interpreter is gone, as in an environment that was moved; the system calls that `no such file`."""
    if not isinstance(launch.launch, StdioLaunch):
        return
    program = find_program(launch.launch, environ)
    first = _interpreter(program) if program is not None else []
    if first and first[0].startswith("/") and not Path(first[0]).exists():
        yield Finding(
            Level.PROBLEM,
            f"backend {launch.name}",
            f"{program} is a script for {first[0]}, which does not exist.",
            "install the program again, where it is now.",
        )


def _needs(launch: StdioLaunch, environ: Mapping[str, str]) -> Iterator[str]:
    words = [launch.command, *launch.args]
    if Path(launch.command).name in _SHELLS and "-c" in launch.args:
        # A wrapper such as `sh -c "npx -y server"`: what it runs first is what is needed.
        try:
            words = shlex.split(launch.args[launch.args.index("-c") + 1])
        except (ValueError, IndexError):
            return
        words = [word for word in words if word != "exec"]
    first = _plain_name(words[0]) if words else ""
    if first in _RUNTIMES:
        # One by its whole path is either there or reported as missing with its backend.
        yield first
        if first in _ALSO_NEEDS:
            yield _ALSO_NEEDS[first]
        return
    program = find_program(launch, environ)
    line = _interpreter(program) if program is not None else []
    if line and Path(line[0]).name == "env":
        asked = [word for word in line[1:] if not word.startswith("-")]
        if asked and asked[0] in _RUNTIMES:
            yield asked[0]


def _plain_name(command: str) -> str:
    """`npx` of `npx` and `npx.cmd`; nothing of a path, which is looked at where it is."""
    if "/" in command or "\\" in command:
        return ""
    return command.lower().removesuffix(".exe").removesuffix(".cmd")


def _interpreter(program: Path) -> list[str]:
    """The words behind `#!` of a script, or nothing."""
    try:
        with program.open("rb") as file:
            line = file.readline(_FIRST_LINE_BYTES)
    except OSError:
        return []
    return line[2:].decode(errors="replace").split() if line.startswith(b"#!") else []


def _looked_up(program: str, path: str, needed_by: tuple[str, ...]) -> Program:
    found = shutil.which(program, path=path)
    return Program(program, found, _version(found) if found is not None else None, needed_by)


def _version(program: str) -> str | None:
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0][:100] if done.returncode == 0 and lines else None


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names)} {'needs' if len(names) == 1 else 'need'}"
