"""The pages: an overview, the groups, one group, one tool, and what the backends say of themselves."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

import orjson

from bridgehead.catalog import BUILTIN, BackendStatus, Entry, Group, Snapshot, View
from bridgehead.config import group_variable
from bridgehead.core.errors import ArgumentsInvalid, BridgeError, Kind, ToolNotFound
from bridgehead.guidance.counts import Tally, tally, troubles
from bridgehead.guidance.schema import example_arguments, parameter_lines
from bridgehead.guidance.words import (
    GUIDANCE_TOOL,
    READ_TOOL,
    RISK_WORDS,
    cell,
    code_list,
    count,
    first_sentence,
    one_line,
)

OVERVIEW, GROUPS, TOOL, BACKENDS = "overview", "groups", "tool", "backends"
_RESERVED = (OVERVIEW, GROUPS, TOOL, BACKENDS)
_LONG_GROUP = 50
"""Above this many tools a group's page gives names without descriptions."""
_SHARED_SHOWN = 5


class TopicUnknown(BridgeError):
    """There is no page of that name for this view."""

    kind = Kind.NOT_FOUND
    code = "unknown_topic"


def topics(view: View, snapshot: Snapshot) -> tuple[str, ...]:
    """The topics that `render` knows on this view; a group named like a fixed topic gives way to it."""
    groups = (group.name for group in snapshot.groups if view.group in (None, group.name))
    return tuple(dict.fromkeys((*_RESERVED, *groups)))


def render(
    topic: str,
    view: View,
    snapshot: Snapshot,
    tool_name: str | None = None,
    *,
    statuses: Mapping[str, BackendStatus] | None = None,
) -> str:
    """The page in Markdown, as the callers of `view` may read it.

    Args:
        topic: One of `topics(view, snapshot)`.
        view: What the reader sees; nothing else is named.
        snapshot: The snapshot that holds the view.
        tool_name: For the topic `tool`, the tool's exposed name.
        statuses: What is known of each backend, so that sick ones can be pointed out.

    Raises:
        TopicUnknown: No such topic; the hint names the valid ones.
        ArgumentsInvalid: The topic `tool` without a name.
        ToolNotFound: No tool of that name in the view.
    """
    health = troubles(view, snapshot, statuses or {})
    match topic:
        case "overview":
            return _overview(view, snapshot, health)
        case "groups":
            return _groups(view, snapshot)
        case "tool":
            return _tool(view, snapshot, tool_name)
        case "backends":
            return _backends(view, snapshot, health)
        case _:
            return _group_or_error(topic, view, snapshot, statuses or {})


def _group_or_error(topic: str, view: View, snapshot: Snapshot, statuses: Mapping[str, BackendStatus]) -> str:
    for group in snapshot.groups:
        if group.name == topic and view.group in (None, topic):
            return _group(group, view, snapshot, statuses)
    valid = topics(view, snapshot)
    near = difflib.get_close_matches(topic, valid, n=1)
    suggestion = f"Did you mean {near[0]!r}? " if near else ""
    raise TopicUnknown(
        "There is no guidance on that topic.",
        hint=f"{suggestion}The topics are {', '.join(valid)}.",
        details={"topics": list(valid)},
    )


def _overview(view: View, snapshot: Snapshot, health: list[str]) -> str:
    counted = tally(view, snapshot)
    lines = [_title(view, snapshot), "", _extent(view), "", "## How names are built", "", _naming(view), ""]
    if counted.by_group:
        lines += ["## Groups" if view.group is None else "## What is in it", "", *_table(counted), ""]
    if view.group is None:
        lines += _off(snapshot)
    if health:
        lines += ["## Backends that are not well", "", *health, ""]
    lines += ["## Where to go next", "", *_next_steps(view, counted)]
    return "\n".join(lines)


def _title(view: View, snapshot: Snapshot) -> str:
    if view.group is None:
        return "# What can be called through this bridge"
    title = next((group.title for group in snapshot.groups if group.name == view.group), view.group)
    return f"# What can be called in the group {title} (`{view.group}`)"


def _extent(view: View) -> str:
    own = sum(1 for tool in view.tools.values() if tool.backend == BUILTIN)
    backends = list(dict.fromkeys(tool.backend for tool in view.tools.values() if tool.backend != BUILTIN))
    named = f" ({code_list(backends)})" if backends else ""
    said = (
        f"**{count(len(view.tools), 'tool')}**: {len(view.tools) - own} from {count(len(backends), 'backend')}{named}"
    )
    parts = [f"{said}, and {own} of the bridge's own."]
    others = [
        count(len(things), noun)
        for things, noun in (
            (view.resources, "resource"),
            (view.templates, "resource template"),
            (view.prompts, "prompt"),
        )
        if things
    ]
    if others:
        parts.append(f"There are also {', '.join(others)}.")
    return " ".join(parts)


def _naming(view: View) -> str:
    rule = "A tool is named `{backend}__{tool}`; use names exactly as they are listed, never build them yourself."
    for tool in view.tools.values():
        if tool.exposed == f"{tool.backend}__{tool.name}":
            rule += f" `{tool.exposed}` is the tool `{tool.name}` of the backend `{tool.backend}`."
            break
    return rule + (
        " A name that ends in `_` and eight hex digits was shortened or cleaned, and is stable. The bridge's own tools,"
        " and those of backends configured so, have no prefix."
    )


def _table(counted: Tally) -> list[str]:
    lines = ["| Group | Tools | What it is for |", "|---|---|---|"]
    lines += [
        f"| `{group.name}` | {len(tools)} | {cell(group.title)}: {cell(group.description)} |"
        if group.description
        else f"| `{group.name}` | {len(tools)} | {cell(group.title)} |"
        for group, tools in counted.by_group
    ]
    if counted.own:
        lines.append(
            f"| (the bridge's own) | {len(counted.own)} | {code_list([tool.exposed for tool in counted.own])} |"
        )
    if counted.ungrouped:
        lines.append(f"| (in no group) | {len(counted.ungrouped)} | Tools of backends that no group holds |")
    lines.append(f"| **all** | **{counted.total}** | Distinct tools |")
    if counted.shared:
        both = "1 tool is" if len(counted.shared) == 1 else f"{len(counted.shared)} tools are"
        named = code_list([tool.exposed for tool in counted.shared[:_SHARED_SHOWN]])
        unnamed = len(counted.shared) - _SHARED_SHOWN
        more = f" and {unnamed} more" if unnamed > 0 else ""
        lines += [
            "",
            f"{both} in more than one group ({named}{more}), so the rows add up to {counted.total + counted.surplus}.",
        ]
    return lines


def _off(snapshot: Snapshot) -> list[str]:
    off = [group for group in snapshot.groups if not group.enabled]
    if not off:
        return []
    return [
        "## Groups that are off",
        "",
        (
            "Their tools are neither listed nor callable. The owner switches a group on with the variable named here, or"
            " with `enabled` in the group's configuration, which takes no restart."
        ),
        "",
        *(f"- `{group.name}` ({one_line(group.title)}): `{group_variable(group.name)}=on`" for group in off),
        "",
    ]


def _next_steps(view: View, counted: Tally) -> list[str]:
    steps = [f"- {_ask('groups')}: the groups with their tools."] if view.group is None else []
    example = next((group.name for group, tools in counted.by_group if tools), None)
    if example is not None:
        steps.append(f"- {_ask(example)}: the tools of one group, a line each.")
    tool = next((tool.exposed for tool in view.tools.values() if tool.backend != BUILTIN), None)
    tool = tool or next(iter(view.tools), None)
    if tool is not None:
        steps.append(f"- {_ask('tool', tool)}: one tool, its parameters and a call to fill in.")
    steps.append(f"- {_ask('backends')}: the backends, and what they say of themselves.")
    if READ_TOOL in view.tools:
        steps.append(f"- A result that was too long ends with a handle: `{READ_TOOL}` reads on from there.")
    return steps


def _ask(topic: str, tool_name: str | None = None) -> str:
    arguments = {"topic": topic} if tool_name is None else {"topic": topic, "tool_name": tool_name}
    return f"`{GUIDANCE_TOOL}` `{orjson.dumps(arguments).decode()}`"


def _groups(view: View, snapshot: Snapshot) -> str:
    counted = tally(view, snapshot)
    lines = ["# Groups", "", *_table(counted), ""]
    for group, tools in counted.by_group:
        names = code_list([tool.exposed for tool in tools]) or "nothing can be called now"
        lines += [f"**{one_line(group.title)}** (`{group.name}`, {count(len(tools), 'tool')}): {names}", ""]
    if counted.ungrouped:
        named = code_list([tool.exposed for tool in counted.ungrouped])
        lines += [f"**In no group** ({count(len(counted.ungrouped), 'tool')}): {named}", ""]
    if view.group is None:
        lines += _off(snapshot)
    lines.append(f"More on one group: {_ask(next((group.name for group, _ in counted.by_group), OVERVIEW))}.")
    return "\n".join(lines)


def _group(group: Group, view: View, snapshot: Snapshot, statuses: Mapping[str, BackendStatus]) -> str:
    lines = [f"# {one_line(group.title)} (`{group.name}`)", ""]
    if group.description:
        lines += [group.description, ""]
    if not group.enabled:
        lines.append(
            "This group is off: its tools are neither listed nor callable. The owner switches it on with"
            f" `{group_variable(group.name)}=on` and a restart, or with `enabled` in its configuration."
        )
        return "\n".join(lines)
    held = snapshot.by_group.get(group.name)
    # The group's own view also holds the bridge's own tools, which are there on every view.
    tools = [tool for tool in view.tools.values() if group.name in tool.groups]
    if group.notes:
        lines += [*_notes(group.notes, view, snapshot), ""]
    lines += ["## Tools", "", *_tool_lines(tools), ""]
    health = troubles(held, snapshot, statuses) if held is not None else []
    if health:
        lines += ["## Backends that are not well", "", *health, ""]
    if tools:
        lines.append(f"One tool in full: {_ask('tool', tools[0].exposed)}.")
    return "\n".join(lines)


def _tool_lines(tools: list[Entry]) -> list[str]:
    if not tools:
        return ["No tool of this group can be called now: its backends have not listed any, or are not running."]
    if len(tools) <= _LONG_GROUP:
        return [f"{count(len(tools), 'tool')}:", "", *(_line(tool) for tool in tools)]
    lines = [f"{len(tools)} tools, by backend and risk; the descriptions are left out because there are so many.", ""]
    sorts: dict[tuple[str, str], list[str]] = {}
    for tool in tools:
        sorts.setdefault((tool.backend, tool.risk.value), []).append(tool.exposed)
    lines += [f"- {backend}, {risk} ({len(names)}): {code_list(names)}" for (backend, risk), names in sorts.items()]
    return lines


def _line(tool: Entry) -> str:
    description = tool.shown.get("description")
    said = first_sentence(description) if isinstance(description, str) else ""
    return f"- `{tool.exposed}` ({tool.risk.value})" + (f": {said}" if said else "")


_WORD = re.compile(r"[A-Za-z0-9_.-]+")
_CODE = re.compile(r"`([^`\n]+)`")


def _notes(notes: str, view: View, snapshot: Snapshot) -> list[str]:
    """The owner's notes without the lines that name a tool which cannot be called now; how many, is said."""
    callable_names = view.tools.keys() | {tool.name for tool in view.tools.values()}
    listed = {str(tool.get("name")) for listing in snapshot.listings.values() for tool in listing.tools}
    absent = listed - callable_names

    def is_absent(line: str) -> bool:
        namespaced = (word for word in _words(line) if "__" in word.strip("_"))
        coded = {word for code in _CODE.findall(line) for word in _words(code)}
        return any(word not in callable_names for word in namespaced) or bool(coded & absent)

    kept = [line for line in notes.strip().splitlines() if not is_absent(line)]
    left_out = len(notes.strip().splitlines()) - len(kept)
    if left_out:
        kept += [
            "",
            f"({count(left_out, 'line')} of these notes left out: about tools that cannot be called here now.)",
        ]
    return kept


def _words(text: str) -> list[str]:
    """What could be tool names in the text; a full stop behind one is not part of it."""
    return [word.rstrip(".") for word in _WORD.findall(text)]


def _tool(view: View, snapshot: Snapshot, tool_name: str | None) -> str:
    if not tool_name:
        raise ArgumentsInvalid(
            "The topic 'tool' needs the name of a tool.",
            hint=f'give it as in {{"topic": "tool", "tool_name": "{next(iter(view.tools), GUIDANCE_TOOL)}"}}.',
        )
    tool = view.tools.get(tool_name)
    if tool is None:
        raise _unknown_tool(tool_name, view)
    shown = tool.shown
    enabled = {group.name for group in snapshot.groups if group.enabled and view.group in (None, group.name)}
    groups = sorted(tool.groups & enabled)
    description = shown.get("description")
    text = description.strip() if isinstance(description, str) and description.strip() else "(It has no description.)"
    parameters = parameter_lines(shown.get("inputSchema"))
    call = {"name": tool.exposed, "arguments": example_arguments(shown.get("inputSchema"))}
    origin = (
        "the bridge itself"
        if tool.backend == BUILTIN
        else f"the backend `{tool.backend}`, which calls it `{tool.name}`"
    )
    return "\n".join(
        [
            f"# `{tool.exposed}`",
            "",
            *(f"> {line}".rstrip() for line in text.splitlines()),
            "",
            f"- From: {origin}",
            f"- Risk: {tool.risk.value} ({RISK_WORDS[tool.risk]})",
            f"- Groups: {code_list(groups) or 'none'}",
            f"- Output schema: {'present' if shown.get('outputSchema') else 'none'}",
            "",
            "## Parameters",
            "",
            *(parameters or ["It takes no parameters, or does not name them."]),
            "",
            "## A call to fill in",
            "",
            "```json",
            orjson.dumps(call, option=orjson.OPT_INDENT_2, default=str).decode(),
            "```",
        ]
    )


def _unknown_tool(tool_name: str, view: View) -> ToolNotFound:
    same = [tool.exposed for tool in view.tools.values() if tool.name == tool_name]
    near = same or difflib.get_close_matches(tool_name, view.tools, n=3, cutoff=0.7)
    suggestion = f"did you mean {', '.join(near[:3])}? " if near else ""
    return ToolNotFound(
        "No tool of that name can be called here.",
        hint=f'{suggestion}{GUIDANCE_TOOL} {{"topic": "groups"}} names them all.',
    )


def _backends(view: View, snapshot: Snapshot, health: list[str]) -> str:
    lines = ["# Backends", ""]
    for name in _with_tools_first(view):
        listing = snapshot.listings.get(name)
        held = sum(1 for tool in view.tools.values() if tool.backend == name)
        lines += [f"## `{name}` ({count(held, 'tool')})", ""]
        said = (listing.instructions or "").strip() if listing is not None else ""
        if said:
            lines += ["It says of itself (its own words, and its own names for its tools):", ""]
            lines += [*(f"> {line}".rstrip() for line in said.splitlines()), ""]
        else:
            lines += ["It says nothing of itself.", ""]
    if health:
        lines += ["## Backends that are not well", "", *health, ""]
    if not health and not _with_tools_first(view):
        lines.append("No backend has anything to offer here now.")
    return "\n".join(lines)


def _with_tools_first(view: View) -> list[str]:
    ordered = dict.fromkeys(tool.backend for tool in view.tools.values())
    return [name for name in (*ordered, *sorted(view.backends - ordered.keys())) if name != BUILTIN]
