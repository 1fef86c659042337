"""A real bridge in a process of its own, and plain HTTP to it, for tests that look at it from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

SERVERS = Path(__file__).parent / "servers"
BIN = Path(sys.executable).parent
MODERN = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def plain(mode: str = "plain", journal: Path | None = None) -> str:
    """The `command` and `args` lines of a configuration for `servers/plain.py`."""
    args = [str(SERVERS / "plain.py"), mode, *([str(journal)] if journal else [])]
    return f"command = {json.dumps(sys.executable)}\nargs = {json.dumps(args)}\n"


@dataclass(frozen=True)
class Bridge:
    """A running bridge."""

    url: str
    token: str
    process: subprocess.Popen[bytes]
    state_dir: Path
    log: Path

    @property
    def auth(self) -> dict[str, str]:
        """The header that lets the local owner in."""
        return {"Authorization": f"Bearer {self.token}"}

    def get(self, path: str, **headers: str) -> httpx2.Response:
        """GET with the token."""
        return httpx2.get(self.url + path, headers={**self.auth, **headers}, timeout=10)

    def modern(
        self, method: str, params: Mapping[str, Any] | None = None, *, group: str = "", timeout_s: float = 30
    ) -> httpx2.Response:
        """One request of the 2026-07-28 generation."""
        sent = dict(params or {})
        headers = {
            **self.auth,
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method,
        }
        name = sent.get("name") or sent.get("uri")
        if name is not None:
            headers["Mcp-Name"] = str(name)
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**sent, "_meta": _META}}
        return httpx2.post(f"{self.url}/mcp{group}", json=body, headers=headers, timeout=timeout_s)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, *, group: str = "") -> dict[str, Any]:
        """Call a tool; the JSON-RPC message that answers."""
        response = self.modern("tools/call", {"name": name, "arguments": dict(arguments or {})}, group=group)
        if response.headers["content-type"].startswith("text/event-stream"):
            return json.loads([line[6:] for line in response.text.splitlines() if line.startswith("data: ")][-1])
        return response.json()

    def tools(self, group: str = "") -> list[str]:
        """The names of all tools."""
        return [tool["name"] for tool in self.modern("tools/list", group=group).json()["result"]["tools"]]

    def health(self) -> dict[str, Any]:
        """What /health says."""
        return httpx2.get(f"{self.url}/health", timeout=10).json()

    def backend(self, name: str) -> dict[str, Any]:
        """What /health says of one backend."""
        return next(item for item in self.health()["backends"]["list"] if item["name"] == name)

    def wait_ready(self, *names: str, within_s: float = 60) -> None:
        """Return once these backends are ready."""
        for name in names:
            wait_until(lambda name=name: self.backend(name)["state"] == "ready", within_s=within_s)


def wait_until(condition: Any, *, within_s: float = 20) -> None:
    """Poll until the condition holds; fail after the time."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


@contextmanager
def running_bridge(
    tmp_path: Path,
    config: str | None,
    *,
    environ: Mapping[str, str] | None = None,
    expect_exit: bool = False,
    port: int = 0,
) -> Generator[Bridge]:
    """A bridge with this configuration, or with what it finds in `tmp_path`; ended with SIGTERM, which has to work."""
    file = tmp_path / "bridgehead.toml"
    if config is not None:
        file.write_text(config)
    state_dir, log = tmp_path / "state", tmp_path / "bridge.log"
    command = [
        str(BIN / "bridgehead"),
        "serve",
        *(["--config", str(file)] if config is not None else []),
        "--port",
        str(port),
        "--state-dir",
        str(state_dir),
    ]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(environ or {})},
            cwd=tmp_path if config is None else None,
        )
    try:
        address = state_dir / "address"
        wait_until(lambda: address.exists() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        url, token = address.read_text().strip(), (state_dir / "local-token").read_text().strip()
        yield Bridge(url, token, process, state_dir, log)
        assert expect_exit or process.poll() is None, log.read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert code == 0, log.read_text()
