"""A local MCP server as a child process: one JSON-RPC message a line on its standard input and output.

The child gets a process group of its own and a minimal environment. Its standard error goes to the log, with the last lines
kept. Lines on standard output that are no JSON-RPC are skipped and counted. Chunks are joined as bytes, so that a character
may be split anywhere.
"""

from __future__ import annotations

import json
import os
import signal
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from subprocess import PIPE
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
import orjson
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from bridgehead.config import StdioLaunch
from bridgehead.core import as_mapping
from bridgehead.core.errors import BackendUnavailable
from bridgehead.core.json import dumps

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
_LINE_LIMIT = 2_000
_EXIT_GRACE_S = 2.0
_LAST_WORDS_S = 0.2
_POLL_S = 0.02

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Child:
    """A running server process."""

    name: str
    process: anyio.abc.Process
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


Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def open_child(
    name: str, launch: StdioLaunch, environ: Mapping[str, str]
) -> AsyncGenerator[tuple[Streams, Child]]:
    """Start the server; on leaving, end it and everything it started.

    Raises:
        BackendUnavailable: The command cannot be started.
    """
    env = {key: environ[key] for key in BASE_ENVIRONMENT if key in environ}
    env[DEPTH_VARIABLE] = str(int(environ.get(DEPTH_VARIABLE, "0")) + 1)
    env |= {key: secret.reveal() for key, secret in launch.env.items()}
    try:
        process = await anyio.open_process(
            [launch.command, *launch.args],
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=launch.cwd,
            env=env,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BackendUnavailable(
            f"The command {launch.command!r} of backend {name} cannot be started: {reason}.",
            hint="check `command`, `args` and `cwd`, and that the program is on the PATH of the bridge.",
        ) from error
    child = Child(name, process)
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](64)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_messages, child, incoming)
        tasks.start_soon(_write_messages, child, outgoing, incoming)
        tasks.start_soon(_read_stderr, child)
        try:
            yield (read, write), child
        finally:
            with anyio.CancelScope(shield=True):
                for stream in (write, outgoing, read):
                    stream.close()
                if child.silent.is_set():
                    await exited(process, _EXIT_GRACE_S)
                child.ended_by_us = process.returncode is None
                await end_tree(process)
                with anyio.move_on_after(_LAST_WORDS_S):
                    await child.hushed.wait()
            tasks.cancel_scope.cancel()


async def end_tree(process: anyio.abc.Process) -> None:
    """End a child and its process group: close its input, wait, SIGTERM, wait, SIGKILL. Every wait is bounded."""
    if process.stdin is not None:
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.aclose()
    if not await exited(process, _EXIT_GRACE_S):
        _signal_group(process, signal.SIGTERM)
        await exited(process, _EXIT_GRACE_S)
    # The leader may be gone while what it started is not, so the group is always swept.
    _signal_group(process, signal.SIGKILL)
    await exited(process, _EXIT_GRACE_S)
    with anyio.move_on_after(_EXIT_GRACE_S):
        await process.aclose()


async def exited(process: anyio.abc.Process, within_s: float) -> bool:
    """Whether the process ends within that time."""
    with anyio.move_on_after(within_s):
        # Not `wait()`: it also waits for the pipes, which a grandchild may hold open.
        while process.returncode is None:  # noqa: ASYNC110 – see above
            await anyio.sleep(_POLL_S)
    return process.returncode is not None


def _signal_group(process: anyio.abc.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        elif process.returncode is None:
            process.terminate()


async def _read_messages(child: Child, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    """Frame standard output into messages until it ends."""
    stdout = child.process.stdout
    if stdout is None:
        return
    partial: list[bytes] = []
    with incoming, suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        while True:
            head, *lines = (await stdout.receive()).split(b"\n")
            partial.append(head)
            for line in lines:
                message = _parse(child, b"".join(partial))
                partial = [line]
                if message is not None:
                    await incoming.send(SessionMessage(message))
    # Not when this was cancelled: then the child has said nothing of its end, and nobody is to wait for it.
    child.silent.set()


def _parse(child: Child, line: bytes) -> types.JSONRPCMessage | None:
    """The message on a line, or None for anything else."""
    if not line.strip():
        return None
    answer: Mapping[str, Any] = {}
    try:
        decoded = _decoded(line)
        answer = as_mapping(decoded)
        if "result" in answer and isinstance(answer.get("id"), int | str):
            # Results can be large and are relayed as they are; only the envelope matters here.
            return types.JSONRPCResponse.model_construct(jsonrpc="2.0", id=answer["id"], result=answer["result"])
        return types.jsonrpc_message_adapter.validate_python(decoded, by_name=False)
    except (ValueError, RecursionError):
        if isinstance(answer.get("id"), int | str) and "method" not in answer:
            # The answer to something, though no valid one: whoever waits for it is told now, not at the deadline.
            faulty = types.ErrorData(code=types.INTERNAL_ERROR, message="The server's answer is no JSON-RPC answer.")
            return types.JSONRPCError(jsonrpc="2.0", id=answer["id"], error=faulty)
        child.skipped_lines += 1
        if child.skipped_lines <= STDERR_LINES:
            text = line[:200].decode("utf-8", "replace").strip()
            child.stderr.append(f"(on standard output) {text}")
            log.warning("a line on standard output is not JSON-RPC and was skipped", backend=child.name, line=text)
        return None


def _decoded(line: bytes) -> Any:
    """The JSON of a line; NaN and the like are let in, since servers write them and only one answer is theirs."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        if not line.lstrip().startswith(b"{"):
            raise
        return json.loads(line)


async def _write_messages(
    child: Child,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    stdin = child.process.stdin
    if stdin is None:
        return
    try:
        async with outgoing:
            async for item in outgoing:
                try:
                    line = dumps(item.message.model_dump(by_alias=True, exclude_unset=True))
                except ValueError as error:
                    # One message that cannot be written is the end of that message, not of the session.
                    if isinstance(item.message, types.JSONRPCRequest):
                        refusal = types.ErrorData(
                            code=types.INVALID_PARAMS, message=f"The request was not sent: {error}."
                        )
                        answer = types.JSONRPCError(jsonrpc="2.0", id=item.message.id, error=refusal)
                        await incoming.send(SessionMessage(answer))
                    continue
                await stdin.send(line + b"\n")
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        # The child no longer reads. Ending the other direction makes every pending call fail now, not at its deadline.
        incoming.close()


async def _read_stderr(child: Child) -> None:
    stderr = child.process.stderr
    if stderr is None:
        return
    rest = b""
    with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        while True:
            *lines, rest = (rest + await stderr.receive()).split(b"\n")
            rest = rest[-_LINE_LIMIT:]
            for line in lines:
                text = line[:_LINE_LIMIT].decode("utf-8", "replace").rstrip()
                if text:
                    child.stderr.append(text)
                    log.info("stderr", backend=child.name, line=text)
    if rest.strip():
        child.stderr.append(rest.decode("utf-8", "replace").rstrip())
    child.hushed.set()
