"""Changing one member of a client's JSON keeps every other byte."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.config.clients.json_text import NotAnObject, put, remove
from bridgehead.config.clients.jsonc import NotJson, parse, plain

ENTRY = {"command": "/opt/bridgehead", "args": ["mcp", "stdio"]}
PATH = ("mcpServers", "bridgehead")

KEYS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=6)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.text(max_size=6)
    | st.sampled_from(["// no", "/* no */", '"', ","]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def written(draw: st.DrawFn, value: Any, newline: str, depth: int = 0) -> str:
    """The value in one of the ways in which people and programs write it, comments included."""

    def blank() -> str:
        pieces = ["", "", " ", "  ", "\t", newline, newline + "  " * depth, " /* a, b */ ", f" // c {{{newline}"]
        return draw(st.sampled_from(pieces)) if draw(st.booleans()) else ""

    if isinstance(value, dict | list):
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        parts: list[str] = []
        items: list[tuple[str | None, Any]] = (
            list(cast("dict[str, Any]", value).items())
            if isinstance(value, dict)
            else [(None, one) for one in cast("list[Any]", value)]
        )
        for key, item in items:
            name = "" if key is None else json.dumps(key, ensure_ascii=draw(st.booleans())) + blank() + ":" + blank()
            parts.append(blank() + name + draw(written(item, newline, depth + 1)) + blank())
        tail = draw(st.sampled_from(["", ","])) if parts else ""
        return opening + ",".join(parts) + tail + blank() + closing
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, Any]:
    """A client's file with other keys before and after its servers, and at least one server."""
    servers = draw(st.dictionaries(KEYS.filter(lambda key: key != PATH[1]), VALUES, min_size=1, max_size=3))
    around = draw(st.dictionaries(KEYS.filter(lambda key: key != PATH[0]), VALUES, max_size=3))
    keys = draw(st.permutations([*around, PATH[0]]))
    value = {key: servers if key == PATH[0] else around[key] for key in keys}
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    before, after = draw(st.sampled_from(["", newline, f"// first{newline}"])), draw(st.sampled_from(["", newline]))
    return before + draw(written(value, newline)) + after, value


@given(documents())
def test_a_member_that_was_put_in_and_taken_out_leaves_the_same_bytes(document: tuple[str, Any]) -> None:
    text, value = document

    changed = put(text, PATH, ENTRY)

    servers = {**value["mcpServers"], "bridgehead": ENTRY}
    assert plain(parse(changed)) == {**value, "mcpServers": servers}
    assert remove(changed, PATH) == text


@given(documents())
def test_a_changed_member_changes_nothing_else(document: tuple[str, Any]) -> None:
    text, value = document

    twice = put(put(text, PATH, {"url": "http://127.0.0.1:1/mcp"}), PATH, ENTRY)

    assert plain(parse(twice)) == {**value, "mcpServers": {**value["mcpServers"], "bridgehead": ENTRY}}
    assert remove(twice, PATH) == text


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.sampled_from([None, 2, 4, "\t"]))
def test_servers_are_added_where_a_file_has_none(value: dict[str, Any], indent: Any) -> None:
    value.pop(PATH[0], None)
    text = json.dumps(value, indent=indent)

    changed = put(text, PATH, ENTRY)

    assert json.loads(changed) == {**value, "mcpServers": {"bridgehead": ENTRY}}
    assert json.loads(remove(changed, PATH[:1])) == value
    if value:
        assert remove(changed, PATH[:1]) == text


def test_what_is_added_looks_like_what_is_there() -> None:
    text = '{\n\t"mcpServers": {\n\t\t"a": {"url": "x"} // mine\n\t}\n}\n'

    assert put(text, PATH, {"url": "y"}) == (
        '{\n\t"mcpServers": {\n\t\t"a": {"url": "x"}, // mine\n\t\t"bridgehead": {\n\t\t\t"url": "y"\n\t\t}\n\t}\n}\n'
    )


def test_what_is_there_twice_elsewhere_is_nobodys_business() -> None:
    assert put('{"x":1,"x":2}', ("a",), 1) == '{"x":1,"x":2,"a":1}'


def test_an_empty_file_becomes_a_document() -> None:
    assert put("", PATH, {"url": "y"}) == '{\n  "mcpServers": {\n    "bridgehead": {\n      "url": "y"\n    }\n  }\n}\n'
    assert put("{}", ("a",), 1) == '{\n  "a": 1\n}'
    assert put('{"mcpServers":{}}', PATH, 1) == '{"mcpServers":{"bridgehead":1}}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "is no object"),
        ('{"mcpServers": []}', "is no object"),
        ('{"mcpServers": null}', "is no object"),
        ('{"mcpServers": {}, "mcpServers": {}}', "is there more than once"),
        ('{"mcpServers": {"bridgehead": 1, "bridgehead": 2}}', "is there more than once"),
    ],
)
def test_what_is_not_the_shape_of_such_a_file_is_refused(text: str, problem: str) -> None:
    with pytest.raises(NotAnObject) as refused:
        put(text, PATH, ENTRY)
    assert refused.value.problem == problem


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1', (1, 8)),
        ('{"a": 1,\n  b: 2}', (2, 3)),
        ('{"a" 1}', (1, 6)),
        ('{"a": 1 "b": 2}', (1, 9)),
        ('{"a": /* }', (1, 7)),
        ('{"a": 01}', (1, 7)),
        ('{"a": "\n"}', (1, 7)),
        ('{"a": "\\q"}', (1, 7)),
        ("{} {}", (1, 4)),
        ("{,}", (1, 2)),
        ('{"a": [1 2]}', (1, 10)),
        ('{"a":' * 300 + "1" + "}" * 300, (1, 1006)),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, place: tuple[int, int]) -> None:
    with pytest.raises(NotJson) as refused:
        put(text, PATH, ENTRY)
    assert (refused.value.line, refused.value.column) == place


@given(VALUES)
def test_plain_json_is_read_as_json(value: Any) -> None:
    assert plain(parse(json.dumps(value))) == value
