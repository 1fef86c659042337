"""JSON values whose shape nobody has promised: read, bounded, and written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import orjson


def as_mapping(value: object) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one."""
    # A dict nearly always, and asking an abstract class costs ten times as much.
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) or isinstance(value, Mapping) else {}  # noqa: SIM101


def nested_deeper_than(value: object, depth: int) -> bool:
    """Whether containers in `value` are nested more than `depth` deep."""
    if isinstance(value, dict):
        inner = cast("dict[object, object]", value).values()
    elif isinstance(value, list):
        inner = cast("list[object]", value)
    elif isinstance(value, Mapping):
        inner = cast("Mapping[object, object]", value).values()
    else:
        return False
    if depth <= 0:
        return True
    return any(nested_deeper_than(item, depth - 1) for item in inner)


_LONG = 19
"""Digits: the fewest that 64 bits may not hold."""
_ZEROS = b"0" * _LONG
_AS_ZEROS = bytes(ord("0") if chr(code).isdigit() and code < 128 else ord(" ") for code in range(256))  # noqa: PLR2004 – ASCII


def has_long_numbers(text: bytes) -> bool:
    """Whether a number in JSON text could have more digits than 64 bits hold; orjson would round it without a word."""
    # Every digit as a zero, all else as a blank: two passes at the speed of memory, where an expression would crawl.
    return _ZEROS in text.translate(_AS_ZEROS)


def loads(text: bytes) -> Any:
    """The value of JSON text, with integers of any size exact.

    Raises:
        ValueError: It is no JSON.
        RecursionError: It is nested too deep to be read.
    """
    return json.loads(text) if has_long_numbers(text) else orjson.loads(text)


def dumps(value: object) -> bytes:
    """The value as JSON, also where orjson would not write it: integers past 64 bits, deep nesting, lone surrogates.

    Raises:
        ValueError: It cannot be written at all.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        try:
            return json.dumps(value, separators=(",", ":")).encode()
        except (TypeError, RecursionError) as error:
            raise ValueError("it is nested too deep to be written, or is no JSON") from error
