"""The bridge's own tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import pytest

from bridgehead.backends.builtin import BuiltinBackend
from bridgehead.catalog import BUILTIN, Catalog, Listing, Rules
from bridgehead.config import GroupMember, GroupSettings
from bridgehead.core import Call, Caller, CallerId, CallId, Method, Outcome, Route, Silence
from bridgehead.core.errors import GroupNotFound, ToolNotFound

OWNER = Caller(CallerId("owner"), "Owner")
STRANGER = Caller(CallerId("stranger"), "Stranger")


class KeptTexts:
    """A `ResultReader` over texts in memory, by owner and handle."""

    def __init__(self, texts: Mapping[tuple[str, str], str]) -> None:
        self._texts = texts

    async def read(self, owner: str, handle: str, offset: int, length: int) -> tuple[str, int] | None:
        text = self._texts.get((owner, handle))
        return None if text is None else (text[offset : offset + length], len(text))


def call(name: str, arguments: dict[str, Any], *, group: str | None = None, caller: Caller = OWNER) -> Call:
    return Call(
        id=CallId("call_1"),
        caller=caller,
        method=Method.TOOL,
        target=name,
        arguments=arguments,
        channel=Silence(),
        surface="test",
        group=group,
        route=Route(BUILTIN, name, {}),
    )


def backend(texts: Mapping[tuple[str, str], str] | None = None) -> BuiltinBackend:
    groups = {
        "on": GroupSettings(members=(GroupMember(backend="box", names=("lamp",)),)),
        "off": GroupSettings(members=(GroupMember(backend="box", names=("trap",)),), enabled=False),
    }
    catalog = Catalog(Rules(("box",), frozenset(), groups, ungrouped=True))
    made = BuiltinBackend(lambda: catalog.snapshot, lambda: catalog.statuses, KeptTexts(texts or {}))
    catalog.publish(BUILTIN, made.listing())
    catalog.publish("box", Listing(tools=({"name": "lamp"}, {"name": "trap"}, {"name": "loose"})))
    return made


def texts_of(outcome: Outcome) -> list[str]:
    return [block["text"] for block in outcome.result["content"]]


async def test_guidance_without_arguments_is_the_overview_of_everything() -> None:
    outcome = await backend().run(call("guidance", {}))

    assert not outcome.is_error
    assert "isError" not in outcome.result
    (page,) = texts_of(outcome)
    assert "# What can be called through this bridge" in page
    assert "**4 tools**" in page


async def test_guidance_through_a_groups_url_is_confined_to_that_group() -> None:
    outcome = await backend().run(call("guidance", {"topic": "groups"}, group="on"))

    (page,) = texts_of(outcome)
    assert "box__lamp" in page
    assert "box__loose" not in page


async def test_guidance_on_a_tool_shows_the_built_in_ones_too() -> None:
    (page,) = texts_of(await backend().run(call("guidance", {"topic": "tool", "tool_name": "read_result"})))

    assert "- From: the bridge itself" in page
    assert "`length` (integer, optional, default 50000, at least 1, at most 100000)" in page


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"topic": "nonsense"}, "The topics are overview, groups, tool, backends, on, off."),
        ({"topic": "tool"}, "needs the name of a tool"),
        ({"topic": "tool", "tool_name": "box__trap"}, "No tool of that name"),
    ],
)
async def test_guidance_that_cannot_be_given_is_the_tools_own_failure(arguments: dict[str, Any], told: str) -> None:
    outcome = await backend().run(call("guidance", arguments))

    assert outcome.is_error
    assert outcome.result["isError"] is True
    assert told in texts_of(outcome)[0]


async def test_a_group_that_is_off_has_no_guidance_of_its_own() -> None:
    with pytest.raises(GroupNotFound):
        await backend().run(call("guidance", {}, group="off"))


async def test_a_stored_result_is_read_piece_by_piece_to_the_end() -> None:
    whole = "".join(chr(97 + number % 26) for number in range(250))
    kept = backend({("owner", "h1"): whole})

    first, where = texts_of(await kept.run(call("read_result", {"handle": "h1", "length": 100})))
    assert first == whole[:100]
    assert where == (
        "Characters 0 to 100 of 250. 150 are left; read on with read_result, the same handle and offset 100."
    )

    last, where = texts_of(await kept.run(call("read_result", {"handle": "h1", "offset": 100, "length": 100_000})))
    assert first + last == whole
    assert where == "Characters 100 to 250 of 250. This is the end."


async def test_the_default_piece_is_fifty_thousand_characters() -> None:
    kept = backend({("owner", "h1"): "x" * 60_000})

    text, where = texts_of(await kept.run(call("read_result", {"handle": "h1"})))

    assert len(text) == 50_000
    assert "10000 are left" in where


async def test_another_callers_handle_looks_like_one_that_never_was() -> None:
    kept = backend({("owner", "h1"): "secret"})

    stolen = await kept.run(call("read_result", {"handle": "h1"}, caller=STRANGER))
    invented = await kept.run(call("read_result", {"handle": "h2"}, caller=STRANGER))

    assert stolen == invented
    assert stolen.is_error
    assert "call the tool again" in texts_of(stolen)[0]


async def test_an_offset_past_the_end_says_where_the_end_is() -> None:
    outcome = await backend({("owner", "h1"): "short"}).run(call("read_result", {"handle": "h1", "offset": 9}))

    assert outcome.is_error
    assert "has 5 characters" in texts_of(outcome)[0]


async def test_a_tool_that_is_not_built_in_is_not_found() -> None:
    with pytest.raises(ToolNotFound):
        await backend().run(call("search", {}))


def test_both_tools_are_read_only_and_refuse_unknown_arguments() -> None:
    tools = {tool["name"]: tool for tool in backend().listing().tools}

    assert list(tools) == ["guidance", "read_result"]
    for tool in tools.values():
        assert tool["annotations"]["readOnlyHint"] is True
        validator = jsonschema_rs.validator_for(tool["inputSchema"])
        assert not validator.is_valid({"handle": "h", "surprise": 1})
    reading = jsonschema_rs.validator_for(tools["read_result"]["inputSchema"])
    assert reading.is_valid({"handle": "h", "offset": 0, "length": 100_000})
    for wrong in ({}, {"handle": "h", "offset": -1}, {"handle": "h", "length": 0}, {"handle": "h", "length": 100_001}):
        assert not reading.is_valid(wrong)
