"""What became of the names that backends gave, and whether the groups hold what they were meant to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bridgehead.catalog import BUILTIN, Entry, Listing, Rules, Snapshot, merge
from bridgehead.config import Settings
from bridgehead.diagnosis.model import Finding, Level

_SHOWN = 5


def name_findings(settings: Settings, listings: Mapping[str, Listing]) -> list[Finding]:
    """Names that were cut, cleaned or taken; tools in no group; choices of groups that nothing fits.

    Args:
        settings: The configuration.
        listings: What each backend that came up offers.
    """
    unprefixed = frozenset(name for name, backend in settings.backends.items() if backend.namespace == "none")
    # With everything switched on, so that what is hidden is looked at too.
    groups = {name: group.model_copy(update={"enabled": True}) for name, group in settings.groups.items()}
    snapshot = merge(1, listings, Rules((BUILTIN, *settings.backends), unprefixed, groups, ungrouped=True))
    return [
        *(Finding(Level.WARNING, "names", warning) for warning in snapshot.warnings),
        *_changed(snapshot, unprefixed),
        *_ungrouped(settings, snapshot),
        *_unmatched(settings, snapshot),
    ]


def _changed(snapshot: Snapshot, unprefixed: frozenset[str]) -> Iterator[Finding]:
    changed: dict[str, list[Entry]] = {}
    for entry in snapshot.everything.tools.values():
        plain = entry.name if entry.backend in unprefixed else f"{entry.backend}__{entry.name}"
        if entry.exposed != plain:
            changed.setdefault(entry.backend, []).append(entry)
    for backend, entries in changed.items():
        named = ", ".join(f"{entry.name!r} is {entry.exposed}" for entry in entries[:_SHOWN])
        more = f", and {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
        yield Finding(
            Level.WELL,
            f"backend {backend}",
            f"{len(entries)} of its names are too long or hold what clients do not take, and were changed: {named}{more}.",
        )


def _ungrouped(settings: Settings, snapshot: Snapshot) -> Iterator[Finding]:
    if not settings.groups:
        return
    loose: dict[str, list[str]] = {}
    for entry in snapshot.everything.tools.values():
        if not entry.groups:
            loose.setdefault(entry.backend, []).append(entry.name)
    hidden = settings.server.ungrouped == "hide"
    for backend, names in loose.items():
        some = f"{', '.join(names[:_SHOWN])}{', …' if len(names) > _SHOWN else ''}"
        if hidden:
            yield Finding(
                Level.WARNING,
                f"backend {backend}",
                f"{len(names)} of its tools are in no group, so nobody sees them: {some}.",
                'name them in a group, or set `ungrouped = "show"` under [server].',
            )
        else:
            yield Finding(
                Level.WELL,
                f"backend {backend}",
                f"{len(names)} of its tools are in no group, and shown to all: {some}.",
            )


def _unmatched(settings: Settings, snapshot: Snapshot) -> Iterator[Finding]:
    for group, sentences in snapshot.unmatched.items():
        mend = f"correct `members` under [groups.{group}]; bridgehead tools list shows the names."
        yield from (Finding(Level.WARNING, f"group {group}", sentence, mend) for sentence in sentences)
    for name, group in settings.groups.items():
        if not group.members:
            yield Finding(
                Level.WARNING, f"group {name}", "it has no members, so it holds no tool.", f"fill [groups.{name}]."
            )
