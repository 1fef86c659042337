"""The one catalog: providers publish into it, everyone else reads its snapshot.

A snapshot is never changed, only swapped, so a reader can hold one across awaits. The catalog is never emptied because a
backend is sick: its last good listing stays until a new one comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from bridgehead.catalog.merge import Rules, merge
from bridgehead.catalog.model import BackendStatus, Listing, Snapshot, State


class Part(StrEnum):
    """What a swap changed."""

    TOOLS = "tools"
    RESOURCES = "resources"
    PROMPTS = "prompts"


Listener = Callable[[frozenset[Part]], None]
"""Told, on the loop and without awaiting, which parts changed."""
UpdateListener = Callable[[str, str], None]
"""Told, likewise, the backend and the URI (its own) of a resource that has changed."""


class Catalog:
    """Holds the present snapshot and the status of every backend."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._statuses: dict[str, BackendStatus] = {}
        self._listeners: list[Listener] = []
        self._update_listeners: list[UpdateListener] = []
        self._snapshot = merge(1, {}, rules)

    @property
    def snapshot(self) -> Snapshot:
        """The catalog now."""
        return self._snapshot

    @property
    def statuses(self) -> Mapping[str, BackendStatus]:
        """The status of every backend, by name, in the order in which they were first reported."""
        return self._statuses

    def never_listed(self) -> list[str]:
        """The backends that are starting and of which nothing is known, not even from before."""
        return [
            name
            for name, status in self._statuses.items()
            if status.state is State.STARTING and name not in self._snapshot.listings
        ]

    def publish(self, backend: str, listing: Listing) -> None:
        """Replace what `backend` offers and tell the listeners what changed."""
        before = self._snapshot
        if before.listings.get(backend) == listing:
            return
        self._snapshot = merge(before.version + 1, {**before.listings, backend: listing}, self._rules)
        changed = _changed(before, self._snapshot)
        if changed:
            for listener in tuple(self._listeners):
                listener(changed)

    def report(self, status: BackendStatus) -> None:
        """Replace what is known of a backend."""
        self._statuses = {**self._statuses, status.name: status}

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after each change; returns what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def announce(self, backend: str, uri: str) -> None:
        """Tell the listeners that a resource has changed."""
        for listener in tuple(self._update_listeners):
            listener(backend, uri)

    def subscribe_to_updates(self, listener: UpdateListener) -> Callable[[], None]:
        """Call `listener` for each changed resource; returns what ends that."""
        self._update_listeners.append(listener)
        return lambda: self._update_listeners.remove(listener)


def _changed(before: Snapshot, after: Snapshot) -> frozenset[Part]:
    parts: set[Part] = set()
    if before.everything.tools != after.everything.tools or before.by_group.keys() != after.by_group.keys():
        parts.add(Part.TOOLS)
    if (
        before.everything.resources != after.everything.resources
        or before.everything.templates != after.everything.templates
    ):
        parts.add(Part.RESOURCES)
    if before.everything.prompts != after.everything.prompts:
        parts.add(Part.PROMPTS)
    return frozenset(parts)
