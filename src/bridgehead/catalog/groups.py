"""Which tools belong to which group: by backend and the tool's original name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase

from bridgehead.catalog.model import Group
from bridgehead.config import GroupMember, GroupSettings

BUILTIN = "builtin"
"""The name of the backend that the bridge itself is."""


def groups_of(backend: str, name: str, settings: Mapping[str, GroupSettings]) -> frozenset[str]:
    """The names of all groups, on or off, that hold the tool `name` of `backend`."""
    return frozenset(
        group
        for group, setting in settings.items()
        if any(member.backend == backend and _holds(member, name) for member in setting.members)
    )


def _holds(member: GroupMember, name: str) -> bool:
    if not (member.prefixes or member.names or member.globs):
        return True
    return (
        name in member.names
        or any(name.startswith(prefix) for prefix in member.prefixes)
        or any(fnmatchcase(name, glob) for glob in member.globs)
    )


def unmatched_choices(
    settings: Mapping[str, GroupSettings], offered: Mapping[str, Collection[str]]
) -> dict[str, tuple[str, ...]]:
    """What the groups choose that is not there, as sentences by group; groups that lack nothing are left out.

    Args:
        settings: The groups.
        offered: The original names of each backend's tools. A backend that has listed nothing yet is not in it, and
            nothing is said of it.
    """
    found = {
        name: tuple(
            sentence
            for member in group.members
            if member.backend in offered
            for sentence in _unmatched(member, offered[member.backend])
        )
        for name, group in settings.items()
    }
    return {name: sentences for name, sentences in found.items() if sentences}


def _unmatched(member: GroupMember, tools: Collection[str]) -> Iterator[str]:
    if not tools:
        yield f"{member.backend} offers no tool."
        return
    for name in member.names:
        if name not in tools:
            near = get_close_matches(name, tools, n=1)
            more = f"; did you mean `{near[0]}`?" if near else "."
            yield f"{member.backend} has no tool `{name}`{more}"
    for prefix in member.prefixes:
        if not any(name.startswith(prefix) for name in tools):
            yield f"no tool of {member.backend} begins with `{prefix}`."
    for glob in member.globs:
        if not any(fnmatchcase(name, glob) for name in tools):
            yield f"no tool of {member.backend} matches `{glob}`."


def catalog_groups(settings: Mapping[str, GroupSettings]) -> tuple[Group, ...]:
    """The groups in configured order."""
    return tuple(
        Group(
            name=name,
            title=setting.title or name.replace("-", " ").capitalize(),
            description=setting.description,
            enabled=setting.enabled,
            notes=setting.notes,
        )
        for name, setting in settings.items()
    )
