"""The full surface on standard input and output, for desktop clients that start their servers.

A connection is of one generation, decided by its first request. Some clients ask `server/discover` first and then go on with
`initialize`; the SDK would have settled on the modern generation by then and refuse. So `server/discover` is answered before
the SDK sees anything, and the first request after it decides.

Such a client mostly asks for the tools once, at its start, which is also the start of the bridge. So the first `tools/list`
waits a little for backends of which nothing is known yet, not even from before; every other request goes on meanwhile.
"""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bridgehead.core import Caller
from bridgehead.surfaces.mcp.calls import Inside
from bridgehead.surfaces.mcp.full import FullSurface
from bridgehead.surfaces.mcp.lists import LISTS_FRESH_MS, SERVER_IDENTITY

_FIRST_LIST_S = 5.0
"""How long the first list of tools waits for backends that have never listed anything."""
_LOOK_EVERY_S = 0.02


async def serve_on_stdio(inside: Inside, caller: Caller, *, group: str | None = None) -> None:
    """Serve one client until it closes its end."""
    surface = FullSurface(inside, group, local_caller=caller)
    async with stdio_server() as (read, write), anyio.create_task_group() as tasks:
        await tasks.start(surface.announcements.run)
        passed, filtered = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        tasks.start_soon(_pass_on, inside, surface, (read, write), passed)
        await surface.server.run(filtered, write, surface.server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _pass_on(
    inside: Inside,
    surface: FullSurface,
    streams: tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]],
    passed: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Pass everything on but `server/discover` requests, which are answered, and the first `tools/list`, which waits."""
    read, write = streams
    has_listed = False
    gone = anyio.Event()
    async with passed, anyio.create_task_group() as waiting:
        async for item in read:
            message = item.message if isinstance(item, SessionMessage) else None
            method = message.method if isinstance(message, types.JSONRPCRequest) else None
            if isinstance(message, types.JSONRPCRequest) and method == "server/discover":
                answer = types.JSONRPCResponse(jsonrpc="2.0", id=message.id, result=_discovery(surface))
                await write.send(SessionMessage(answer))
            elif method == "tools/list" and not has_listed:
                has_listed = True
                waiting.start_soon(_pass_on_when_listed, inside, item, passed, gone)
            else:
                await passed.send(item)
        gone.set()


async def _pass_on_when_listed(
    inside: Inside,
    item: SessionMessage | Exception,
    passed: MemoryObjectSendStream[SessionMessage | Exception],
    gone: anyio.Event,
) -> None:
    """Pass the request on once every backend has come to something, the time is up, or nothing more will be asked."""
    with anyio.move_on_after(_FIRST_LIST_S):
        while inside.catalog.never_listed() and not gone.is_set():  # noqa: ASYNC110 – statuses are not announced
            await anyio.sleep(_LOOK_EVERY_S)
    await passed.send(item)


def _discovery(surface: FullSurface) -> dict[str, Any]:
    version = MODERN_PROTOCOL_VERSIONS[-1]
    capabilities = surface.server.get_capabilities(protocol_version=version)
    return {
        "supportedVersions": list(MODERN_PROTOCOL_VERSIONS),
        "capabilities": capabilities.model_dump(by_alias=True, mode="json", exclude_none=True),
        "instructions": surface.server.instructions,
        "resultType": "complete",
        "ttlMs": LISTS_FRESH_MS,
        "cacheScope": "private",
        "_meta": {types.SERVER_INFO_META_KEY: SERVER_IDENTITY},
    }
