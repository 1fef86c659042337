"""MCP servers over HTTP: Streamable HTTP, and the older HTTP+SSE transport (2024-11-05).

All backends share one connection pool and one TLS context: making them costs more than a hundred calls. What is a backend's
own, its headers, lives in a thin client of its own over that pool.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import httpx2
import structlog
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bridgehead.config import HttpLaunch

log = structlog.get_logger(__name__)

_CONNECT_S = 10.0


class SharedPool(httpx2.AsyncBaseTransport):
    """A connection pool that outlives the clients that use it."""

    def __init__(self) -> None:
        self._pool = httpx2.AsyncHTTPTransport(
            limits=httpx2.Limits(max_connections=1_000, max_keepalive_connections=100, keepalive_expiry=30)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request over the pool.

        What befalls one call is that call's: the SDK lets an exception of one request end the session of all of them. So a
        call that fails on its way gets an answer that says so.
        """
        is_call = request.method == "POST" and ("mcp-session-id" in request.headers or _is_modern(request))
        try:
            response = await self._pool.handle_async_request(request)
        except (httpx2.TransportError, ValueError) as error:
            if not is_call or isinstance(error, httpx2.ConnectError):
                raise
            log.info("a request failed on its way", cause=type(error).__name__)
            return httpx2.Response(502, request=request)
        if response.status_code == HTTPStatus.NOT_FOUND and "mcp-session-id" in request.headers:
            # The session is over, whatever the body says of it (MCP 2025-11-25, transports, session management).
            await response.aclose()
            return httpx2.Response(404, request=request)
        if is_call and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _OneCallsStream(response.stream)
        return response

    async def aclose(self) -> None:
        """A client that closes leaves the pool open; `shut` closes it."""

    async def shut(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


class _OneCallsStream(httpx2.AsyncByteStream):
    """A body whose breaking off the SDK takes for the end of one answer."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._stream:
                yield part
        except httpx2.TransportError as error:
            raise httpx2.StreamError(f"the answer broke off: {type(error).__name__}") from error

    async def aclose(self) -> None:
        await self._stream.aclose()


def _is_modern(request: httpx2.Request) -> bool:
    return request.headers.get("mcp-protocol-version") in MODERN_PROTOCOL_VERSIONS


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
