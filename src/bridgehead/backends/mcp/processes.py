"""Server processes: started, watched, and ended with everything that they started.

A child gets a session and process group of its own, a minimal environment, and a mark in it. It is ended by closing its input,
then SIGTERM, then SIGKILL, each to all its kin, and every wait is bounded. Should the bridge itself be killed, the system
kills the children (Linux, with `setpriv`), their input ends, and the next bridge sweeps up what is left by its records.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
import anyio.abc
import anyio.to_thread
import structlog

from bridgehead.backends.mcp.kin import KNOWS_KIN, MARK_VARIABLE, Seen, boot, ended_strays, kin_of, started_at
from bridgehead.backends.mcp.records import Record, keep, kept, owner
from bridgehead.config import StdioLaunch
from bridgehead.core.errors import BackendUnavailable

BASE_ENVIRONMENT = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMROOT",
    "TEMP",
    "USERPROFILE",
)
"""What every child gets of the bridge's environment; anything else has to be named in its configuration."""

DEPTH_VARIABLE = "BRIDGEHEAD_DEPTH"
"""How many bridges a process runs under; set for children, so that a bridge knows that it is one."""

STDERR_LINES = 20
_EXIT_GRACE_S = 2.0
_REST_GRACE_S = 0.5
_POLL_S = 0.02
_KILL_ROUNDS = 10
_REAP_EVERY_S = 5.0
_PR_SET_CHILD_SUBREAPER = 36
_TERM = signal.SIGTERM
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Child:
    """A running server process."""

    name: str
    process: anyio.abc.Process
    mark: str = ""
    """What it and all that it starts have in their environment."""
    record: Path | None = None
    """The file in which it is on record."""
    stderr: deque[str] = field(default_factory=lambda: deque[str](maxlen=STDERR_LINES))
    skipped_lines: int = 0
    silent: anyio.Event = field(default_factory=anyio.Event)
    """Set when standard output has ended: nothing more will come."""
    hushed: anyio.Event = field(default_factory=anyio.Event)
    """Set when standard error has ended too: its last words are known."""
    ended_by_us: bool = False
    """Whether it still ran when the bridge began to end it, so that how it ended says nothing of it."""

    @property
    def exit_cause(self) -> str | None:
        """How it ended, in a few words, or None while it runs."""
        code = self.process.returncode
        if code is None or self.ended_by_us:
            return None
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"exited with code {code}"


class Processes:
    """All children of this bridge."""

    def __init__(self, records: Path | None = None) -> None:
        """Have no children yet.

        Args:
            records: The directory for the records; None keeps none and sweeps nothing.
        """
        self._records = records
        self._run = secrets.token_hex(8)
        self._count = 0
        self._running: dict[int, Child] = {}
        self._swept = anyio.Event()
        if records is None:
            self._swept.set()

    async def run_forever(self) -> None:
        """End what an earlier bridge left behind, then take note of the ends of what nobody else waits for."""
        try:
            await self._sweep()
        finally:
            self._swept.set()
        while True:
            await anyio.sleep(_REAP_EVERY_S)
            self._reap()

    async def start(self, name: str, launch: StdioLaunch, environ: Mapping[str, str]) -> Child:
        """Start a server.

        Raises:
            BackendUnavailable: The command cannot be started.
        """
        await self._swept.wait()
        self._count += 1
        mark = f"{self._run}.{self._count}"
        env = {key: environ[key] for key in BASE_ENVIRONMENT if key in environ}
        env |= {key: secret.reveal() for key, secret in launch.env.items()}
        env |= {DEPTH_VARIABLE: str(int(environ.get(DEPTH_VARIABLE, "0")) + 1), MARK_VARIABLE: mark}
        try:
            _find(launch, env)
            command = [*await anyio.to_thread.run_sync(_dies_with_us), launch.command, *launch.args]
            # Not to be interrupted: a process that was started and is not known would be nobody's to end.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    command, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=launch.cwd, env=env, start_new_session=True
                )
                child = Child(name, process, mark)
                self._running[process.pid] = child
                child.record = await anyio.to_thread.run_sync(self._keep, name, process.pid, mark)
                return child
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise BackendUnavailable(
                f"The command {launch.command!r} of backend {name} cannot be started: {reason}.",
                hint="check `command`, `args` and `cwd`, and that the program is on the PATH of the bridge.",
            ) from error
        raise AssertionError("a scope that nobody cancels was cancelled")

    async def end(self, child: Child) -> None:
        """End a child and all its kin: close its input, wait, SIGTERM, wait, SIGKILL. Every wait is bounded."""
        process = child.process
        if process.stdin is not None:
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await process.stdin.aclose()
        if not await exited(process, _EXIT_GRACE_S):
            await _signal_kin(child, _TERM)
            await exited(process, _EXIT_GRACE_S)
        # The leader may be gone while what it started is not.
        await self._end_rest(child)
        await exited(process, _EXIT_GRACE_S)
        with anyio.move_on_after(_EXIT_GRACE_S):
            await process.aclose()
        self._running.pop(process.pid, None)
        if child.record is not None:
            with suppress(OSError):
                await anyio.Path(child.record).unlink()
        self._reap()

    async def _end_rest(self, child: Child) -> None:
        if child.process.returncode is not None and await _signal_kin(child, _TERM):
            with anyio.move_on_after(_REST_GRACE_S):
                while await _kin(child):  # noqa: ASYNC110 – nobody is told of the end of others' children
                    await anyio.sleep(_POLL_S)
        for _ in range(_KILL_ROUNDS):
            # Again and again, since what is about to be killed may just be starting another.
            if not await _signal_kin(child, _KILL):
                return
            self._reap()
            await anyio.sleep(_POLL_S)

    def _keep(self, name: str, pid: int, mark: str) -> Path | None:
        """Put a child on record; a disk that is full costs the next start its knowledge of it, and nothing else."""
        started = started_at(pid)
        if self._records is None or started is None:
            return None
        own, own_started = owner()
        try:
            return keep(self._records, Record(name, pid, started, boot(), mark, own, own_started))
        except OSError as error:
            log.warning("a child could not be put on record", backend=name, cause=str(error))
            return None

    def _reap(self) -> None:
        """Take note of the end of what was adopted, so that no zombies gather."""
        for pid in ended_strays(frozenset(self._running)) if KNOWS_KIN else ():
            with suppress(OSError):
                os.waitpid(pid, os.WNOHANG)

    async def _sweep(self) -> None:
        """End what the bridges before this one left behind, where they were killed themselves."""
        if self._records is None:
            return
        for path, record in (await anyio.to_thread.run_sync(kept, self._records)).items():
            if await anyio.to_thread.run_sync(lambda record=record: record.is_orphaned):
                await _end_left(record)
            elif not record.is_from_before:
                continue
            await anyio.Path(path).unlink(missing_ok=True)


def adopt_orphans() -> None:
    """Become the parent of what children leave behind, so that its end is seen here (Linux, PR_SET_CHILD_SUBREAPER)."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


async def exited(process: anyio.abc.Process, within_s: float) -> bool:
    """Whether the process ends within that time."""
    with anyio.move_on_after(within_s):
        # Not `wait()`: it also waits for the pipes, which a grandchild may hold open.
        while process.returncode is None:  # noqa: ASYNC110 – see above
            await anyio.sleep(_POLL_S)
    return process.returncode is not None


@cache
def _dies_with_us() -> tuple[str, ...]:
    """What a command is put behind so that the system kills it when this process ends, however it ends.

    A program and not a function between fork and exec, which is not safe in a process with threads.
    """
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    if setpriv is None:
        return ()
    prefix = (setpriv, "--pdeathsig", "KILL", "--")
    try:
        tried = subprocess.run([*prefix, setpriv, "--version"], capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return prefix if tried.returncode == 0 else ()


def _find(launch: StdioLaunch, env: Mapping[str, str]) -> None:
    """See that there is such a program, since what stands before it on the command line would hide that there is none.

    Raises:
        OSError: There is none, or it cannot be run.
    """
    if sys.platform != "linux":
        return
    there = Path(launch.command)
    if there.name != launch.command:
        there = Path(launch.cwd or ".") / there
        if there.is_file() and os.access(there, os.X_OK):
            return
        number = errno.EACCES if there.exists() else errno.ENOENT
        raise OSError(number, os.strerror(number))
    if shutil.which(launch.command, path=env.get("PATH", os.defpath)) is None:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))


async def _kin(child: Child) -> list[Seen]:
    """The living processes that belong to a child; none where the system does not tell."""
    return await anyio.to_thread.run_sync(kin_of, child.mark, child.process.pid) if KNOWS_KIN else []


async def _signal_kin(child: Child, number: signal.Signals) -> bool:
    """Signal a child and all its kin; whether there was anybody to signal."""
    if KNOWS_KIN:
        kin = await _kin(child)
        _signal(kin, number)
        return bool(kin)
    process = child.process
    if sys.platform == "win32":
        if process.returncode is None:
            force = ["/F"] if number == _KILL else []
            await anyio.run_process(
                ["taskkill", "/PID", str(process.pid), "/T", *force], stdout=DEVNULL, stderr=DEVNULL, check=False
            )
        return process.returncode is None
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal(kin: list[Seen], number: signal.Signals) -> None:
    for seen in kin:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(seen.pid, number)


async def _end_left(record: Record) -> None:
    """End what runs of a child whose bridge was killed."""
    left = await anyio.to_thread.run_sync(record.left)
    if not left:
        return
    pids = [seen.pid for seen in left]
    log.warning(
        "an earlier bridge was killed and left processes behind; ending them", backend=record.backend, pids=pids
    )
    _signal(left, _TERM)
    with anyio.move_on_after(_EXIT_GRACE_S):
        while left:
            await anyio.sleep(_POLL_S)
            left = await anyio.to_thread.run_sync(record.left)
    for _ in range(_KILL_ROUNDS):
        if not left:
            return
        _signal(left, _KILL)
        await anyio.sleep(_POLL_S)
        left = await anyio.to_thread.run_sync(record.left)
