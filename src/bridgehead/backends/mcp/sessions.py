"""Which session a call goes over.

One main session serves nearly everything. A legacy server learns its client's capabilities once a session, so callers that can
be asked for something get sessions that say so, pooled by the set of capabilities. Such a session carries one call at a time,
because a question of a legacy server does not say which call it belongs to. Roots are a caller's own, so a server that asks
for them gets a session for each caller.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from bridgehead.backends.mcp.connection import Connection
from bridgehead.backends.mcp.facts import Facts
from bridgehead.core import Channel, Era
from bridgehead.core.errors import BackendUnavailable

MOST_SESSIONS = 8
"""Sessions for one set of capabilities; beyond them calls share, and a question that could be for either is refused."""
MOST_CALLERS_OWN = 32
"""Sessions that are one caller's own, with one backend, before the longest idle are ended."""
_ASKABLE = ("sampling", "elicitation", "roots")


class Source(Protocol):
    """Opens sessions and keeps what is learned from them."""

    @property
    def facts(self) -> Facts:
        """What is known of the server."""
        ...

    async def open(self, capabilities: Mapping[str, Any], *, legacy: bool, opened_for: Channel | None) -> Connection:
        """Open a further session.

        Raises:
            BackendUnavailable: It cannot be opened.
        """
        ...

    async def learn(self, **facts: bool) -> None:
        """Keep these facts."""
        ...


@dataclass(frozen=True, slots=True)
class Key:
    """What sessions are pooled by: the declared capabilities, and the caller's own session where it has to be alone."""

    capabilities: str
    caller: Hashable | None


def askable(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The declared capabilities that let a server ask its client for something."""
    return {key: capabilities[key] for key in _ASKABLE if isinstance(capabilities.get(key), Mapping)}


class Sessions:
    """The further sessions with one backend."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._open: dict[Key, list[Connection]] = {}
        self._opening: dict[Key, anyio.Lock] = {}

    def close_all(self) -> None:
        """End every further session."""
        for connections in self._open.values():
            for connection in connections:
                connection.close()
        self._open.clear()

    def is_for_all(self, main: Connection, channel: Channel) -> bool:
        """Whether a call of this caller goes over the main session, as all do that need no session of their own."""
        return not self._wanted(main, channel)

    def _wanted(self, main: Connection, channel: Channel) -> dict[str, Any]:
        """The capabilities that have to be declared to the server for this caller."""
        if not channel.can_ask or not channel.capabilities:
            return {}
        facts = self._source.facts
        if main.is_modern and (channel.era is not Era.LEGACY or facts.dual is False):
            # A modern server asks by its results, over the main session.
            return {}
        wanted = askable(channel.capabilities)
        if facts.asks_roots is False:
            wanted.pop("roots", None)
        return wanted

    @asynccontextmanager
    async def lease(self, main: Connection, channel: Channel) -> AsyncGenerator[Connection]:
        """The session for a call of this caller, for the time of the call."""
        wanted = self._wanted(main, channel)
        rooted = "roots" in wanted
        if not wanted:
            yield main
            return
        try:
            connection = await self._session(wanted, channel, rooted=rooted)
        except BackendUnavailable:
            if not main.is_modern:
                raise
            await self._source.learn(dual=False)
            yield main
            return
        connection.leases += 1
        try:
            yield connection
        finally:
            connection.leases -= 1
            asked = "roots/list" in connection.pushed
            known = self._source.facts.asks_roots
            if (asked and known is not True) or (rooted and known is None):
                # That it did not ask so far is a guess; that it asked is not, and outlives it.
                with anyio.CancelScope(shield=True):
                    await self._source.learn(asks_roots=asked)
            if rooted and channel.session is None:
                connection.close()
            self._sweep()

    async def _session(self, wanted: Mapping[str, Any], channel: Channel, *, rooted: bool) -> Connection:
        """A session that is in no other call's way, or the least busy one where there are many."""
        opened_for = channel if rooted else None
        if rooted and channel.session is None:
            return await self._source.open(wanted, legacy=True, opened_for=opened_for)
        key = Key(json.dumps(wanted, sort_keys=True), channel.session if rooted else None)
        async with self._opening.setdefault(key, anyio.Lock()):
            usable = sorted(
                (connection for connection in self._open.get(key, ()) if connection.is_open),
                key=lambda connection: connection.leases,
            )
            if usable and (not usable[0].leases or len(usable) >= MOST_SESSIONS):
                return usable[0]
            if rooted:
                self._make_room()
            connection = await self._source.open(wanted, legacy=True, opened_for=opened_for)
            if rooted and not usable:
                channel.on_close(lambda: self._forget(key))
                channel.on_roots_changed(lambda: self._tell_roots_changed(key))
            self._open[key] = [*usable, connection]
        return connection

    async def _forget(self, key: Key) -> None:
        """End the sessions of a caller that has gone."""
        self._opening.pop(key, None)
        for connection in self._open.pop(key, ()):
            connection.close()

    async def _tell_roots_changed(self, key: Key) -> None:
        """Tell a caller's own sessions that its roots changed."""
        for connection in self._open.get(key, ()):
            if connection.session is not None:
                await connection.session.announce_roots_changed()

    def _make_room(self) -> None:
        """End the idle sessions of the callers that have had theirs longest, where there are too many.

        A caller whose session was ended gets another with its next call.
        """
        held = [
            (key, connection)
            for key, connections in self._open.items()
            if key.caller is not None
            for connection in connections
        ]
        idle = [(key, connection) for key, connection in held if not connection.leases]
        for key, connection in idle[: max(0, len(held) - MOST_CALLERS_OWN + 1)]:
            connection.close()
            self._open[key] = [other for other in self._open[key] if other is not connection]

    def _sweep(self) -> None:
        """Keep one idle session a key."""
        for key, connections in self._open.items():
            idle = [connection for connection in connections if not connection.leases]
            for connection in idle[1:]:
                connection.close()
            self._open[key] = [connection for connection in connections if connection not in idle[1:]]
