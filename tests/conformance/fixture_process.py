"""The fixture server as a process of its own, on a free port of the loopback interface."""

import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.conformance.expectations import Generation

FIXTURE: Final = Path(__file__).with_name("fixture_server.py")
"""Start it with `--stdio` for a server on standard input and output."""

_START_S: Final = 60
_STOP_S: Final = 10
_POLL_S: Final = 0.05


@contextmanager
def serving(generation: Generation) -> Generator[str]:
    """The URL of a fixture server that serves `generation`, until the block ends.

    Raises:
        RuntimeError: The server did not come up.
    """
    port = _free_port()
    command = [sys.executable, str(FIXTURE), "--port", str(port), "--generation", generation]
    with subprocess.Popen(command) as process:
        try:
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"The fixture server ended with exit code {process.returncode}.")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(_POLL_S)
    raise RuntimeError(f"The fixture server did not listen within {_START_S} s.")
