"""What the guidance pages promise: only what the reader can call, sums that add up, and a way on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from bridgehead.catalog import BUILTIN, BackendStatus, Catalog, Listing, Rules, Snapshot, State
from bridgehead.config import GroupMember, GroupSettings
from bridgehead.core.errors import ArgumentsInvalid, ToolNotFound
from bridgehead.guidance import TopicUnknown, render, topics

NOON = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def tool(name: str, description: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


def group(*members: GroupMember, enabled: bool = True, **more: Any) -> GroupSettings:
    return GroupSettings(members=members, enabled=enabled, **more)


def snapshot(
    listings: Mapping[str, Listing], groups: Mapping[str, GroupSettings] | None = None, *, ungrouped: bool = True
) -> Snapshot:
    catalog = Catalog(Rules(tuple(listings), frozenset(), groups or {}, ungrouped))
    catalog.publish(BUILTIN, Listing(tools=(tool("guidance"), tool("read_result"))))
    for name, listing in listings.items():
        catalog.publish(name, listing)
    return catalog.snapshot


def small() -> Snapshot:
    """Five tools of two backends: two groups on that share one tool, one group off, one tool in no group."""
    return snapshot(
        {
            "box": Listing(tools=(tool("file_read", "Reads."), tool("file_write"), tool("wipe"))),
            "web": Listing(tools=(tool("fetch"), tool("loose"))),
        },
        {
            "files": group(GroupMember(backend="box", prefixes=("file_",)), title="Files", description="On the disk."),
            "reading": group(
                GroupMember(backend="box", names=("file_read",)), GroupMember(backend="web", names=("fetch",))
            ),
            "danger-zone": group(GroupMember(backend="box", names=("wipe",)), enabled=False, title="Danger"),
        },
    )


def rows(page: str) -> dict[str, int]:
    found = re.findall(r"^\| \**`?([^|`*]+?)`?\** \| \**(\d+)\** \|", page, re.MULTILINE)
    return {name: int(number) for name, number in found}


def test_the_rows_of_the_overview_add_up_to_the_number_of_distinct_tools() -> None:
    page = render("overview", small().everything, small())

    counted = rows(page)
    total = counted.pop("all")
    assert counted == {"files": 2, "reading": 2, "(the bridge's own)": 2, "(in no group)": 1}
    assert total == 6 == len(small().everything.tools)
    assert sum(counted.values()) == 7
    assert "1 tool is in more than one group (`box__file_read`), so the rows add up to 7." in page
    assert "**6 tools**: 4 from 2 backends (`box`, `web`), and 2 of the bridge's own." in page


def test_a_group_that_is_off_is_named_with_its_switch_and_without_its_tools() -> None:
    held = small()
    for topic in topics(held.everything, held):
        if topic != "tool":
            assert "wipe" not in render(topic, held.everything, held), topic

    assert "`MCP_GROUP_DANGER_ZONE=on`" in render("overview", held.everything, held)
    page = render("danger-zone", held.everything, held)
    assert "is off" in page
    assert "`MCP_GROUP_DANGER_ZONE=on`" in page


def test_hidden_tools_are_named_nowhere() -> None:
    held = snapshot(
        {"box": Listing(tools=(tool("secret_door"), tool("lamp")))},
        {
            "light": group(GroupMember(backend="box", names=("lamp",))),
        },
        ungrouped=False,
    )

    for topic in topics(held.everything, held):
        if topic != "tool":
            assert "secret_door" not in render(topic, held.everything, held), topic
    with pytest.raises(ToolNotFound) as refused:
        render("tool", held.everything, held, "box__secret_door")
    assert "secret_door" not in refused.value.sentence()


def test_on_a_groups_view_only_that_group_exists() -> None:
    held = small()
    view = held.by_group["reading"]

    assert topics(view, held) == ("overview", "groups", "tool", "backends", "reading")
    for topic in ("overview", "groups", "backends", "reading"):
        page = render(topic, view, held)
        assert "file_write" not in page
        assert "danger" not in page.lower()
        assert "`files`" not in page
    assert rows(render("overview", view, held)) == {"reading": 2, "(the bridge's own)": 2, "all": 4}
    with pytest.raises(TopicUnknown):
        render("files", view, held)


def test_an_unknown_topic_is_answered_with_the_valid_ones() -> None:
    held = small()
    with pytest.raises(TopicUnknown) as refused:
        render("overvew", held.everything, held)

    assert "Did you mean 'overview'?" in refused.value.sentence()
    for topic in topics(held.everything, held):
        assert topic in refused.value.sentence()


def test_the_topic_tool_without_a_name_says_what_to_give() -> None:
    held = small()
    with pytest.raises(ArgumentsInvalid, match="needs the name"):
        render("tool", held.everything, held)


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    held = small()
    with pytest.raises(ToolNotFound) as by_typo:
        render("tool", held.everything, held, "box__file_raed")
    with pytest.raises(ToolNotFound) as by_original:
        render("tool", held.everything, held, "fetch")

    assert "box__file_read" in by_typo.value.sentence()
    assert "web__fetch" in by_original.value.sentence()


def test_a_group_page_gives_each_tool_one_line_with_its_risk() -> None:
    described = tool(
        "look", "Looks around, e.g. At the sky. Then\nreports.\n\nMore.", annotations={"readOnlyHint": True}
    )
    held = snapshot(
        {"eye": Listing(tools=(described, tool("blink")))},
        {
            "sight": group(
                GroupMember(backend="eye"), title="Sight", description="Seeing.", notes="Look before you leap."
            )
        },
    )

    page = render("sight", held.everything, held)

    assert page.startswith("# Sight (`sight`)\n\nSeeing.")
    assert "Look before you leap." in page
    assert "- `eye__look` (read): Looks around, e.g. At the sky.\n" in page
    assert "- `eye__blink` (destructive)\n" in page
    assert "2 tools:" in page


def test_a_long_group_is_compact_but_complete() -> None:
    names = [f"tool_{number}" for number in range(120)]
    held = snapshot(
        {"big": Listing(tools=tuple(tool(name, "Says much. " * 50) for name in names))},
        {"many": group(GroupMember(backend="big"))},
    )

    page = render("many", held.everything, held)

    assert "120 tools" in page
    assert all(f"`big__{name}`" in page for name in names)
    assert "Says much" not in page
    assert "left out" in page


def test_notes_that_name_absent_tools_lose_those_lines_and_say_so() -> None:
    notes = "Start with `look`.\nThen `eye__gone` helps.\nNever use `shut`.\nOr eye__look."
    held = snapshot(
        {"eye": Listing(tools=(tool("look"), tool("shut")))},
        {"sight": group(GroupMember(backend="eye", names=("look",)), notes=notes)},
        ungrouped=False,
    )

    page = render("sight", held.everything, held)

    assert "Start with `look`.\nOr eye__look." in page
    assert "gone" not in page
    assert "shut" not in page
    assert "2 lines of these notes left out" in page


def test_backends_that_are_not_well_are_pointed_out() -> None:
    held = snapshot({"old": Listing(tools=(tool("a"), tool("b")), stale=True), "well": Listing(tools=(tool("c"),))})
    statuses = {
        "old": BackendStatus("old", State.DOWN, NOON, "It exited with code 3."),
        "well": BackendStatus("well", State.READY, NOON),
        "never": BackendStatus("never", State.BROKEN, NOON, "The command 'nope' was not found."),
        "off": BackendStatus("off", State.DISABLED, NOON),
    }

    page = render("overview", held.everything, held, statuses=statuses)

    assert (
        "- `old` is down since 2026-11-30 12:00:00 UTC: It exited with code 3. Its 2 tools here are listed as" in page
    )
    assert "- `never` is broken since" in page
    assert "none of its tools are known" in page
    assert "`well` is" not in page
    assert "`off`" not in page


def test_without_statuses_a_stale_listing_is_still_called_stale() -> None:
    held = snapshot({"old": Listing(tools=(tool("a"),), stale=True)})

    assert "- `old` is stale" in render("overview", held.everything, held)


def test_a_tool_page_has_all_that_a_call_needs() -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where.\nAny city."},
            "unit": {"enum": ["C", "F"], "type": "string", "default": "C"},
            "days": {"anyOf": [{"type": "integer", "minimum": 2}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
            "place": {"$ref": "#/$defs/place"},
        },
        "required": ["city", "days", "tags", "place"],
        "additionalProperties": False,
        "$defs": {
            "tag": {"type": "string"},
            "place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
        },
    }
    weather = tool(
        "forecast", "Tells the weather.\nFor days.", annotations={"readOnlyHint": True}, outputSchema={"a": 1}
    )
    held = snapshot(
        {"sky": Listing(tools=({**weather, "inputSchema": schema},))},
        {"air": group(GroupMember(backend="sky")), "off": group(GroupMember(backend="sky"), enabled=False)},
    )

    page = render("tool", held.everything, held, "sky__forecast")

    assert "> Tells the weather.\n> For days." in page
    assert "- From: the backend `sky`, which calls it `forecast`" in page
    assert "- Risk: read (reads only)" in page
    assert "- Groups: `air`\n" in page
    assert "- Output schema: present" in page
    assert "- `city` (string, required): Where. Any city." in page
    assert '- `unit` (string, optional, one of "C", "F", default "C")' in page
    assert "- `days` (integer or null, required)" in page
    assert "- `tags` (array of string, required)" in page
    assert "- `place` (object, required) Fields: `lat`." in page
    assert "No other parameters are accepted." in page
    assert '"name": "sky__forecast"' in page
    assert '"place": {\n      "lat": 1\n    }' in page
    assert '"unit"' not in page


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        [],
        {"properties": [], "required": "x"},
        {"properties": {"a": True, "b": {"type": ["string", "null"]}, "c": {"$ref": "#/nowhere"}}, "required": ["z"]},
        {"properties": {"a": {"$ref": "#/properties/a"}}, "required": ["a"]},
        {"properties": {"a": {"type": "array", "items": {"$ref": "#/properties/a"}}}, "required": ["a"]},
        {"properties": {"a": {"enum": [{"x": 1}, None]}, "b": {"const": None}, "c": {"type": 7}}},
    ],
)
def test_odd_schemas_still_make_a_page(schema: Any) -> None:
    held = snapshot({"odd": Listing(tools=({"name": "one", "inputSchema": schema},))})

    assert render("tool", held.everything, held, "odd__one").startswith("# `odd__one`")


def test_a_group_without_tools_says_so() -> None:
    held = snapshot({}, {"empty": group(GroupMember(backend="gone"))})

    assert "No tool of this group can be called now" in render("empty", held.everything, held)
    assert "No backend has anything to offer" in render("backends", held.everything, held)


def test_the_backends_page_has_each_backends_own_words_in_full() -> None:
    words = "Ask nicely. " * 1_000
    held = snapshot({"talker": Listing(tools=(tool("a"),), instructions=words)})

    assert words.strip() in render("backends", held.everything, held)


def test_descriptions_cannot_break_the_table() -> None:
    held = snapshot({}, {"odd": group(GroupMember(backend="x"), title="A|B", description="c\n| d | 9 |")})

    assert rows(render("overview", held.everything, held)) == {"odd": 0, "(the bridge's own)": 2, "all": 2}
