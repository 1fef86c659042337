"""A child process's standard input and output as a connection: read in callbacks, written without waiting.

What answers a request of the lane goes straight to whoever waits for it, progress and log messages to whoever hears them, in
the order in which they came, and everything else to the SDK's session.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, cast

import anyio
import mcp_types as types
import structlog
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from bridgehead.backends.mcp.framing import KEPT, Framer, TooLong, envelope
from bridgehead.backends.mcp.lane import Lane, LaneClosed
from bridgehead.core import as_mapping
from bridgehead.core.json import dumps, loads

STDERR_LINES = 20
_LINE_LIMIT = 2_000
_QUEUE_FULL = 256
"""Messages for the session before the child is no longer read."""
_HEARD = frozenset({"notifications/progress", "notifications/message"})
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_LAST_ANSWERS_S = 0.5
"""How long a child that has ended, or has closed its input, may still answer what it was asked."""
_LOGGED_A_SECOND = 100

log = structlog.get_logger(__name__)


class Pipe(asyncio.SubprocessProtocol):
    """The connection with one child process, for as long as it lasts. Implements the processes' `Leader`."""

    def __init__(self, name: str, *, max_message_bytes: int) -> None:
        """For backend `name`; a message of more than `max_message_bytes` fails alone."""
        self.name = name
        self.stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self.skipped_lines = 0
        self.silent = anyio.Event()
        """Set when standard output has ended: nothing more will come."""
        self.hushed = anyio.Event()
        """Set when standard error has ended too: its last words are known."""
        self.exited = anyio.Event()
        self.deaf = False
        """Whether it has closed its input, but not its output."""
        self.ended_by_us = False
        """Whether it still ran when the bridge began to end it, so that how it ended says nothing of it."""
        self.heard: Callable[[str, Mapping[str, Any]], bool] | None = None
        """Takes progress and log messages as they come."""
        self.lane = Lane(self.write)
        self._framer = Framer(max_message_bytes)
        self._max_message_bytes = max_message_bytes
        self._stderr_rest = b""
        self._logged_at, self._logged = 0, 0
        self._queue: deque[SessionMessage] = deque()
        self._queued = anyio.Event()
        self._paused = False
        self._closed_input = False
        self._unwritten: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None

    # --- the process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._transport.get_pid() or 0 if self._transport is not None else 0

    @property
    def returncode(self) -> int | None:
        """What it exited with, or None while it runs; negative: the signal that ended it."""
        return self._transport.get_returncode() if self._transport is not None else None

    @property
    def exit_cause(self) -> str | None:
        """How it ended, in a few words, or None while it runs."""
        code = self.returncode
        if code is None or self.ended_by_us:
            return None
        if code < 0:
            return f"was ended by {_signal_name(-code)}"
        return f"exited with code {code}"

    async def exits(self, within_s: float) -> bool:
        """Whether the process ends within that time."""
        with anyio.move_on_after(within_s):
            await self.exited.wait()
        return self.returncode is not None

    def close_input(self) -> None:
        """Close its standard input, which tells it to end (MCP 2025-11-25, lifecycle, shutdown)."""
        self._closed_input = True
        if self._stdin is not None:
            self._flush()
            self._stdin.close()

    async def ends(self) -> None:
        """Return once it has ended or has closed its output: either way no answer will come."""
        async with anyio.create_task_group() as first:

            async def when(event: anyio.Event) -> None:
                await event.wait()
                first.cancel_scope.cancel()

            first.start_soon(when, self.silent)
            first.start_soon(when, self.exited)
        # One that has ended may have said something before, and what it started may hold its output open.
        with anyio.move_on_after(_LAST_ANSWERS_S):
            await self.silent.wait()

    def close(self) -> None:
        """Let go of its pipes."""
        if self._transport is not None:
            self._transport.close()

    # --- what the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The process has started."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(_STDIN))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Something was written by the child."""
        if fd == _STDERR:
            self._read_stderr(data)
            return
        for line in self._framer.feed(data):
            try:
                if isinstance(line, bytes):
                    self._take(line)
                else:
                    self._refuse(line)
            except Exception:
                # Whatever is wrong with one line, the next may answer another call.
                log.exception("a line on standard output could not be taken in", backend=self.name)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 – the base class's signature
        """A pipe has ended."""
        if fd == _STDERR:
            if self._stderr_rest.strip():
                self.stderr.append(self._stderr_rest.decode("utf-8", "replace").rstrip())
            self.hushed.set()
            return
        self._closed_input = True
        if fd == _STDIN:
            self.deaf = not self.silent.is_set()
            # What it has answered already may still be on its way. After that every pending call fails, not at its deadline.
            self._loop.call_later(_LAST_ANSWERS_S, self._end_output)
        else:
            self.deaf = False
            self._end_output()

    def _end_output(self) -> None:
        self.lane.close()
        self.silent.set()
        self._queued.set()

    def process_exited(self) -> None:
        """It has ended; its pipes may be held open by what it started."""
        self.exited.set()

    def pause_writing(self) -> None:
        """The child does not read as fast as it is written to."""
        self.lane.room.clear()

    def resume_writing(self) -> None:
        """It has caught up."""
        self.lane.room.set()

    # --- writing

    def write(self, line: bytes) -> None:
        """Write a line.

        Raises:
            LaneClosed: The child no longer reads.
        """
        if self._closed_input or self._stdin is None:
            raise LaneClosed(sent=False)
        if not self._unwritten:
            # What is sent in one turn of the loop goes out in one write: a system call costs as much as the rest.
            self._loop.call_soon(self._flush)
        self._unwritten.append(line)

    def _flush(self) -> None:
        lines, self._unwritten = self._unwritten, []
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(b"".join(lines))

    async def write_messages(self, outgoing: anyio.abc.ObjectReceiveStream[SessionMessage]) -> None:
        """Write what the SDK's session sends, until it ends."""
        async with outgoing:
            async for item in outgoing:
                await self.lane.room.wait()
                try:
                    self.write(dumps(item.message.model_dump(by_alias=True, exclude_unset=True)) + b"\n")
                except ValueError as error:
                    # One message that cannot be written is the end of that message, not of the session.
                    if isinstance(item.message, types.JSONRPCRequest):
                        self._fail(item.message.id, types.INVALID_PARAMS, f"The request was not sent: {error}.")
                except LaneClosed:
                    return

    # --- reading

    async def read_messages(self, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Give the SDK's session what is meant for it, until the child's output ends."""
        try:
            with incoming:
                while True:
                    await self._queued.wait()
                    while self._queue:
                        await incoming.send(self._queue.popleft())
                    self._pause_reading(wanted=False)
                    if self.silent.is_set():
                        return
                    self._queued = anyio.Event()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    def _take(self, line: bytes) -> None:
        """Take in one line of standard output."""
        if not line.strip():
            return
        try:
            decoded = _decoded(line)
        except (ValueError, RecursionError):
            request_id, has_method = envelope(line[:KEPT], line[-KEPT:])
            if request_id is not None and not has_method and line.lstrip().startswith(b"{"):
                sentence = (
                    "The server's answer cannot be read: it is no valid JSON. hint: this is a mistake in that server; "
                    "call with other arguments, or another tool."
                )
                self._fail(request_id, types.INTERNAL_ERROR, sentence)
            self._skip(line)
            return
        if isinstance(decoded, dict):
            message = cast("dict[str, Any]", decoded)
            if self.lane.answer(message):
                return
            method = message.get("method")
            if isinstance(method, str) and method in _HEARD and "id" not in message and self.heard is not None:
                params = as_mapping(message.get("params"))
                if self.heard(method, params):
                    return
            parsed = _parse(message)
            if parsed is not None:
                self._enqueue(parsed)
                return
        self._skip(line)

    def _enqueue(self, message: types.JSONRPCMessage) -> None:
        self._queue.append(SessionMessage(message))
        self._queued.set()
        if len(self._queue) >= _QUEUE_FULL:
            self._pause_reading(wanted=True)

    def _pause_reading(self, *, wanted: bool) -> None:
        stdout = self._transport.get_pipe_transport(_STDOUT) if self._transport is not None else None
        if stdout is None or wanted == self._paused:
            return
        self._paused = wanted
        reader = cast("asyncio.ReadTransport", stdout)
        if wanted:
            reader.pause_reading()
        else:
            reader.resume_reading()

    def _skip(self, line: bytes) -> None:
        self.skipped_lines += 1
        if self.skipped_lines <= STDERR_LINES:
            text = line[:200].decode("utf-8", "replace").strip()
            self.stderr.append(f"(on standard output) {text}")
            log.warning("a line on standard output is not JSON-RPC and was skipped", backend=self.name, line=text)

    def _refuse(self, line: TooLong) -> None:
        """A line over the limit: whoever waits for it is told; nobody else notices."""
        limit = self._max_message_bytes
        log.warning("a message is too large and was thrown away", backend=self.name, bytes=line.length, limit=limit)
        sentence = (
            f"The server's answer of {line.length} bytes is over the limit of {limit} bytes for one message and was thrown "
            f"away. hint: ask for less, or raise `max_message_bytes` of backend {self.name}."
        )
        if line.id is not None and line.is_answer:
            self._fail(line.id, types.INTERNAL_ERROR, sentence)

    def _fail(self, request_id: int | str, code: int, message: str) -> None:
        """Answer a request in the server's place."""
        error = types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message))
        if not self.lane.answer(error.model_dump(exclude_unset=True)):
            self._enqueue(error)

    def _read_stderr(self, data: bytes) -> None:
        *lines, rest = (self._stderr_rest + data).split(b"\n")
        self._stderr_rest = rest[-_LINE_LIMIT:]
        now = int(self._loop.time())
        if now != self._logged_at:
            self._logged_at, self._logged = now, 0
        # Only what can be kept is looked at: a server may write faster than anything could be made of it.
        for line in lines[-STDERR_LINES:]:
            text = line[:_LINE_LIMIT].decode("utf-8", "replace").rstrip()
            if not text:
                continue
            self.stderr.append(text)
            self._logged += 1
            if self._logged <= _LOGGED_A_SECOND:
                log.info("stderr", backend=self.name, line=text)
            elif self._logged == _LOGGED_A_SECOND + 1:
                log.warning("a server writes more to standard error than is logged", backend=self.name)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        # Real-time signals have numbers only.
        return f"signal {number}"


def _parse(message: dict[str, Any]) -> types.JSONRPCMessage | None:
    """The message as the SDK has it, or None for what is none."""
    request_id = message.get("id")
    is_answer = isinstance(request_id, int | str) and "method" not in message
    try:
        if is_answer and "result" in message:
            # Results can be large and are relayed as they are; only the envelope matters here.
            return types.JSONRPCResponse.model_construct(jsonrpc="2.0", id=request_id, result=message["result"])
        return types.jsonrpc_message_adapter.validate_python(message, by_name=False)
    except (ValueError, RecursionError):
        if not is_answer:
            return None
        # The answer to something, though no valid one: whoever waits for it is told now, not at the deadline.
        faulty = types.ErrorData(code=types.INTERNAL_ERROR, message="The server's answer is no JSON-RPC answer.")
        return types.JSONRPCError(jsonrpc="2.0", id=cast("int | str", request_id), error=faulty)


def _decoded(line: bytes) -> Any:
    """The JSON of a line; NaN and the like are let in, since servers write them and only one answer is theirs."""
    try:
        return loads(line)
    except ValueError:
        if not line.lstrip().startswith(b"{"):
            raise
        return json.loads(line)
