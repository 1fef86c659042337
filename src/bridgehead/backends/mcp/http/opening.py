"""Puts a session over HTTP together, for either transport."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlsplit

from bridgehead.backends.mcp.http.causes import Causes
from bridgehead.backends.mcp.http.legacy import open_legacy
from bridgehead.backends.mcp.http.pool import HttpSession, HttpTarget
from bridgehead.backends.mcp.http.streamable import open_streamable
from bridgehead.backends.mcp.http.wire import Connections, Wire


@asynccontextmanager
async def opened(target: HttpTarget, connections: Connections) -> AsyncGenerator[HttpSession]:
    """A session with the server."""
    url, limit = target.launch.url, target.limit
    headers = {name.lower(): secret.reveal() for name, secret in target.launch.headers.items()}
    # What is configured stands: a caller cannot put itself in the place of the owner's credentials.
    headers = {name.lower(): value for name, value in target.forwarded.items()} | headers
    causes = Causes(target.backend, url, _unshown(url, headers))

    def wire_to(address: str) -> Wire:
        return Wire(connections, address, headers, causes)

    if target.launch.transport == "sse":
        async with open_legacy(url, wire_to, causes, limit) as streams:
            yield HttpSession(streams, None)
        return
    async with open_streamable(wire_to(url), causes, limit) as (read, write, session):
        yield HttpSession((read, write), session)


def _unshown(url: str, headers: dict[str, str]) -> list[str]:
    """What no cause may hold: values of headers with and without their scheme, and what an address may hide."""
    parts = urlsplit(url)
    texts = [*headers.values(), *(value.rpartition(" ")[2] for value in headers.values())]
    texts += [value for _, value in parse_qsl(parts.query)]
    return [text for text in (*texts, parts.query, parts.password or "") if text]
