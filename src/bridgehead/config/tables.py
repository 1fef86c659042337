"""Untyped tables, as parsers give them: told from other values, and walked key by key."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from bridgehead.config.problems import dotted


def as_table(value: object) -> dict[str, Any] | None:
    """The value as a table, or None if it is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def texts(value: object) -> Iterator[str]:
    """Every text within the value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        inner = cast("Collection[object]", value.values() if isinstance(value, dict) else value)
        for one in inner:
            yield from texts(one)


def walk(table: Mapping[str, Any], *above: str) -> Iterator[str]:
    """The dotted keys of all tables and values within `table`; a list counts as one value."""
    for key, value in table.items():
        yield dotted(*above, key)
        inner = as_table(value)
        if inner is not None:
            yield from walk(inner, *above, key)
