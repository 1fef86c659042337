"""The bridge in front of a fixture server, as a process of its own."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

import httpx2

from tests.conformance.expectations import Generation
from tests.conformance.fixture_process import FIXTURE, serving

Transport: TypeAlias = Literal["http", "stdio"]
PROGRAM: Final = Path(__file__).with_name("open_bridge.py")
_START_S: Final = 60


@contextmanager
def bridging(generation: Generation, transport: Transport, tmp_path: Path) -> Generator[str]:
    """The URL of a bridge in front of a fixture server of that generation, whose names pass through."""
    if transport == "http":
        with serving(generation) as url, _bridge(f"url = {json.dumps(url)}", tmp_path) as bridged:
            yield bridged
        return
    args = [str(FIXTURE), "--stdio", "--generation", generation]
    with _bridge(f"command = {json.dumps(sys.executable)}\nargs = {json.dumps(args)}", tmp_path) as bridged:
        yield bridged


@contextmanager
def _bridge(backend: str, tmp_path: Path) -> Generator[str]:
    config = tmp_path / "bridgehead.toml"
    config.write_text(f'[backends.fixture]\nnamespace = "none"\n{backend}\n')
    state_dir, log = tmp_path / "state", tmp_path / "bridge.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), "0", str(state_dir), str(config)], stdout=output, stderr=output
        )
    try:
        url = _ready(state_dir / "address", process, log)
        yield f"{url}/mcp"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _ready(address: Path, process: subprocess.Popen[bytes], log: Path) -> str:
    """The bridge's address, once its backend is ready."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"The bridge ended: {log.read_text()}")
        if address.exists():
            url = address.read_text()
            if httpx2.get(f"{url}/health").json()["backends"]["ready"] == 1:
                return url
        time.sleep(0.05)
    raise RuntimeError(f"The bridge was not ready within {_START_S} s: {log.read_text()}")
