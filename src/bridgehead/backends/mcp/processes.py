"""Server processes: started, watched, and ended with everything that they started.

A child gets a session and process group of its own, a minimal environment, and a mark in it. It is ended by closing its input,
then SIGTERM, then SIGKILL, each to all its kin, and every wait is bounded. Should the bridge itself be killed, the system
kills the children (Linux), their input ends, and the next bridge sweeps up what is left by its records.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, Protocol, TypeVar

import anyio
import anyio.to_thread
import structlog

from bridgehead.backends.mcp.kin import KNOWS_KIN, MARK_VARIABLE, Seen, boot, ended_strays, kin_of, started_at
from bridgehead.backends.mcp.records import Record, keep, kept, owner
from bridgehead.config import StdioLaunch, lacking
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

_EXIT_GRACE_S = 2.0
_REST_GRACE_S = 0.5
_POLL_S = 0.02
_KILL_ROUNDS = 10
_REAP_EVERY_S = 5.0
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLOSE_RANGE_CLOEXEC = 4
_FIRST_FILE, _LAST_FILE = 3, 0x7FFFFFFF
_TERM = signal.SIGTERM
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)

log = structlog.get_logger(__name__)


class Leader(Protocol):
    """A process that was started, as whoever started it holds it."""

    @property
    def pid(self) -> int:
        """Its number, which is that of its group and session too."""
        ...

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it runs."""
        ...

    def close_input(self) -> None:
        """Close its standard input, by which a server knows that it is to end."""
        ...

    async def exits(self, within_s: float) -> bool:
        """Whether it ends within that time, whoever may still hold its pipes."""
        ...


@dataclass(frozen=True, slots=True)
class Start:
    """How to start a process: the command, and what else `subprocess_exec` of the loop is to be told."""

    command: Sequence[str]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Known:
    mark: str
    record: Path | None


Started = TypeVar("Started", bound=Leader)


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
        self._running: dict[int, _Known] = {}
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

    async def start(
        self,
        name: str,
        launch: StdioLaunch,
        environ: Mapping[str, str],
        spawn: Callable[[Start], Awaitable[Started]],
    ) -> Started:
        """Have `spawn` start a server, and keep account of it.

        Raises:
            BackendUnavailable: The command cannot be started.
        """
        await self._swept.wait()
        self._count += 1
        mark = f"{self._run}.{self._count}"
        env = {key: environ[key] for key in BASE_ENVIRONMENT if key in environ}
        env |= {key: secret.reveal() for key, secret in launch.env.items()}
        env |= {DEPTH_VARIABLE: str(int(environ.get(DEPTH_VARIABLE, "0")) + 1), MARK_VARIABLE: mark}
        options: dict[str, Any] = {"cwd": launch.cwd, "env": env, "start_new_session": True}
        after_fork = _after_fork()
        if after_fork is not None:
            options["preexec_fn"] = after_fork
        try:
            # Not to be interrupted: a process that was started and is not known would be nobody's to end.
            with anyio.CancelScope(shield=True):
                child = await spawn(Start((launch.command, *launch.args), options))
                self._running[child.pid] = _Known(mark, None)
                record = await anyio.to_thread.run_sync(self._keep, name, child.pid, mark)
                self._running[child.pid] = _Known(mark, record)
                return child
        except (OSError, ValueError) as error:
            lack = lacking(launch, environ)
            if lack is not None:
                # The system says `no such file` of a directory and of a program alike.
                _, cause, mend = lack
                raise BackendUnavailable(f"Backend {name} cannot be started: {cause}", hint=mend) from error
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise BackendUnavailable(
                f"The command {launch.command!r} of backend {name} cannot be started: {reason}.",
                hint="check `command`, `args` and `cwd`, and that the program is on the PATH of the bridge.",
            ) from error
        raise AssertionError("a scope that nobody cancels was cancelled")

    async def end(self, child: Leader) -> None:
        """End a child and all its kin: close its input, wait, SIGTERM, wait, SIGKILL. Every wait is bounded."""
        known = self._running[child.pid]
        child.close_input()
        if not await child.exits(_EXIT_GRACE_S):
            await _signal_kin(child, known.mark, _TERM)
            await child.exits(_EXIT_GRACE_S)
        # The leader may be gone while what it started is not.
        await self._end_rest(child, known.mark)
        await child.exits(_EXIT_GRACE_S)
        self._running.pop(child.pid, None)
        if known.record is not None:
            with suppress(OSError):
                await anyio.Path(known.record).unlink()
        self._reap()

    async def _end_rest(self, child: Leader, mark: str) -> None:
        if child.returncode is not None and await _signal_kin(child, mark, _TERM):
            with anyio.move_on_after(_REST_GRACE_S):
                while await _kin(child, mark):  # noqa: ASYNC110 – nobody is told of the end of others' children
                    await anyio.sleep(_POLL_S)
        for _ in range(_KILL_ROUNDS):
            # Again and again, since what is about to be killed may just be starting another.
            if not await _signal_kin(child, mark, _KILL):
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
        try:
            for path, record in (await anyio.to_thread.run_sync(kept, self._records)).items():
                if await anyio.to_thread.run_sync(lambda record=record: record.is_orphaned):
                    await _end_left(record)
                elif not record.is_from_before:
                    continue
                await anyio.Path(path).unlink(missing_ok=True)
        except OSError as error:
            log.warning("what an earlier bridge left behind cannot be looked for", cause=str(error))


def adopt_orphans() -> None:
    """Become the parent of what children leave behind, so that its end is seen here (Linux, PR_SET_CHILD_SUBREAPER)."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@cache
def _after_fork() -> Callable[[], None] | None:
    """What a child does before it becomes the server (Linux).

    It has the system kill it when this process ends, however that ends. And it keeps files to itself: the loop lets a child
    inherit its own ends of the pipes a second time, and whatever a server starts would hold them open after it.

    Two calls of the C library through pointers found beforehand, the interpreter's lock held throughout: nothing that another
    thread may have locked at the moment of the fork. The loop runs in the thread that forks and lives as long as the process,
    which the death signal is bound to.
    """
    if sys.platform != "linux":
        return None
    library = ctypes.PyDLL(None)
    prctl, close_range = library.prctl, getattr(library, "close_range", None)
    prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)

    def after_fork() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if close_range is not None:
            close_range(_FIRST_FILE, _LAST_FILE, _CLOSE_RANGE_CLOEXEC)

    return after_fork


async def _kin(child: Leader, mark: str) -> list[Seen]:
    """The living processes that belong to a child; none where the system does not tell."""
    return await anyio.to_thread.run_sync(kin_of, mark, child.pid) if KNOWS_KIN else []


async def _signal_kin(child: Leader, mark: str, number: signal.Signals) -> bool:
    """Signal a child and all its kin; whether there was anybody to signal."""
    if KNOWS_KIN:
        kin = await _kin(child, mark)
        _signal(kin, number)
        return bool(kin)
    if sys.platform == "win32":
        if child.returncode is None:
            force = ["/F"] if number == _KILL else []
            await anyio.run_process(
                ["taskkill", "/PID", str(child.pid), "/T", *force], stdout=DEVNULL, stderr=DEVNULL, check=False
            )
        return child.returncode is None
    try:
        os.killpg(child.pid, number)
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
