"""Real MCP servers from PyPI and npm, as a configuration of the bridge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
NODE_BIN = ROOT / ".node" / "bin"
PACKAGES = ROOT / ".node" / "node_modules" / ".bin"


def node_program(name: str) -> str:
    """The path of a program of a Node package."""
    return str(_installed(PACKAGES / name))


def node_path() -> str:
    """A PATH on which the locked Node is found before the machine's."""
    return f"{_installed(NODE_BIN / 'node').parent}:{os.environ['PATH']}"


def _installed(program: Path) -> Path:
    assert program.exists(), f"{program.name} is not installed; ./scripts/test installs it"
    return program


def git_repository(folder: Path) -> Path:
    """A repository with one commit."""
    folder.mkdir()
    (folder / "note.txt").write_text("hello\n")
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "The first note"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    return folder


def configuration(folder: Path) -> str:
    """All six servers, working in `folder`."""
    files, memory = folder / "files", folder / "memory.jsonl"
    files.mkdir()
    path = f"PATH = {json.dumps(node_path())}"
    return (
        f"[backends.time]\ncommand = {json.dumps(str(BIN / 'mcp-server-time'))}\n"
        f"[backends.git]\ncommand = {json.dumps(str(BIN / 'mcp-server-git'))}\n"
        f"[backends.fetch]\ncommand = {json.dumps(str(BIN / 'mcp-server-fetch'))}\n"
        "args = ['--ignore-robots-txt', '--allow-private-ips']\n"
        f"[backends.everything]\ncommand = {json.dumps(node_program('mcp-server-everything'))}\nenv = {{ {path} }}\n"
        f"[backends.filesystem]\ncommand = {json.dumps(node_program('mcp-server-filesystem'))}\n"
        f"args = [{json.dumps(str(files))}]\nenv = {{ {path} }}\n"
        f"[backends.memory]\ncommand = {json.dumps(node_program('mcp-server-memory'))}\n"
        f"env = {{ {path}, MEMORY_FILE_PATH = {json.dumps(str(memory))} }}\n"
    )
