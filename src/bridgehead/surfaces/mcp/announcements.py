"""Tells clients what has changed: over `subscriptions/listen` streams, and to the sessions of the older generation."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.abc
from mcp.server.connection import Connection
from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from bridgehead.catalog import Catalog, Part

_EVENTS: dict[Part, ServerEvent] = {
    Part.TOOLS: ToolsListChanged(),
    Part.RESOURCES: ResourcesListChanged(),
    Part.PROMPTS: PromptsListChanged(),
}


class Announcements:
    """One view's bus. Implements the SDK's `SubscriptionBus`."""

    def __init__(self, catalog: Catalog, group: str | None) -> None:
        self._catalog = catalog
        self._group = group
        self._listeners: dict[object, Callable[[ServerEvent], None]] = {}
        self._sessions: dict[Connection, set[str]] = {}

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Announce until cancelled."""
        async with anyio.create_task_group() as tasks:
            ends = (
                self._catalog.subscribe(lambda parts: self._lists_changed(tasks, parts)),
                self._catalog.subscribe_to_updates(lambda backend, uri: self._resource_changed(tasks, backend, uri)),
            )
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                for end in ends:
                    end()

    def add(self, session: Connection) -> Callable[[], None]:
        """Announce to a session of the older generation, until the returned function is called."""
        self._sessions.setdefault(session, set())

        def forget() -> None:
            self._sessions.pop(session, None)

        return forget

    def watch(self, session: Connection, uri: str) -> None:
        """Announce changes of that resource to the session."""
        self._sessions.setdefault(session, set()).add(uri)

    def unwatch(self, session: Connection, uri: str) -> None:
        """Stop announcing changes of that resource to the session."""
        self._sessions.get(session, set()).discard(uri)

    async def publish(self, event: ServerEvent) -> None:
        """Deliver an event to every open stream."""
        self._emit(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Deliver events to a stream, until the returned function is called."""
        token = object()
        self._listeners[token] = listener

        def forget() -> None:
            self._listeners.pop(token, None)

        return forget

    def _emit(self, event: ServerEvent) -> None:
        for listener in tuple(self._listeners.values()):
            listener(event)

    def _lists_changed(self, tasks: anyio.abc.TaskGroup, parts: frozenset[Part]) -> None:
        for part in sorted(parts):
            self._emit(_EVENTS[part])
        for session in tuple(self._sessions):
            tasks.start_soon(_tell_lists, session, parts)

    def _resource_changed(self, tasks: anyio.abc.TaskGroup, backend: str, uri: str) -> None:
        exposed = self._exposed(backend, uri)
        self._emit(ResourceUpdated(uri=exposed))
        for session, watched in tuple(self._sessions.items()):
            if exposed in watched:
                tasks.start_soon(session.send_resource_updated, exposed)

    def _exposed(self, backend: str, uri: str) -> str:
        """The URI by which callers know a backend's resource."""
        view = self._catalog.snapshot.view(self._group)
        for entry in view.resources.values() if view is not None else ():
            if entry.backend == backend and entry.name == uri:
                return entry.exposed
        return uri


async def _tell_lists(session: Connection, parts: frozenset[Part]) -> None:
    if Part.TOOLS in parts:
        await session.send_tool_list_changed()
    if Part.PROMPTS in parts:
        await session.send_prompt_list_changed()
    if Part.RESOURCES in parts:
        await session.send_resource_list_changed()
