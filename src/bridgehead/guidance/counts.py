"""Which tools of a view belong where, counted so that the sums add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bridgehead.catalog import BUILTIN, BackendStatus, Entry, Group, Snapshot, State, View
from bridgehead.guidance.words import count


@dataclass(frozen=True, slots=True)
class Tally:
    """The tools of one view, by the groups of that view.

    Every tool is in at least one group of `by_group`, or in exactly one of `own` and `ungrouped`.

    Attributes:
        by_group: The groups that are on, in configured order, with their tools in the view.
        own: Tools of the bridge itself that are in none of these groups.
        ungrouped: Tools of backends that are in none of these groups.
        shared: Tools in more than one of these groups.
        surplus: By how much the sum of all rows exceeds the number of tools, because of `shared`.
        total: How many tools there are.
    """

    by_group: tuple[tuple[Group, tuple[Entry, ...]], ...]
    own: tuple[Entry, ...]
    ungrouped: tuple[Entry, ...]
    shared: tuple[Entry, ...]
    surplus: int
    total: int


def tally(view: View, snapshot: Snapshot) -> Tally:
    """Count the tools of the view."""
    groups = [group for group in snapshot.groups if group.enabled and view.group in (None, group.name)]
    names = frozenset(group.name for group in groups)
    tools = tuple(view.tools.values())
    loose = [tool for tool in tools if not tool.groups & names]
    shared = tuple(tool for tool in tools if len(tool.groups & names) > 1)
    return Tally(
        by_group=tuple((group, tuple(tool for tool in tools if group.name in tool.groups)) for group in groups),
        own=tuple(tool for tool in loose if tool.backend == BUILTIN),
        ungrouped=tuple(tool for tool in loose if tool.backend != BUILTIN),
        shared=shared,
        surplus=sum(len(tool.groups & names) - 1 for tool in shared),
        total=len(tools),
    )


def troubles(view: View, snapshot: Snapshot, statuses: Mapping[str, BackendStatus]) -> list[str]:
    """One line for each backend of the view whose tools are stale or missing.

    A backend that has never listed anything is named on the view of everything only, since its groups cannot be known.
    """
    known = dict.fromkeys((*statuses, *snapshot.listings))
    lines: list[str] = []
    for name in known:
        if name == BUILTIN:
            continue
        status = statuses.get(name)
        listing = snapshot.listings.get(name)
        held = sum(1 for tool in view.tools.values() if tool.backend == name)
        if name in view.backends:
            stale = listing is not None and listing.stale
            if (status is None or status.state is State.READY) and not stale:
                continue
            tools = f"Its {count(held, 'tool')} here {'is' if held == 1 else 'are'} listed as last seen"
            lines.append(f"- `{name}` {_state(status)} {tools}; calls may fail until it is back.")
        elif view.group is None and listing is None and status is not None and status.state in _AWAITED:
            lines.append(f"- `{name}` {_state(status)} It is unavailable: none of its tools are known yet.")
    return lines


_AWAITED = (State.STARTING, State.DOWN, State.BROKEN)


def _state(status: BackendStatus | None) -> str:
    if status is None or status.state is State.READY:
        return "is stale: it has not confirmed its tools since the bridge started."
    words = f"is {status.state.value} since {status.since:%Y-%m-%d %H:%M:%S} UTC"
    cause = (status.cause or "").strip()
    return f"{words}: {cause.rstrip('.')}." if cause else f"{words}."
