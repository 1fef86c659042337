"""Which session a call goes over.

One main session serves nearly everything. A legacy server learns its client's capabilities once a session, so callers that can
be asked for something get sessions that say so, pooled by the set of capabilities. Such a session carries one call at a time,
because a question of a legacy server does not say which call it belongs to. Roots are a caller's own, so a server that asks
for them gets a session for each caller. So does a backend that is configured to: a session each that all calls of that caller
share, whatever the generation.

A session without a call is ended after a while.
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
from bridgehead.core.errors import BackendBusy, BackendUnavailable

MOST_SESSIONS = 8
"""Sessions for one set of capabilities; beyond them calls share, and a question that could be for either is refused."""
MOST_CALLERS_OWN = 32
"""Sessions that are one caller's own, with one backend, before the longest idle are ended."""
MOST_FORWARDED = 64
"""Sessions that belong to what callers' headers say, with one backend, before the longest idle are ended."""
NOTHING_FORWARDED: Mapping[str, str] = MappingProxyType({})
_ASKABLE = ("sampling", "elicitation", "roots")
_LOOK_EVERY_S = 30.0


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
    legacy: bool = True
    forwarded: tuple[tuple[str, str], ...] = ()


def askable(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The declared capabilities that let a server ask its client for something."""
    return {key: capabilities[key] for key in _ASKABLE if isinstance(capabilities.get(key), Mapping)}


class Sessions:
    """The further sessions with one backend."""

    def __init__(self, source: Source, *, idle_limit_s: float = 600.0) -> None:
        """Have no session yet, and keep each for at most `idle_limit_s` without a call."""
        self._source = source
        self._idle_limit_s = idle_limit_s
        self._open: dict[Key, list[Connection]] = {}
        self._opening: dict[Key, anyio.Lock] = {}

    def close_all(self) -> None:
        """End every further session."""
        for connections in self._open.values():
            for connection in connections:
                connection.close()
        self._open.clear()

    async def end_idle_forever(self) -> None:
        """End the sessions that have had no call for too long, until cancelled."""
        while True:
            await anyio.sleep(min(_LOOK_EVERY_S, self._idle_limit_s / 4))
            since = anyio.current_time() - self._idle_limit_s
            for key, connections in list(self._open.items()):
                for connection in connections:
                    if not connection.leases and connection.idle_since <= since:
                        connection.close()
                self._keep(key, [connection for connection in connections if connection.is_open])

    def is_for_all(self, main: Connection, channel: Channel) -> bool:
        """Whether a call of this caller goes over the main session, as all do that need no session of their own."""
        wanted = self._wanted(main, channel)
        return not wanted or (len(wanted) == 1 and "roots" in wanted and self._source.facts.asks_roots is False)

    def _wanted(self, main: Connection, channel: Channel) -> dict[str, Any]:
        """The capabilities that have to be declared to the server for this caller."""
        if not channel.can_ask or not channel.capabilities:
            return {}
        if main.is_modern and (channel.era is not Era.LEGACY or self._source.facts.dual is False):
            # A modern server asks by its results, over the main session.
            return {}
        return askable(channel.capabilities)

    @asynccontextmanager
    async def lease(
        self,
        main: Connection,
        channel: Channel,
        caller: Hashable | None = None,
        forwarded: Mapping[str, str] = NOTHING_FORWARDED,
    ) -> AsyncGenerator[Connection]:
        """The session for a call, for the time of the call.

        Args:
            main: The main session.
            channel: The way back to the caller.
            caller: Who calls, where every caller has a session of its own; else None.
            forwarded: The caller's headers that the server gets too.

        Raises:
            BackendBusy: It would need a session of its own, and there are as many as there may be, all with a call.
            BackendUnavailable: There is none and none can be opened.
        """
        wanted = self._wanted(main, channel)
        rooted = caller is None and "roots" in wanted and self._source.facts.asks_roots is not False
        if not rooted and caller is None:
            wanted.pop("roots", None)
        if not wanted and caller is None:
            if not forwarded:
                yield main
                return
            async with self._forwarding(main, forwarded) as connection:
                yield connection
            return
        key = Key(
            json.dumps(wanted, sort_keys=True),
            caller if caller is not None else channel.session if rooted else None,
            bool(wanted) or not main.is_modern,
            tuple(sorted(forwarded.items())),
        )
        try:
            connection = await self._session(key, wanted, channel, alone=rooted or caller is not None)
        except BackendUnavailable:
            if not main.is_modern or not wanted:
                raise
            await self._source.learn(dual=False)
            async with self.lease(main, channel, caller, forwarded) as connection:
                yield connection
            return
        connection.leases += 1
        try:
            yield connection
        finally:
            connection.leases -= 1
            connection.idle_since = anyio.current_time()
            asked = "roots/list" in connection.pushed
            known = self._source.facts.asks_roots
            if (asked and known is not True) or (rooted and known is None):
                # That it did not ask so far is a guess; that it asked is not, and outlives it.
                with anyio.CancelScope(shield=True):
                    await self._source.learn(asks_roots=asked)
            if (rooted and channel.session is None) or (connection.is_haunted and not connection.leases):
                connection.close()
            self._sweep()

    @asynccontextmanager
    async def _forwarding(self, main: Connection, forwarded: Mapping[str, str]) -> AsyncGenerator[Connection]:
        """The session of all callers whose headers say the same."""
        key = Key("", None, not main.is_modern, tuple(sorted(forwarded.items())))
        async with self._opening.setdefault(key, anyio.Lock()):
            open_now = [connection for connection in self._open.get(key, ()) if connection.is_open]
            if not open_now:
                self._make_room(lambda held: bool(held.forwarded), MOST_FORWARDED)
                open_now = [
                    await self._source.open({}, legacy=not main.is_modern, opened_for=None, forwarded=forwarded)
                ]
            self._open[key] = open_now
        connection = open_now[0]
        connection.leases += 1
        try:
            yield connection
        finally:
            connection.leases -= 1
            connection.idle_since = anyio.current_time()

    async def _session(self, key: Key, wanted: Mapping[str, Any], channel: Channel, *, alone: bool) -> Connection:
        """A session that is in no other call's way, or the least busy one where there are many; `alone`: its caller's."""
        forwarded = dict(key.forwarded)
        if alone and key.caller is None:
            return await self._source.open(wanted, legacy=True, opened_for=channel, forwarded=forwarded)
        # A channel that is but one request's is no way to its caller once that has been answered.
        opened_for = channel if alone and channel.session is not None else None
        async with self._opening.setdefault(key, anyio.Lock()):
            usable = sorted(
                (one for one in self._open.get(key, ()) if one.is_open and not one.is_haunted),
                key=lambda connection: connection.leases,
            )
            # One is enough where it is known whose it is, by the caller or by what its server may ask it.
            most = MOST_SESSIONS if wanted and (not alone or key.caller == channel.session) else 1
            if usable and (not usable[0].leases or len(usable) >= most):
                return usable[0]
            if alone:
                self._make_room(lambda held: held.caller is not None, MOST_CALLERS_OWN)
            if forwarded:
                self._make_room(lambda held: bool(held.forwarded), MOST_FORWARDED)
            connection = await self._source.open(wanted, legacy=key.legacy, opened_for=opened_for, forwarded=forwarded)
            connection.idle_since = anyio.current_time()
            connection.is_ones_own = alone
            if alone and not usable:
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
        """End the sessions of a kind that have been idle longest, where there are too many.

        A caller whose session was ended gets another with its next call.

        Raises:
            BackendBusy: There are too many, and none is idle.
        """
        held = [
            (key, connection)
            for key, connections in self._open.items()
            if counts(key)
            for connection in connections
            if connection.is_open
        ]
        surplus = len(held) - most + 1
        idle = sorted(
            ((key, connection) for key, connection in held if not connection.leases),
            key=lambda one: one[1].idle_since,
        )
        if surplus > len(idle):
            raise BackendBusy(
                f"{most} callers have sessions of their own with this backend, all of them with calls.",
                hint="wait for a call to end, then send this one again.",
            )
        for key, connection in idle[: max(0, surplus)]:
            connection.close()
            self._keep(key, [other for other in self._open[key] if other is not connection])

    def _sweep(self) -> None:
        """Keep one idle session a key."""
        for key, connections in list(self._open.items()):
            idle = [connection for connection in connections if not connection.leases]
            for connection in idle[1:]:
                connection.close()
            self._keep(key, [connection for connection in connections if connection not in idle[1:]])

    def _keep(self, key: Key, connections: list[Connection]) -> None:
        """Keep these sessions under that key, and nothing of a key without any."""
        if connections:
            self._open[key] = connections
            return
        self._open.pop(key, None)
        lock = self._opening.get(key)
        if lock is not None and not lock.locked():
            del self._opening[key]
