"""Which tools belong to which group: by backend and the tool's original name."""

from __future__ import annotations

from collections.abc import Mapping
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
