"""A local MCP server as a child process: one JSON-RPC message a line on its standard input and output.

Its standard error goes to the log, with the last lines kept. Lines on standard output that are no JSON-RPC are skipped and
counted. Chunks are joined as bytes, so that a character may be split anywhere.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from subprocess import PIPE
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
import orjson
import structlog
from anyio._core._eventloop import get_async_backend
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from bridgehead.backends.mcp.processes import Processes, Start
from bridgehead.config import StdioLaunch
from bridgehead.core import as_mapping
from bridgehead.core.json import dumps

_LINE_LIMIT = 2_000
_LOGGED_A_SECOND = 100
_EXIT_GRACE_S = 2.0
_LAST_WORDS_S = 0.2
_LAST_ANSWERS_S = 0.5

log = structlog.get_logger(__name__)


STDERR_LINES = 20


@dataclass(slots=True)
class Child:
    """A running server process. Implements the processes' `Leader`."""

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
    def pid(self) -> int:
        """Its number."""
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it runs."""
        return self.process.returncode

    @property
    def exit_cause(self) -> str | None:
        """How it ended, in a few words, or None while it runs."""
        code = self.process.returncode
        if code is None or self.ended_by_us:
            return None
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"exited with code {code}"

    def close_input(self) -> None:
        """Close its standard input."""
        if self._writer is not None:
            self._writer.close()

    async def exits(self, within_s: float) -> bool:
        """Whether it ends within that time."""
        with anyio.move_on_after(within_s):
            await self.process.wait()
        return self.returncode is not None

    async def ends(self) -> None:
        """Return once it has ended or has closed its output: either way no answer will come."""
        async with anyio.create_task_group() as first:

            async def when(event: Callable[[], Awaitable[object]]) -> None:
                await event()
                first.cancel_scope.cancel()

            first.start_soon(when, self.silent.wait)
            first.start_soon(when, self.process.wait)
        # One that has ended may have said something before, and what it started may hold its output open.
        with anyio.move_on_after(_LAST_ANSWERS_S):
            await self.silent.wait()

    async def stops_reading(self) -> None:
        """Return once it no longer reads its input, which may show only when something is written to it."""
        if self._writer is not None:
            # Shielded, since to cancel the wait would cancel what everyone is told by.
            closed = asyncio.gather(self._writer.wait_closed(), return_exceptions=True)
            await asyncio.shield(closed)

    @property
    def _writer(self) -> asyncio.StreamWriter | None:
        """What is behind anyio's stream, which alone is told that the other end was closed."""
        return getattr(self.process.stdin, "_stream", None)


Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def open_child(
    name: str, launch: StdioLaunch, environ: Mapping[str, str], processes: Processes
) -> AsyncGenerator[tuple[Streams, Child]]:
    """Start the server; on leaving, end it and everything it started.

    Raises:
        BackendUnavailable: The command cannot be started.
    """

    async def spawn(start: Start) -> Child:
        # `anyio.open_process` does not hand every option on.
        process = await get_async_backend().open_process(
            start.command, stdin=PIPE, stdout=PIPE, stderr=PIPE, **start.options
        )
        return Child(name, process)

    child = await processes.start(name, launch, environ, spawn)
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](64)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_messages, child, incoming)
        tasks.start_soon(_write_messages, child, outgoing, incoming)
        tasks.start_soon(_read_stderr, child)
        tasks.start_soon(_end_with_its_input, child, incoming)
        try:
            yield (read, write), child
        finally:
            with anyio.CancelScope(shield=True):
                for stream in (write, outgoing, read):
                    stream.close()
                if child.silent.is_set():
                    await child.exits(_EXIT_GRACE_S)
                child.ended_by_us = child.returncode is None
                await processes.end(child)
                with anyio.move_on_after(_EXIT_GRACE_S):
                    await child.process.aclose()
                with anyio.move_on_after(_LAST_WORDS_S):
                    await child.hushed.wait()
            tasks.cancel_scope.cancel()


async def _read_messages(child: Child, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    """Frame standard output into messages until it ends."""
    stdout = child.process.stdout
    if stdout is None:
        return
    partial: list[bytes] = []
    try:
        with incoming, suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while True:
                head, *lines = (await stdout.receive()).split(b"\n")
                partial.append(head)
                for line in lines:
                    message = _parse(child, b"".join(partial))
                    partial = [line]
                    if message is not None:
                        await incoming.send(SessionMessage(message))
    finally:
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


async def _end_with_its_input(child: Child, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    """End the session of a child that no longer reads, since what is written to it would be waited for in vain."""
    await child.stops_reading()
    # One that has just ended may have said something before, which is still to be read.
    with anyio.move_on_after(_LAST_ANSWERS_S):
        await child.silent.wait()
    incoming.close()


async def _read_stderr(child: Child) -> None:
    """Keep the last lines, and log them, though no more a second than anyone could read."""
    stderr = child.process.stderr
    if stderr is None:
        return
    rest = b""
    second, logged = 0, 0
    with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        while True:
            *lines, rest = (rest + await stderr.receive()).split(b"\n")
            rest = rest[-_LINE_LIMIT:]
            now = int(anyio.current_time())
            if now != second:
                second, logged = now, 0
            # Only what can be kept is looked at: a server may write faster than anything could be made of it.
            for line in lines[-STDERR_LINES:]:
                text = line[:_LINE_LIMIT].decode("utf-8", "replace").rstrip()
                if not text:
                    continue
                child.stderr.append(text)
                logged += 1
                if logged <= _LOGGED_A_SECOND:
                    log.info("stderr", backend=child.name, line=text)
                elif logged == _LOGGED_A_SECOND + 1:
                    log.warning("a server writes more to standard error than is logged", backend=child.name)
    if rest.strip():
        child.stderr.append(rest.decode("utf-8", "replace").rstrip())
    child.hushed.set()
