"""A session with the server by the bridge's own transport, and both ways to call over it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from bridgehead.backends.mcp.connection import transport_fault
from bridgehead.backends.mcp.http import HttpTarget, Lane, SharedPool, open_http
from bridgehead.backends.mcp.sdk import MCPError, RelaySession
from bridgehead.config import HttpLaunch, Secret
from tests.hostile_http.server import META_VERSION, Server

_META: dict[str, Any] = {META_VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@dataclass
class Hearing:
    """What the session hears."""

    heard_now: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    def heard(self, method: str, params: Mapping[str, Any]) -> bool:
        self.heard_now.append((method, params))
        return True

    async def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Everything was heard."""

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.heard_now]


@dataclass
class Client:
    """An open session."""

    session: RelaySession
    lane: Lane | None
    hearing: Hearing

    async def by_lane(self, name: str, timeout_s: float = 5) -> dict[str, Any]:
        """Call a tool on the lane; the whole answer."""
        assert self.lane is not None
        modern = self.session.is_modern
        params: dict[str, Any] = {"name": name, "arguments": {}, **({"_meta": _META} if modern else {})}
        headers = (("Mcp-Name", name),) if modern else ()
        raw = await self.lane.request("tools/call", json.dumps(params).encode(), headers=headers, timeout_s=timeout_s)
        assert raw is not None
        return json.loads(raw)

    async def by_session(self, name: str) -> dict[str, Any]:
        """Call a tool over the session; the answer as the lane would give it, or the transport's own error."""
        try:
            return {"result": await self.session.request("tools/call", {"name": name, "arguments": {}})}
        except MCPError as error:
            if (fault := transport_fault(error)) is not None:
                raise fault from error
            return {"error": {"code": error.code, "message": error.message}}

    async def call(self, way: str, name: str) -> dict[str, Any]:
        """Call a tool by one of the two ways."""
        return await (self.by_lane(name) if way == "lane" else self.by_session(name))


async def until(condition: Callable[[], object]) -> None:
    """Return once the condition holds; fail after some seconds."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 – what is waited for happens in a server
            await asyncio.sleep(0.01)


@asynccontextmanager
async def connected(
    server: Server, *, limit: int = 1_000_000, url: str = "", pool: SharedPool | None = None, transport: Any = "auto"
) -> AsyncGenerator[Client]:
    """A session with the server that has begun."""
    launch = HttpLaunch(url or server.url, {"Authorization": Secret("Bearer the-owners-token")}, transport)
    pool, hearing = pool or SharedPool(), Hearing()
    try:
        async with (
            open_http(HttpTarget("b", launch, limit, {}), pool) as http,
            RelaySession(http.streams, hearing, capabilities={}, timeout_s=10) as session,
        ):
            await session.negotiate()
            if http.lane is not None:
                # Goes out after the session has begun, from when on there is a lane.
                await session.request("tools/list", {})
            yield Client(session, http.lane, hearing)
    finally:
        await pool.shut()
