"""What the tests of this directory share: configurations for `servers/rough.py`, and what it wrote down."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import psutil

from tests.spine.bridge import Bridge

ROUGH = Path(__file__).parent / "servers" / "rough.py"


def rough(name: str, mode: str = "plain", journal: Path | None = None, more: str = "") -> str:
    """A backend of that name in that mode, with more lines of configuration."""
    args = ["-I", "-S", str(ROUGH), mode, *([str(journal)] if journal else [])]
    return f"[backends.{name}]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(args)}\n{more}\n"


def noted(journal: Path) -> list[dict[str, Any]]:
    """What the servers wrote down."""
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []


def said(answer: dict[str, Any]) -> str:
    """The text of a result, that of a failure too."""
    return answer["result"]["content"][0]["text"]


def code(answer: dict[str, Any]) -> str | None:
    """The code of our own error in a result."""
    return answer["result"].get("_meta", {}).get("bridgehead/error", {}).get("code")


def tree(bridge: Bridge) -> list[psutil.Process]:
    """Everything that the bridge runs, directly or not."""
    return psutil.Process(bridge.process.pid).children(recursive=True)


def alive(pids: list[int]) -> list[int]:
    """Those of them that still run."""
    return [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]
