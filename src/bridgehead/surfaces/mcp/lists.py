"""The answers to list requests, as bytes, made once a catalog version and view.

A list of a thousand tools costs tens of milliseconds to build and serialise, and a memory copy to send. So the result object is
serialised once and only the envelope, with the request's id, is put around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import mcp_types as types

from bridgehead import __version__
from bridgehead.catalog import Definition, Entry, Snapshot, View
from bridgehead.core import Era, as_mapping
from bridgehead.core.json import dumps

SERVER_IDENTITY = {"name": "bridgehead", "title": "Bridgehead", "version": __version__}
LISTS_FRESH_MS = 5_000
"""How long a client may keep a list without asking; changes are announced besides."""

_KEYS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
LIST_METHODS = frozenset(_KEYS)


class Lists:
    """The lists of one view, for both generations."""

    def __init__(self, view: Callable[[], View | None]) -> None:
        self._view = view
        self._version = 0
        self._made: dict[tuple[str, Era], bytes] = {}

    def result(self, method: str, era: Era) -> dict[str, Any]:
        """The result object for a list method."""
        view = self._view()
        key = _KEYS[method]
        shown = list(_shown(view, method, era)) if view is not None else []
        if era is Era.LEGACY:
            return {key: shown}
        return {
            key: shown,
            "resultType": "complete",
            "ttlMs": LISTS_FRESH_MS,
            "cacheScope": "private",
            "_meta": {types.SERVER_INFO_META_KEY: SERVER_IDENTITY},
        }

    def result_bytes(self, method: str, era: Era) -> bytes:
        """The same as JSON, made at most once a catalog version."""
        view = self._view()
        version = view.version if view is not None else 0
        if version != self._version:
            self._made.clear()
            self._version = version
        made = self._made.get((method, era))
        if made is None:
            made = self._made[method, era] = dumps(self.result(method, era))
        return made


def _shown(view: View, method: str, era: Era) -> Iterable[Definition]:
    entries: Iterable[Entry]
    match method:
        case "tools/list":
            entries = view.tools.values()
            if era is Era.LEGACY:
                return (_for_legacy(entry.shown) for entry in entries)
        case "resources/list":
            entries = view.resources.values()
        case "resources/templates/list":
            entries = view.templates
        case _:
            entries = view.prompts.values()
    return (entry.shown for entry in entries)


def _for_legacy(tool: Definition) -> Definition:
    """Clients of the older generation refuse a whole list for an output schema that is no object (MCP 2025-11-25, tools)."""
    if "outputSchema" not in tool or as_mapping(tool["outputSchema"]).get("type") == "object":
        return tool
    return {key: value for key, value in tool.items() if key != "outputSchema"}


def input_schema_of(snapshot: Callable[[], Snapshot], group: str | None) -> Callable[[str], Mapping[str, Any] | None]:
    """A look-up of input schemas by exposed name, which the SDK needs to check `Mcp-Param-*` headers without listing."""

    def look_up(name: str) -> Mapping[str, Any] | None:
        view = snapshot().view(group)
        entry = view.tools.get(name) if view is not None else None
        return entry.original.get("inputSchema") if entry is not None else None

    return look_up
