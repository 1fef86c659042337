"""From what every backend lists to what callers see: names, clashes, groups and views, as one pure function.

The same listings in the same configured order always give the same snapshot, whatever the order in which backends came up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from bridgehead.catalog.groups import BUILTIN, catalog_groups, groups_of, unmatched_choices
from bridgehead.catalog.model import Definition, Entry, Listing, Snapshot, View
from bridgehead.catalog.names import exposed_name, qualified_uri, with_tail
from bridgehead.config import GroupSettings
from bridgehead.core import Risk


@dataclass(frozen=True, slots=True)
class Rules:
    """What the configuration says about merging.

    Attributes:
        order: Backends in the order in which they win a clash; the built-in backend is always first.
        unprefixed: Backends whose names are passed through.
        groups: Group settings by name.
        ungrouped: Whether tools in no group are visible.
    """

    order: tuple[str, ...]
    unprefixed: frozenset[str]
    groups: Mapping[str, GroupSettings]
    ungrouped: bool


@dataclass(slots=True)
class _Merged:
    """The tables while they are filled."""

    tools: dict[str, Entry]
    resources: dict[str, Entry]
    templates: dict[str, Entry]
    prompts: dict[str, Entry]
    warnings: list[str]
    backends: set[str]


def merge(version: int, listings: Mapping[str, Listing], rules: Rules) -> Snapshot:
    """Build the snapshot of these listings."""
    merged = _Merged({}, {}, {}, {}, [], set())
    for backend in (BUILTIN, *(name for name in rules.order if name != BUILTIN)):
        listing = listings.get(backend)
        if listing is not None:
            _add(merged, backend, listing, rules)
    groups = catalog_groups(rules.groups)
    enabled = {group.name for group in groups if group.enabled}

    def visible(entry: Entry) -> bool:
        if entry.backend == BUILTIN:
            return True
        return bool(entry.groups & enabled) if entry.groups else rules.ungrouped

    everything = _view(version, None, merged, {name: tool for name, tool in merged.tools.items() if visible(tool)})
    by_group: dict[str, View] = {}
    for group in enabled:
        held = {name: tool for name, tool in merged.tools.items() if group in tool.groups or tool.backend == BUILTIN}
        by_group[group] = _view(version, group, merged, held)
    return Snapshot(
        version=version,
        groups=groups,
        everything=everything,
        by_group=by_group,
        listings=dict(listings),
        hidden=len(merged.tools) - len(everything.tools),
        warnings=tuple(merged.warnings),
        unmatched=unmatched_choices(
            rules.groups,
            {
                backend: frozenset(str(tool.get("name")) for tool in listing.tools)
                for backend, listing in listings.items()
            },
        ),
    )


def _view(version: int, group: str | None, merged: _Merged, tools: dict[str, Entry]) -> View:
    """A view of these tools; resources and prompts follow the backends whose tools are in it.

    The view of everything also holds backends that offer no tools at all, and those that list nothing: one may still know
    resources that it does not list.
    """
    backends = frozenset(tool.backend for tool in tools.values())
    if group is None:
        hidden = frozenset(tool.backend for tool in merged.tools.values()) - backends
        backends |= merged.backends - hidden
    return View(
        version=version,
        group=group,
        tools=tools,
        resources={uri: entry for uri, entry in merged.resources.items() if entry.backend in backends},
        templates=tuple(entry for entry in merged.templates.values() if entry.backend in backends),
        prompts={name: entry for name, entry in merged.prompts.items() if entry.backend in backends},
        backends=backends,
    )


def _add(merged: _Merged, backend: str, listing: Listing, rules: Rules) -> None:
    merged.backends.add(backend)
    prefixed = backend not in rules.unprefixed and backend != BUILTIN
    for name, tool in _named(merged.warnings, backend, listing.tools, "name"):
        exposed = _free_name(merged.tools, merged.warnings, backend, name, prefixed=prefixed)
        merged.tools[exposed] = Entry(
            exposed=exposed,
            backend=backend,
            name=name,
            original=tool,
            shown=tool if exposed == name else {**tool, "name": exposed},
            groups=groups_of(backend, name, rules.groups),
            risk=risk_of(tool),
        )
    for name, prompt in _named(merged.warnings, backend, listing.prompts, "name"):
        exposed = _free_name(merged.prompts, merged.warnings, backend, name, prefixed=prefixed)
        shown = prompt if exposed == name else {**prompt, "name": exposed}
        merged.prompts[exposed] = Entry(exposed=exposed, backend=backend, name=name, original=prompt, shown=shown)
    _add_addresses(merged.resources, merged.warnings, backend, listing.resources, "uri")
    _add_addresses(merged.templates, merged.warnings, backend, listing.templates, "uriTemplate")


def _named(
    warnings: list[str], backend: str, definitions: Iterable[Definition], key: str
) -> Iterable[tuple[str, Definition]]:
    """The definitions that can be named at all, by name; of two with the same name the first, as the backend would have it."""
    named: dict[str, Definition] = {}
    for definition in definitions:
        name = definition.get(key)
        if not isinstance(name, str):
            continue
        if name in named:
            warnings.append(f"{backend} lists {name!r} more than once; the first is kept.")
        else:
            named[name] = definition
    return named.items()


def _free_name(taken: Mapping[str, Entry], warnings: list[str], backend: str, name: str, *, prefixed: bool) -> str:
    exposed = exposed_name(backend, name, prefixed=prefixed)
    holder = taken.get(exposed)
    if holder is None:
        return exposed
    renamed, attempt = with_tail(backend, name, prefixed=prefixed), 0
    while renamed in taken:
        attempt += 1
        renamed = with_tail(backend, name, prefixed=prefixed, attempt=attempt)
    warnings.append(f"{exposed!r} is offered by {holder.backend} and {backend}; the one of {backend} is {renamed!r}.")
    return renamed


def _add_addresses(
    table: dict[str, Entry], warnings: list[str], backend: str, definitions: Iterable[Definition], key: str
) -> None:
    for uri, definition in _named(warnings, backend, definitions, key):
        exposed, attempt = uri, 0
        while exposed in table:
            exposed = qualified_uri(backend, uri, attempt=attempt)
            attempt += 1
        if exposed != uri:
            warnings.append(f"{uri!r} is offered by {table[uri].backend} and {backend}; the latter is {exposed!r}.")
        shown: dict[str, Any] | Definition = definition if exposed == uri else {**definition, key: exposed}
        table[exposed] = Entry(exposed=exposed, backend=backend, name=uri, original=definition, shown=shown)


def risk_of(tool: Definition) -> Risk:
    """What a tool may do, by its annotations.

    Absent annotations mean not read-only and destructive (MCP 2025-11-25, `ToolAnnotations`).
    """
    annotations: Any = tool.get("annotations")
    if not isinstance(annotations, Mapping):
        return Risk.DESTRUCTIVE
    hints = cast("Mapping[str, Any]", annotations)
    if hints.get("readOnlyHint") is True:
        return Risk.READ
    return Risk.WRITE if hints.get("destructiveHint") is False else Risk.DESTRUCTIVE
