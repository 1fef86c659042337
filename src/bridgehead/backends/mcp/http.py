"""MCP servers over HTTP: Streamable HTTP, and the older HTTP+SSE transport (2024-11-05).

All backends share one connection pool and one TLS context: making them costs more than a hundred calls. What is a backend's
own, its headers, lives in a thin client of its own over that pool.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from bridgehead.config import HttpLaunch

_CONNECT_S = 10.0


class SharedPool(httpx2.AsyncBaseTransport):
    """A connection pool that outlives the clients that use it."""

    def __init__(self) -> None:
        self._pool = httpx2.AsyncHTTPTransport(
            limits=httpx2.Limits(max_connections=1_000, max_keepalive_connections=100, keepalive_expiry=30)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request over the pool."""
        return await self._pool.handle_async_request(request)

    async def aclose(self) -> None:
        """A client that closes leaves the pool open; `shut` closes it."""

    async def shut(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


def client_for(pool: SharedPool, headers: Mapping[str, str]) -> httpx2.AsyncClient:
    """A client with these headers over the shared pool; reads have no deadline here, since each call has its own."""
    return httpx2.AsyncClient(
        transport=pool, headers=dict(headers), timeout=httpx2.Timeout(_CONNECT_S, read=None), trust_env=False
    )


@asynccontextmanager
async def open_http(launch: HttpLaunch, pool: SharedPool) -> AsyncGenerator[Any]:
    """The stream pair of a session with the server at `launch.url`."""
    headers = {key: secret.reveal() for key, secret in launch.headers.items()}
    if launch.transport == "sse":

        def factory(headers: dict[str, Any] | None = None, *_: Any, **__: Any) -> httpx2.AsyncClient:
            return client_for(pool, headers or {})

        async with sse_client(launch.url, headers=headers, httpx_client_factory=factory) as streams:
            yield streams
        return
    async with (
        client_for(pool, headers) as client,
        streamable_http_client(launch.url, http_client=client, max_sse_event_size=None) as streams,
    ):
        yield streams
