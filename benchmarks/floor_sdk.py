"""`python -m benchmarks.floor_sdk PORT BACKEND…`: the MCP SDK on both sides.

Its low-level server answers in JSON, and its client session stands behind: what one gets without writing any protocol code.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import uvicorn
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.lowlevel.server import Server


def serve(port: int, command: list[str]) -> None:
    """Answer on the port, sessions and stateless calls alike.

    Its server knows the schemas: without `get_tool_input_schema` it would list all tools on each call of the stateless
    generation, and would be no floor.
    """
    schemas: dict[str, dict[str, Any]] = {}

    @asynccontextmanager
    async def lifespan(_: Server[ClientSession]) -> AsyncGenerator[ClientSession]:
        child = StdioServerParameters(command=command[0], args=command[1:])
        async with stdio_client(child) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            listed = await session.list_tools()
            schemas.update({tool.name: tool.input_schema for tool in listed.tools})
            yield session

    async def list_tools(ctx: Any, _: Any) -> types.ListToolsResult:
        return await ctx.lifespan_context.list_tools()

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
        return await ctx.lifespan_context.call_tool(params.name, params.arguments)

    server: Server[ClientSession] = Server(
        "floor", lifespan=lifespan, on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=schemas.get
    )
    uvicorn.run(server.streamable_http_app(json_response=True), host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2:])
