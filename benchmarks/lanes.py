"""The programs that are measured, each a process tree whose CPU time and memory are read from outside."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.load import Generation

GENERATIONS: tuple[Generation, ...] = ("2025-11-25", "2026-07-28")
_BACKEND = "benchmarks.backend"
_START_S = 30


def backend_command(tools: int, port: int | None = None) -> list[str]:
    """The command of the backend, on standard input and output or on a port."""
    at = [] if port is None else ["--http", str(port)]
    return [sys.executable, "-m", _BACKEND, "--tools", str(tools), *at]


@dataclass
class Lane:
    """One way from the load to the backend.

    Attributes:
        name: As it stands in the report.
        url: Where calls go.
        token: The bearer, for the bridge.
        prefix: What the tool names begin with.
        process: The gateway, or the backend itself where there is no gateway.
    """

    name: str
    url: str
    process: subprocess.Popen[bytes]
    token: str | None = None
    prefix: str = ""
    cold_s: dict[str, float] = field(default_factory=dict[str, float])
    idle_mb: float = 0.0

    def cpu_s(self) -> float:
        """Seconds of CPU that the gateway has used, its children included and the backend left out.

        For the lane without a gateway, the backend's own.
        """
        return sum(sum(process.cpu_times()[:2]) for process in self._measured())

    def rss_mb(self) -> float:
        """Resident memory of the same processes, in megabytes."""
        return sum(process.memory_info().rss for process in self._measured()) / 1_000_000

    def _measured(self) -> list[psutil.Process]:
        root = psutil.Process(self.process.pid)
        return [root, *(child for child in root.children(recursive=True) if _BACKEND not in " ".join(child.cmdline()))]

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return once something listens on the port."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"a program under test ended with code {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise RuntimeError("a program under test did not listen in time")


def start_plain(name: str, command: list[str], port: int) -> Lane:
    """Start the backend alone, or a floor."""
    process = subprocess.Popen(command)
    wait_for(port, process)
    return Lane(name, f"http://127.0.0.1:{port}/mcp", process)


def start_bridge(folder: Path, tools: int, backend_port: int) -> tuple[Lane, Lane]:
    """Start the bridge with the backend over a pipe and over HTTP; the two lanes through it.

    Its cold start is taken twice: with an empty state directory, and with what it has kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config, state_dir, port = folder / "bridgehead.toml", folder / "state", free_port()
    command = backend_command(tools)
    config.write_text(
        f"[backends.pipe]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n"
        f"cwd = {json.dumps(str(Path.cwd()))}\n"
        f'[backends.http]\nurl = "http://127.0.0.1:{backend_port}/mcp"\n'
    )
    serve = [str(Path(sys.executable).parent / "bridgehead"), "serve", "--config", str(config)]
    serve += ["--port", str(port), "--state-dir", str(state_dir)]
    cold: dict[str, float] = {}
    for start in ("fresh", "kept"):
        began = time.perf_counter()
        environ = {**os.environ, "BRIDGEHEAD_LOG_LEVEL": "warning"}
        process = subprocess.Popen(serve, stdout=subprocess.DEVNULL, env=environ)
        wait_for(port, process)
        token = (state_dir / "local-token").read_text().strip()
        _wait_listed(port, token, 2 * (tools + 2))
        cold[start] = time.perf_counter() - began
        if start == "fresh":
            process.terminate()
            process.wait(15)
    url = f"http://127.0.0.1:{port}/mcp"
    lanes = tuple(Lane(f"bridgehead, {via}", url, process, token, f"{via}__", cold) for via in ("pipe", "http"))
    time.sleep(1)
    for lane in lanes:
        lane.idle_mb = lane.rss_mb()
    return lanes[0], lanes[1]


def _wait_listed(port: int, token: str, tools: int) -> None:
    """Return once the bridge lists that many tools of its backends."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if _listed(port, token) >= tools:
            return
        time.sleep(0.01)
    raise RuntimeError("the bridge did not list its tools in time")


def _listed(port: int, token: str) -> int:
    """How many tools the bridge lists now, its own left out."""
    meta = (
        '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        '"io.modelcontextprotocol/clientCapabilities":{}}'
    )
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}'
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        f"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall((head + body).encode())
        answer = b""
        while part := connection.recv(1 << 20):
            answer += part
    return answer.count(b'"name":"pipe__') + answer.count(b'"name":"http__')
