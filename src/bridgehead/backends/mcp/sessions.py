"""Which session a call goes over.

One main session serves nearly everything. A legacy server learns its client's capabilities once a session, so callers that can
be asked for something get sessions that say so: one for each set of capabilities, shared, until the server is seen to ask;
from then on one a caller, because a question does not say which call it belongs to.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from bridgehead.backends.mcp.connection import Connection
from bridgehead.backends.mcp.facts import Facts
from bridgehead.core import Channel, Era
from bridgehead.core.errors import BackendUnavailable

_ASKABLE = ("sampling", "elicitation", "roots")


class Source(Protocol):
    """Opens sessions and keeps what is learned from them."""

    @property
    def facts(self) -> Facts:
        """What is known of the server."""
        ...

    async def open(
        self, capabilities: Mapping[str, Any], *, legacy: bool, opened_for: Channel | None
    ) -> Connection:
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
        self._open: dict[Key, Connection] = {}
        self._opening: dict[Key, anyio.Lock] = {}

    def close_all(self) -> None:
        """End every further session."""
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    @asynccontextmanager
    async def lease(self, main: Connection, channel: Channel) -> AsyncIterator[Connection]:
        """The session for a call of this caller, for the time of the call."""
        wanted = askable(channel.capabilities) if channel.can_ask else {}
        if not wanted or (main.is_modern and not await self._may_speak_legacy(channel)):
            yield main
            return
        facts = self._source.facts
        alone = facts.asks is not False or ("roots" in wanted and facts.asks_roots is not False)
        if not alone:
            wanted.pop("roots", None)
        if not wanted:
            yield main
            return
        try:
            connection = await self._session(wanted, channel, alone=alone)
        except BackendUnavailable:
            if not main.is_modern:
                raise
            await self._source.learn(dual=False)
            yield main
            return
        passing = alone and channel.session is None
        try:
            yield connection
        finally:
            with anyio.CancelScope(shield=True):
                await self._note(connection, "roots" in wanted)
            if passing:
                connection.close()

    async def _may_speak_legacy(self, channel: Channel) -> bool:
        """Whether a caller of the older generation should be given a session of its own generation with a modern server."""
        return channel.era is Era.LEGACY and self._source.facts.dual is not False

    async def _session(self, wanted: Mapping[str, Any], channel: Channel, *, alone: bool) -> Connection:
        if alone and channel.session is None:
            return await self._source.open(wanted, legacy=True, opened_for=channel)
        key = Key(json.dumps(wanted, sort_keys=True), channel.session if alone else None)
        async with self._opening.setdefault(key, anyio.Lock()):
            known = self._open.get(key)
            if known is not None and known.is_open:
                return known
            connection = await self._source.open(wanted, legacy=True, opened_for=channel if alone else None)
            self._open[key] = connection
        if alone:

            async def forget() -> None:
                self._opening.pop(key, None)
                gone = self._open.pop(key, None)
                if gone is not None:
                    gone.close()

            channel.on_close(forget)
        return connection

    async def _note(self, connection: Connection, declared_roots: bool) -> None:
        """Learn from a call whether this server asks its client for things."""
        facts = self._source.facts
        asks = bool(connection.pushed & {"sampling/createMessage", "elicitation/create"})
        if asks != bool(facts.asks) or facts.asks is None:
            # Once seen, it stays known: that one call did not ask says nothing about the next.
            await self._source.learn(asks=asks or bool(facts.asks))
        if declared_roots and facts.asks_roots is None:
            await self._source.learn(asks_roots="roots/list" in connection.pushed)
