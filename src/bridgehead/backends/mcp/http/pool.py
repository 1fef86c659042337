"""The door of the HTTP transports: opens a session, and loads what that needs only when there is a server to reach.

aiohttp takes time and memory that a bridge in front of local programs alone should not pay.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from bridgehead.backends.mcp.http.lane import Lane
from bridgehead.config import HttpLaunch

Lookup = Callable[[str, int], Awaitable[Sequence[tuple[int, str]]]]
"""Resolves a name: from host and port to address families and addresses."""


class SharedPool:
    """The connections that all backends share: making them and their TLS context costs more than a hundred calls."""

    def __init__(self, lookup: Lookup | None = None) -> None:
        """Open nothing yet.

        Args:
            lookup: Resolves names; None: the system's resolver.
        """
        self._lookup = lookup
        self._connections: Any = None

    def connections(self) -> Any:
        """What connections come from, made when they are first needed: a `wire.Connections`."""
        if self._connections is None:
            make = import_module("bridgehead.backends.mcp.http.wire").Connections
            self._connections = make(self._lookup) if self._lookup is not None else make()
        return self._connections

    async def shut(self) -> None:
        """Close every connection."""
        if self._connections is not None:
            await self._connections.close()
            self._connections = None


@dataclass(frozen=True, slots=True)
class HttpSession:
    """An open transport.

    Attributes:
        streams: What the server says and where to write, as messages.
        lane: The short way, where the transport has one.
    """

    streams: tuple[Any, Any]
    lane: Lane | None


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """What is to be reached.

    Attributes:
        backend: The backend's name, for causes.
        forwarded: Headers of the caller that the session is opened for.
        limit: The most bytes of one message.
    """

    backend: str
    launch: HttpLaunch
    limit: int
    forwarded: Mapping[str, str]


@asynccontextmanager
async def open_http(target: HttpTarget, pool: SharedPool) -> AsyncGenerator[HttpSession]:
    """A session with a server over HTTP.

    Raises:
        BridgeError: It cannot be opened; from within the context, as part of a group, why it ended.
    """
    opening = import_module("bridgehead.backends.mcp.http.opening")
    async with opening.opened(target, pool.connections()) as session:
        yield session
