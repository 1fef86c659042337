"""What a gateway costs at least: `python -m benchmarks.floors pipe|sdk PORT BACKEND…`.

`pipe` is bare ASGI in front of the child's pipe, with an id map and no checks at all: the physical floor. `sdk` is the MCP
SDK on both sides, its low-level server answering in JSON and its client session behind: what one gets without writing any
protocol code.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import orjson
import uvicorn
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.server.lowlevel.server import Server


class Pipe:
    """A child whose answers are matched by ids of our own."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._next = 0
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=64 * 1024 * 1024
            )
            self._reader = asyncio.create_task(self._read(self._process))
        return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            reply = orjson.loads(line)
            self._waiting.pop(reply["id"]).set_result(reply)

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send the message under an id of our own and return the answer under the caller's."""
        process = await self._started()
        assert process.stdin is not None
        self._next += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._next] = future
        process.stdin.write(orjson.dumps({**message, "id": self._next}) + b"\n")
        reply = await future
        return {**reply, "id": message["id"]}


def serve_pipe(port: int, command: list[str]) -> None:
    """The floor without checks."""
    pipe = Pipe(command)

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        message: dict[str, Any] = orjson.loads(body or b"{}")
        reply = orjson.dumps(await pipe.ask(message)) if "id" in message else b""
        if scope["method"] != "POST":
            reply = b""
        headers = [(b"content-type", b"application/json"), (b"mcp-session-id", b"bench")]
        await send({"type": "http.response.start", "status": 200 if reply else 202, "headers": headers})
        await send({"type": "http.response.body", "body": reply})

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", lifespan="off")  # pyright: ignore[reportArgumentType]


def serve_sdk(port: int, command: list[str]) -> None:
    """The SDK on both sides."""
    schemas: dict[str, dict[str, Any]] = {}

    @asynccontextmanager
    async def lifespan(_: Server[Client]) -> AsyncGenerator[Client]:
        async with Client(StdioServerParameters(command=command[0], args=command[1:]), cache=None) as client:
            listed = await client.list_tools()
            schemas.update({tool.name: tool.input_schema for tool in listed.tools})
            yield client

    async def list_tools(ctx: Any, _: Any) -> types.ListToolsResult:
        return await ctx.lifespan_context.list_tools()

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
        return await ctx.lifespan_context.call_tool(params.name, params.arguments)

    server: Server[Client] = Server(
        "floor", lifespan=lifespan, on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=schemas.get
    )
    uvicorn.run(server.streamable_http_app(json_response=True), host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    {"pipe": serve_pipe, "sdk": serve_sdk}[sys.argv[1]](int(sys.argv[2]), sys.argv[3:])
