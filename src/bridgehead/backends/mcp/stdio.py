"""A local MCP server as a child process: one JSON-RPC message a line on its standard input and output.

The child gets a process group of its own and a minimal environment. Its standard error goes to the log, with the last lines
kept. Lines on standard output that are no JSON-RPC are skipped and counted.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from subprocess import PIPE

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from bridgehead.backends.mcp.pipe import Pipe
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
_LAST_WORDS_S = 0.2

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def open_child(
    name: str, launch: StdioLaunch, environ: Mapping[str, str], *, max_message_bytes: int
) -> AsyncGenerator[tuple[Streams, Pipe]]:
    """Start the server; on leaving, end it and everything it started.

    Raises:
        BackendUnavailable: The command cannot be started.
    """
    env = {key: environ[key] for key in BASE_ENVIRONMENT if key in environ}
    env[DEPTH_VARIABLE] = str(int(environ.get(DEPTH_VARIABLE, "0")) + 1)
    env |= {key: secret.reveal() for key, secret in launch.env.items()}
    try:
        _, child = await asyncio.get_running_loop().subprocess_exec(
            lambda: Pipe(name, max_message_bytes=max_message_bytes),
            launch.command,
            *launch.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=launch.cwd,
            env=env,
            start_new_session=True,
        )
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
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](64)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(child.read_messages, incoming)
        tasks.start_soon(child.write_messages, outgoing)
        try:
            yield (read, write), child
        finally:
            with anyio.CancelScope(shield=True):
                for stream in (write, outgoing, read):
                    stream.close()
                if child.silent.is_set():
                    await child.exits(_EXIT_GRACE_S)
                child.ended_by_us = child.returncode is None
                await end_tree(child)
                with anyio.move_on_after(_LAST_WORDS_S):
                    await child.hushed.wait()
                child.close()
            tasks.cancel_scope.cancel()


async def end_tree(child: Pipe) -> None:
    """End a child and its process group: close its input, wait, SIGTERM, wait, SIGKILL. Every wait is bounded."""
    child.close_input()
    if not await child.exits(_EXIT_GRACE_S):
        _signal_group(child, signal.SIGTERM)
        await child.exits(_EXIT_GRACE_S)
    # The leader may be gone while what it started is not, so the group is always swept.
    _signal_group(child, signal.SIGKILL)
    await child.exits(_EXIT_GRACE_S)


def _signal_group(child: Pipe, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, number)
        elif child.returncode is None:
            child.kill()
