"""The surfaces that can be reached, one a view: they come and go with the groups that are switched on.

A group that is switched on can be reached as soon as the catalog says so. One that is switched off is unknown at once to
whoever asks anew; calls that are in flight through it come to their end first, then its sessions and streams do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
from mcp.server.connection import Connection

from bridgehead.surfaces.mcp.calls import Inside
from bridgehead.surfaces.mcp.full import FullSurface
from bridgehead.surfaces.mcp.lane import FastLane
from bridgehead.surfaces.mcp.sdk import session_of
from bridgehead.surfaces.mcp.transport import AdaptiveSessions, AdaptiveTransport

_LEAVING_S = 60.0
"""How long calls in flight may go on in a group that was switched off."""


class Endpoint:
    """One view's surface, with its sessions, and its lane where there is one."""

    def __init__(self, inside: Inside, group: str | None, *, fast_lane: bool) -> None:
        self.surface = FullSurface(inside, group)
        self.sessions = AdaptiveSessions(self.surface.server)
        self.lane = FastLane(self.surface.calls, self.surface.view) if fast_lane else None
        self.surface.on_initialized = self._open_lane
        self._scope = anyio.CancelScope()
        self._ready = anyio.Event()
        self._calls = 0
        self._idle = anyio.Event()

    async def run(self) -> None:
        """Serve until it leaves or is cancelled."""
        with self._scope:
            async with self.sessions.run(), anyio.create_task_group() as tasks:
                await tasks.start(self.surface.announcements.run)
                self._ready.set()
                await anyio.sleep_forever()

    @property
    def is_ready(self) -> bool:
        """Whether it serves, which it nearly always does."""
        return self._ready.is_set()

    async def wait_ready(self) -> None:
        """Return as soon as it serves."""
        await self._ready.wait()

    def enter(self) -> None:
        """Hold it for a message and its answer."""
        self._calls += 1

    def exit(self) -> None:
        """Let go of it again."""
        self._calls -= 1
        if not self._calls:
            self._idle.set()

    async def leave(self) -> None:
        """End the streams that would last for ever, wait for calls in flight, and end."""
        self.surface.end_streams()
        with anyio.move_on_after(_LEAVING_S):
            while self._calls:
                self._idle = anyio.Event()
                await self._idle.wait()
        self._scope.cancel()

    def _open_lane(self, connection: Connection) -> None:
        """Let a session that has been initialized use the lane."""
        transport = session_of(self.sessions, connection.session_id or "")
        if self.lane is not None and isinstance(transport, AdaptiveTransport):
            self.lane.add(connection, transport)


class Endpoints:
    """The endpoint of everything, and that of each group that is on."""

    def __init__(self, inside: Inside, *, fast_lane: bool) -> None:
        """Open none yet; without `fast_lane` all calls go the SDK's way."""
        self._inside = inside
        self._fast_lane = fast_lane
        self._open: dict[str | None, Endpoint] = {}

    def get(self, group: str | None) -> Endpoint | None:
        """The endpoint of that group, or of everything; None where there is none."""
        return self._open.get(group)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Follow the catalog for as long as the context lasts, then end everything."""
        catalog = self._inside.catalog
        async with anyio.create_task_group() as tasks:
            self._follow(tasks)
            for endpoint in self._open.values():
                await endpoint.wait_ready()
            unsubscribe = catalog.subscribe(lambda _: self._follow(tasks))
            try:
                yield
            finally:
                unsubscribe()
                for endpoint in self._open.values():
                    endpoint.surface.end_streams()
                tasks.cancel_scope.cancel()

    def _follow(self, tasks: anyio.abc.TaskGroup) -> None:
        """Open and close what the catalog's groups say."""
        wanted = (None, *self._inside.catalog.snapshot.by_group)
        for group in [group for group in self._open if group not in wanted]:
            tasks.start_soon(self._open.pop(group).leave)
        for group in wanted:
            if group not in self._open:
                endpoint = self._open[group] = Endpoint(self._inside, group, fast_lane=self._fast_lane)
                tasks.start_soon(endpoint.run)
