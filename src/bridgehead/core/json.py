"""JSON values whose shape nobody has promised: read, bounded, and written."""

from __future__ import annotations

import json
import re
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


_LONG_NUMBER = re.compile(rb"[0-9]{19}")


def has_long_numbers(text: bytes) -> bool:
    """Whether a number in JSON text could have more digits than 64 bits hold; orjson would round it without a word."""
    return _LONG_NUMBER.search(text) is not None


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
