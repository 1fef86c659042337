"""The `instructions` text that clients give to the model when they connect.

Clients cut this text, some as early as after 512 characters, so what a model has to know comes first and fits in there;
what the backends say of themselves follows.
"""

from __future__ import annotations

from bridgehead.catalog import BUILTIN, Snapshot, View
from bridgehead.guidance.counts import tally
from bridgehead.guidance.words import GUIDANCE_TOOL, READ_TOOL, count, cut

HEAD_LENGTH = 512
"""Within how many characters everything needful has been said."""
_BACKEND_LENGTH = 1_500
_TOTAL_LENGTH = 12_000


def instructions(view: View, snapshot: Snapshot) -> str:
    """What a model should know of this view before its first call."""
    head = _head(view, snapshot)
    sections = [head]
    room = _TOTAL_LENGTH - len(head)
    left_out: list[str] = []
    for name, text in _own_words(view, snapshot):
        section = _section(name, text)
        if len(section) > room:
            left_out.append(name)
            continue
        room -= len(section)
        sections.append(section)
    if left_out:
        sections.append(
            f"The instructions of {count(len(left_out), 'more backend')} ({cut(', '.join(left_out), 300)}) are left out here;"
            f' {GUIDANCE_TOOL} {{"topic": "backends"}} has them in full.'
        )
    return "\n\n".join(sections)


def _head(view: View, snapshot: Snapshot) -> str:
    counted = tally(view, snapshot)
    start = (
        f"Bridgehead offers {count(counted.total, 'tool')} of many servers in one place."
        if view.group is None
        else f"Bridgehead's group {cut(view.group, 60)}: {count(counted.total, 'tool')}."
    )
    text = (
        f"{start} Names are {{backend}}__{{tool}}: use them exactly as listed."
        f' Unsure? Call {GUIDANCE_TOOL} {{"topic": "overview"}},'
        ' then a group\'s name as topic, or "tool" with tool_name.'
        f" A long result ends with a handle: {READ_TOOL} reads on."
    )
    if view.group is not None:
        return text
    groups = [f"{group.name} ({len(tools)})" for group, tools in counted.by_group]
    if not groups:
        return f"{text} There are no groups."
    return f"{text} {_fitting(groups, HEAD_LENGTH - len(text) - 1)}"


def _fitting(groups: list[str], room: int) -> str:
    """As many groups with their counts as fit, and how many more there are."""
    whole = f"{count(len(groups), 'group')}: {', '.join(groups)}."
    if len(whole) <= room:
        return whole
    for shown in range(len(groups) - 1, 0, -1):
        named = ", ".join(groups[:shown])
        text = f"{len(groups)} groups: {named} and {len(groups) - shown} more (topic groups)."
        if len(text) <= room:
            return text
    return f"{count(len(groups), 'group')}, named under the topic groups."


def _own_words(view: View, snapshot: Snapshot) -> list[tuple[str, str]]:
    # The order of the tools, not that in which backends came up, so that the text is the same on every run.
    order = dict.fromkeys((*(tool.backend for tool in view.tools.values()), *sorted(view.backends)))
    said = (
        (name, snapshot.listings[name].instructions) for name in order if name != BUILTIN and name in snapshot.listings
    )
    return [(name, text.strip()) for name, text in said if text and text.strip()]


def _section(name: str, text: str) -> str:
    heading = f"## {name} (its own words; its tools are named here without the prefix)"
    if len(text) <= _BACKEND_LENGTH:
        return f"{heading}\n{text}"
    shown = cut(text, _BACKEND_LENGTH)
    rest = f'(cut after {len(shown)} of {len(text)} characters; {GUIDANCE_TOOL} {{"topic": "backends"}} has the whole)'
    return f"{heading}\n{shown}\n{rest}"
