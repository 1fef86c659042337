"""Arguments against the tool's schema, and schemas that nobody can trust."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bridgehead.core.errors import ArgumentsInvalid, LoopStopped
from bridgehead.gate.mending import arguments_error
from bridgehead.gate.schemas import Schemas, compile_schema
from tests.gate.parts import bench, call_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "pattern": "^/"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        "mode": {"enum": ["fast", "slow"]},
    },
    "required": ["path"],
    "additionalProperties": False,
}


async def refused(arguments: Any, schema: Any = SCHEMA) -> ArgumentsInvalid:
    gate = bench(schema=schema)
    with pytest.raises(ArgumentsInvalid) as caught:
        await gate.run(arguments=arguments)
    assert not gate.answering["fs"].calls
    return caught.value


async def test_arguments_that_fit_go_through_untouched() -> None:
    gate = bench(schema=SCHEMA)
    arguments = {"path": "/a", "lines": [{"n": 1}], "mode": "fast"}
    await gate.run(arguments=arguments)
    assert gate.answering["fs"].calls[0].arguments is arguments


async def test_arguments_that_were_left_out_are_an_empty_object() -> None:
    gate = bench()
    await gate.gate.run(call_of("fs__read", None))
    assert gate.answering["fs"].calls[0].arguments == {}


async def test_the_error_names_the_path_what_was_expected_and_how_to_mend_it() -> None:
    error = await refused({"path": "/a", "lines": [{"n": "one"}]})
    assert "/lines/0/n: expected integer" in error.message
    assert error.hint == "Make /lines/0/n an integer and call again."
    assert error.details["path"] == "/lines/0/n"
    assert error.details["schema"] == {"type": "integer"}


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({}, "Add 'path' (string) and call again."),
        ({"path": "/a", "mod": "fast"}, "Use 'mode' instead of 'mod'."),
        ({"path": "/a", "zzz": 1}, "Leave `zzz` out; known are `path`, `lines`, `mode`."),
        ({"path": "/a", "mode": "medium"}, "Set /mode to one of the listed values."),
        ({"path": "/a", "lines": "[1]"}, "Send /lines as JSON itself, not as a string that holds JSON."),
    ],
)
async def test_each_mistake_has_its_own_way_out(arguments: dict[str, Any], hint: str) -> None:
    assert (await refused(arguments)).hint == hint


@pytest.mark.parametrize(
    "arguments",
    [
        {"arguments": {"path": "/a"}},
        {"tool": "fs__read", "arguments": {"path": "/a"}},
        {"name": "read", "input": {"path": "/a"}},
        {"params": '{"path": "/a"}'},
    ],
)
async def test_arguments_wrapped_once_more_are_recognised(arguments: dict[str, Any]) -> None:
    error = await refused(arguments)
    assert "wrapped in" in (error.hint or "")
    assert '"path"' in (error.hint or "")


@given(st.text(min_size=8, alphabet="QXZ"), st.sampled_from(["path", "mode", "lines"]))
def test_no_error_repeats_an_arguments_value(value: str, key: str) -> None:
    arguments = {"path": "/", key: value}
    errors = list(compile_schema(SCHEMA).iter_errors(arguments))
    shown = repr(arguments_error("t", SCHEMA, arguments, errors).as_dict())
    assert value not in shown


async def test_at_most_five_problems_are_told() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    error = await refused({f"k{n}": n for n in range(20)}, schema)
    assert error.message.count("expected string") == 5
    assert "and 15 more" in error.message


async def test_the_schema_in_the_details_is_never_large() -> None:
    schema = {"type": "object", "properties": {"x": {"enum": ["v" * 100 + str(n) for n in range(1000)]}}}
    error = await refused({"x": 1}, schema)
    assert len(str(error.details["schema"])) < 2100
    assert len(error.sentence()) < 1000


async def test_arguments_nested_too_deep_are_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(70):
        deep = {"a": deep}
    assert "nested" in (await refused(deep, {"type": "object"})).message


async def test_arguments_that_are_no_object_are_refused() -> None:
    assert "not an object" in (await refused([1])).message


async def test_text_that_is_not_unicode_is_refused() -> None:
    assert "not JSON" in (await refused({"path": "/\ud800"})).message


async def test_the_same_wrong_arguments_are_stopped_at_the_third_time() -> None:
    """A real model sent one misnested argument 1,022 times."""
    gate = bench(schema=SCHEMA)
    codes: list[str] = []
    for _ in range(5):
        with pytest.raises((ArgumentsInvalid, LoopStopped)) as caught:
            await gate.run(arguments={"arguments": {"path": "/a"}})
        codes.append(caught.value.code)
    assert codes == ["invalid_arguments", "invalid_arguments", "loop_stopped", "loop_stopped", "loop_stopped"]
    await gate.run(arguments={"path": "/a"})


def _deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


def _bomb(levels: int) -> dict[str, Any]:
    defs: dict[str, Any] = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(levels)
    }
    return {"$defs": {**defs, f"d{levels}": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/d0"}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:1/x"},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"pattern": "(a{1000}){1000}"}}},
        {"type": "nonsense"},
        [1],
        "{}",
        _deep(200),
        _bomb(60),
    ],
    ids=["remote", "file", "bad pattern", "huge pattern", "bad type", "list", "text", "deep", "bomb"],
)
async def test_a_schema_that_cannot_be_used_lets_the_call_through_with_one_warning(schema: Any) -> None:
    gate = bench(schema=schema)
    with capture_logs() as logs:
        await gate.run(arguments={"a": 1})
        await gate.run(arguments={"a": 1})
    assert len(gate.answering["fs"].calls) == 2
    assert [log["log_level"] for log in logs if log["log_level"] != "debug"] == ["warning"]


async def test_local_references_work() -> None:
    schema = {"$defs": {"x": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/x"}}}
    error = await refused({"a": 3}, schema)
    assert error.details["schema"] == {"type": "string"}


async def test_a_schema_of_an_older_draft_is_read_as_that_draft() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"items": [{"type": "string"}], "additionalItems": False}},
    }
    assert (await refused({"a": ["x", "y"]}, schema)).details["path"] == "/a"


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(?=a)(a+)+\\1$"])
def test_a_hostile_pattern_cannot_hang_the_bridge(pattern: str) -> None:
    began = time.process_time()
    list(compile_schema({"pattern": pattern}).iter_errors("a" * 3000 + "b"))
    assert time.process_time() - began < 5


async def test_a_pattern_with_look_ahead_is_held_to() -> None:
    await refused({"p": "abc"}, {"properties": {"p": {"pattern": "^(?!abc)"}}})


def test_validators_do_not_pile_up() -> None:
    schemas = Schemas()
    for _ in range(5000):
        assert schemas.validator({"inputSchema": {"type": "object"}}) is not None
    assert len(schemas._known) <= 4096


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
    )
)
def test_no_schema_breaks_the_gate(schema: Any) -> None:
    with capture_logs():
        validator = Schemas().validator({"inputSchema": schema})
    if validator is not None:
        validator.is_valid({"a": 1})
