"""A program under test as it looks from outside: the CPU time and the memory of the processes that it consists of.

Knows nothing of what the program does.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

import psutil

BACKEND = "benchmarks.backend"
"""What the command line of the backend contains, by which it is told from what is measured."""
_STOP_S = 15


def backend_command(tools: int, port: int | None = None) -> list[str]:
    """The command of the backend, on standard input and output or on a port."""
    at = [] if port is None else ["--http", str(port)]
    return [sys.executable, "-m", BACKEND, "--tools", str(tools), *at]


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Program:
    """A process and those that it has started, backends left out unless the process is itself one."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
        """Start it, with these variables besides our own."""
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={**os.environ, **(environ or {})}
        )

    def cpu_s(self) -> float:
        """Seconds of CPU, user and system, that the living processes have used in all their threads."""
        return sum(_cpu_s(process) for process in self._processes())

    def rss_mb(self) -> float:
        """Resident memory in megabytes."""
        return sum(process.memory_info().rss for process in self._processes()) / 1_000_000

    def check(self) -> None:
        """Raise a RuntimeError if it has ended."""
        if (code := self._process.poll()) is not None:
            raise RuntimeError(f"a program under test ended with code {code}")

    def stop(self) -> None:
        """End it, and kill it where it does not end."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_S)
        self._process.kill()
        self._process.wait()

    def _processes(self) -> list[psutil.Process]:
        root = psutil.Process(self._process.pid)
        return [root, *(child for child in root.children(recursive=True) if BACKEND not in child.cmdline())]


def _cpu_s(process: psutil.Process) -> float:
    """What the process has used.

    On Linux from the clock that each process has (`clock_getcpuclockid(3)`), which counts nanoseconds. Elsewhere from what
    the system reports, which may count ticks of 10 ms.
    """
    if sys.platform == "linux":
        return time.clock_gettime(~process.pid << 3 | 2)
    times = process.cpu_times()
    return times.user + times.system
