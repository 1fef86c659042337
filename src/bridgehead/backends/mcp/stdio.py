"""A local MCP server as a child process: one JSON-RPC message a line on its standard input and output.

Its standard error goes to the log, with the last lines kept. Lines on standard output that are no JSON-RPC are skipped and
counted. Chunks are joined as bytes, so that a character may be split anywhere.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp_types as types
import orjson
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from bridgehead.backends.mcp.processes import STDERR_LINES, Child, Processes, exited
from bridgehead.config import StdioLaunch
from bridgehead.core import as_mapping
from bridgehead.core.json import dumps

_LINE_LIMIT = 2_000
_LOGGED_A_SECOND = 100
_EXIT_GRACE_S = 2.0
_LAST_WORDS_S = 0.2

log = structlog.get_logger(__name__)


Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def open_child(
    name: str, launch: StdioLaunch, environ: Mapping[str, str], processes: Processes
) -> AsyncGenerator[tuple[Streams, Child]]:
    """Start the server; on leaving, end it and everything it started.

    Raises:
        BackendUnavailable: The command cannot be started.
    """
    child = await processes.start(name, launch, environ)
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
                    await exited(child.process, _EXIT_GRACE_S)
                child.ended_by_us = child.process.returncode is None
                await processes.end(child)
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
