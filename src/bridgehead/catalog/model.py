"""The catalog's records: what backends list, what callers see, and the immutable snapshot that holds both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from bridgehead.core import Risk

Definition = Mapping[str, Any]
"""A tool, resource, template or prompt as MCP writes it on the wire."""

_EXPRESSION = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Listing:
    """All that one backend offers, every page, in the backend's own order and names.

    `stale` means that it was kept from before and the backend has not confirmed it since.
    """

    tools: tuple[Definition, ...] = ()
    resources: tuple[Definition, ...] = ()
    templates: tuple[Definition, ...] = ()
    prompts: tuple[Definition, ...] = ()
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    instructions: str | None = None
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing a caller can name.

    Attributes:
        exposed: The name (or URI, or URI template) that callers use.
        backend: The backend it belongs to.
        name: What the backend itself calls it.
        original: The definition as the backend gave it.
        shown: The definition as callers see it: the original with the exposed name in place.
        groups: The groups that hold it, switched on or off; empty for things in no group.
        risk: For tools, what it may do by its annotations.
    """

    exposed: str
    backend: str
    name: str
    original: Definition
    shown: Definition
    groups: frozenset[str] = frozenset()
    risk: Risk = Risk.READ


@dataclass(frozen=True, slots=True)
class Group:
    """A named set of tools with a URL of its own."""

    name: str
    title: str
    description: str
    enabled: bool
    notes: str | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What one kind of caller sees: everything visible, or one group. Dispatch looks names up here, so a view confines calls.

    Attributes:
        version: Changes whenever anything in the view may have changed.
        group: The group, or None for everything.
    """

    version: int
    group: str | None
    tools: Mapping[str, Entry]
    resources: Mapping[str, Entry]
    templates: tuple[Entry, ...]
    prompts: Mapping[str, Entry]
    backends: frozenset[str]

    def resource(self, uri: str) -> Entry | None:
        """The listed resource with that URI, else the template that makes it, else None."""
        listed = self.resources.get(uri)
        if listed is not None:
            return listed
        for entry in self.templates:
            if template_makes(entry.exposed, uri):
                return entry
        return None


def template_makes(template: str, uri: str) -> bool:
    """Whether an RFC 6570 template could make the URI; generous, since the backend decides in the end.

    An expression stands for any text. Searched piece by piece and not with one pattern, whose backtracking a template of many
    expressions could make as slow as it likes.
    """
    first, *others = _EXPRESSION.split(template)
    if not others:
        return uri == first
    *middle, last = others
    end = len(uri) - len(last)
    if not uri.startswith(first) or not uri.endswith(last) or end < len(first):
        return False
    position = len(first)
    for literal in middle:
        found = uri.find(literal, position, end)
        if found < 0:
            return False
        position = found + len(literal)
    return True


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole catalog at one moment; readers keep it as long as they like, writers swap in another.

    Attributes:
        version: Counts up with every swap.
        groups: In configured order.
        everything: The view of callers that are confined to no group.
        by_group: A view for each group that is switched on.
        hidden: How many listed tools no caller can see, because every group that holds them is off, or they are in none and
            such tools are hidden.
        warnings: Names that clashed and what became of them.
        unmatched: What groups choose that their backends do not offer, as sentences by group.
        stale: The backends whose listing is from before.
        instructions: What each backend says of itself.
    """

    version: int
    groups: tuple[Group, ...]
    everything: View
    by_group: Mapping[str, View]
    listings: Mapping[str, Listing]
    hidden: int = 0
    warnings: tuple[str, ...] = ()
    unmatched: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def view(self, group: str | None) -> View | None:
        """The view of a group that is switched on, or of everything for None; None for any other name."""
        return self.everything if group is None else self.by_group.get(group)


class State(StrEnum):
    """Where a backend is in its life."""

    STARTING = "starting"
    READY = "ready"
    DOWN = "down"
    """Failed or lost; it is tried again."""
    DISABLED = "disabled"
    """Not started, by configuration."""
    BROKEN = "broken"
    """Cannot be started until its configuration changes."""


@dataclass(frozen=True, slots=True)
class BackendStatus:
    """What is known of a backend now.

    Attributes:
        state: Where it is in its life.
        since: When it came into that state.
        cause: Why, in one sentence, where it is not ready.
        next_try: When it is started again, where it is down.
        restarts: How often it was started again since the bridge came up.
        protocol: The MCP revision spoken with it, once known.
        server: Its own name and version, once known.
        stderr: The last lines it wrote to standard error.
        skipped_lines: How many lines it wrote to standard output that are no messages.
    """

    name: str
    state: State
    since: datetime
    cause: str | None = None
    restarts: int = 0
    protocol: str | None = None
    server: str | None = None
    stderr: tuple[str, ...] = ()
    next_try: datetime | None = None
    skipped_lines: int = 0
