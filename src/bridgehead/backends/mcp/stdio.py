"""A local MCP server as a child process: one JSON-RPC message a line on its standard input and output."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from subprocess import PIPE

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from bridgehead.backends.mcp.pipe import Pipe
from bridgehead.backends.mcp.processes import Processes, Start
from bridgehead.config import StdioLaunch

_EXIT_GRACE_S = 2.0
_LAST_WORDS_S = 0.2

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def open_child(
    name: str, launch: StdioLaunch, environ: Mapping[str, str], processes: Processes, *, max_message_bytes: int
) -> AsyncGenerator[tuple[Streams, Pipe]]:
    """Start the server; on leaving, end it and everything it started.

    Raises:
        BackendUnavailable: The command cannot be started.
    """

    async def spawn(start: Start) -> Pipe:
        _, pipe = await asyncio.get_running_loop().subprocess_exec(
            lambda: Pipe(name, max_message_bytes=max_message_bytes),
            *start.command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            **start.options,
        )
        return pipe

    child = await processes.start(name, launch, environ, spawn)
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
                await processes.end(child)
                with anyio.move_on_after(_LAST_WORDS_S):
                    await child.hushed.wait()
                child.close()
            tasks.cancel_scope.cancel()
