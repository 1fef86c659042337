"""A bridge small enough to read: what the command line needs to see of one, over real HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOKEN = "t" * 43
BRIDGEHEAD = Path(sys.executable).with_name("bridgehead")


@dataclass
class TinyBridge:
    """What it answers, and what it was asked.

    Attributes:
        tools: Pages of `tools/list`.
        results: Tool results, or `error` objects with `http` for the status, by tool name.
        stream: Whether MCP answers come as an event stream.
    """

    url: str = ""
    tools: list[list[dict[str, Any]]] = field(default_factory=lambda: [[]])
    results: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    pages: dict[str, Any] = field(default_factory=dict[str, Any])
    stream: bool = False
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(
        default_factory=list[tuple[str, dict[str, str], dict[str, Any]]]
    )
    asked: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)

    def answer(self, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and JSON-RPC message for one MCP request."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": body["id"]}
        params = body["params"]
        if body["method"] == "tools/list":
            number = int(params.get("cursor", "0"))
            page: dict[str, Any] = {"resultType": "complete", "tools": self.tools[number]}
            if number + 1 < len(self.tools):
                page["nextCursor"] = str(number + 1)
            return 200, {**message, "result": page}
        if params["name"] == "hang":
            self.asked.set()
            self.let_go.wait(20)
        result = self.results[params["name"]]
        if "http" in result:
            return result["http"], {**message, "error": result["error"]}
        return 200, {**message, "result": result}


@dataclass
class CommandLine:
    """Runs the installed `bridgehead` in an environment of its own."""

    state_dir: Path

    def environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "SYSTEMROOT", "PYTHONPATH") if name in os.environ}
        return {**kept, "BRIDGEHEAD_STATE_DIR": str(self.state_dir), "PORT": "9"}

    def __call__(
        self, *arguments: str, stdin: str = "", extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BRIDGEHEAD, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**self.environ(), **(extra or {})},
        )
