"""Which session a call goes over.

One main session serves nearly everything. A legacy server learns its client's capabilities once a session, so callers that can
be asked for something get sessions that say so, pooled by the set of capabilities. Such a session carries one call at a time,
because a question of a legacy server does not say which call it belongs to. Roots are a caller's own, so a server that asks
for them gets a session for each caller.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
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
MOST_FORWARDED = 64
"""Sessions that belong to what callers' headers say, with one backend, before the longest idle are ended."""
NOTHING_FORWARDED: Mapping[str, str] = MappingProxyType({})
_ASKABLE = ("sampling", "elicitation", "roots")


class Source(Protocol):
    """Opens sessions and keeps what is learned from them."""

    @property
    def facts(self) -> Facts:
        """What is known of the server."""
        ...

    async def open(
        self,
        capabilities: Mapping[str, Any],
        *,
        legacy: bool,
        opened_for: Channel | None,
        forwarded: Mapping[str, str] = NOTHING_FORWARDED,
    ) -> Connection:
        """Open a further session, with these headers of its caller.

        Raises:
            BackendUnavailable: It cannot be opened.
        """
        ...

    async def learn(self, **facts: bool) -> None:
        """Keep these facts."""
        ...


@dataclass(frozen=True, slots=True)
class Key:
    """What sessions are pooled by.

    Attributes:
        capabilities: What is declared.
        caller: The caller's own session, where it has to be alone.
        forwarded: Headers of callers that the server may tie a session to, so that those with others get others.
    """

    capabilities: str
    caller: Hashable | None
    forwarded: tuple[tuple[str, str], ...] = ()


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

    @asynccontextmanager
    async def lease(
        self, main: Connection, channel: Channel, forwarded: Mapping[str, str] = NOTHING_FORWARDED
    ) -> AsyncGenerator[Connection]:
        """The session for a call of this caller, for the time of the call."""
        wanted = askable(channel.capabilities) if channel.can_ask else {}
        if main.is_modern and (channel.era is not Era.LEGACY or self._source.facts.dual is False):
            # A modern server asks by its results, over the main session.
            wanted = {}
        rooted = "roots" in wanted and self._source.facts.asks_roots is not False
        if not rooted:
            wanted.pop("roots", None)
        if not wanted:
            if not forwarded:
                yield main
                return
            async with self._forwarding(main, forwarded) as connection:
                yield connection
            return
        try:
            connection = await self._session(wanted, channel, forwarded, rooted=rooted)
        except BackendUnavailable:
            if not main.is_modern:
                raise
            await self._source.learn(dual=False)
            async with self.lease(main, channel, forwarded) as connection:
                yield connection
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

    @asynccontextmanager
    async def _forwarding(self, main: Connection, forwarded: Mapping[str, str]) -> AsyncGenerator[Connection]:
        """The session of all callers whose headers say the same."""
        key = Key("", None, tuple(sorted(forwarded.items())))
        async with self._opening.setdefault(key, anyio.Lock()):
            open_now = [connection for connection in self._open.pop(key, ()) if connection.is_open]
            if not open_now:
                self._make_room(lambda held: bool(held.forwarded), MOST_FORWARDED)
                open_now = [
                    await self._source.open({}, legacy=not main.is_modern, opened_for=None, forwarded=forwarded)
                ]
            # Put back at the end, so that what has been idle longest stands first.
            self._open[key] = open_now
        connection = open_now[0]
        connection.leases += 1
        try:
            yield connection
        finally:
            connection.leases -= 1

    async def _session(
        self, wanted: Mapping[str, Any], channel: Channel, forwarded: Mapping[str, str], *, rooted: bool
    ) -> Connection:
        """A session that is in no other call's way, or the least busy one where there are many."""
        opened_for = channel if rooted else None
        if rooted and channel.session is None:
            return await self._source.open(wanted, legacy=True, opened_for=opened_for, forwarded=forwarded)
        own = channel.session if rooted else None
        key = Key(json.dumps(wanted, sort_keys=True), own, tuple(sorted(forwarded.items())))
        async with self._opening.setdefault(key, anyio.Lock()):
            usable = sorted(
                (connection for connection in self._open.get(key, ()) if connection.is_open),
                key=lambda connection: connection.leases,
            )
            if usable and (not usable[0].leases or len(usable) >= MOST_SESSIONS):
                return usable[0]
            if rooted:
                self._make_room(lambda held: held.caller is not None, MOST_CALLERS_OWN)
            if forwarded:
                self._make_room(lambda held: bool(held.forwarded), MOST_FORWARDED)
            connection = await self._source.open(wanted, legacy=True, opened_for=opened_for, forwarded=forwarded)
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

    def _make_room(self, counts: Callable[[Key], bool], most: int) -> None:
        """End the idle sessions of a kind that have been there longest, where there are too many.

        A caller whose session was ended gets another with its next call.
        """
        held = [
            (key, connection) for key, connections in self._open.items() if counts(key) for connection in connections
        ]
        idle = [(key, connection) for key, connection in held if not connection.leases]
        for key, connection in idle[: max(0, len(held) - most + 1)]:
            connection.close()
            self._open[key] = [other for other in self._open[key] if other is not connection]
            if not self._open[key] and key.forwarded:
                del self._open[key]
                self._opening.pop(key, None)

    def _sweep(self) -> None:
        """Keep one idle session a key."""
        for key, connections in self._open.items():
            idle = [connection for connection in connections if not connection.leases]
            for connection in idle[1:]:
                connection.close()
            self._open[key] = [connection for connection in connections if connection not in idle[1:]]
