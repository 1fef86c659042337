"""Input schemas, compiled once. They come from backends, so nothing in them may fetch, hang, overflow or fill the
memory.

Remote references are refused, patterns run in linear time (or, where a pattern needs look-around, with a bound on
backtracking), nesting and expansion are bounded. A schema that cannot be used so does not exist for the gate: the
backend judges its own arguments, as it would without a bridge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import jsonschema_rs as js
import structlog

from bridgehead.core.json import nested_deeper_than

MAX_DEPTH = 64
_MAX_EXPANDED = 100_000
"""Subschemas with every local `$ref` written out: a few kilobytes of doubling references would take for ever."""
_REMEMBERED = 4096
_LINEAR = js.RegexOptions(size_limit=1_000_000, dfa_size_limit=1_000_000)
_BOUNDED = js.FancyRegexOptions(backtrack_limit=10_000, size_limit=1_000_000, dfa_size_limit=1_000_000)

_log = structlog.stdlib.get_logger(__name__)


class Schemas:
    """Validators by tool definition.

    A definition is known by its identity, which is safe because each is held as long as its validator; the bound is on
    how many are held. The catalog keeps definitions unchanged across its swaps.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Mapping[str, Any], js.Validator | None]] = {}
        self.unusable = 0
        """Schemas that were let through unjudged, since the start."""

    def validator(self, definition: Mapping[str, Any]) -> js.Validator | None:
        """The validator of the definition's `inputSchema`, or None where it has none that can be used."""
        known = self._known.get(id(definition))
        if known is not None and known[0] is definition:
            return known[1]
        validator = self._compile(definition)
        while len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[id(definition)] = (definition, validator)
        return validator

    def _compile(self, definition: Mapping[str, Any]) -> js.Validator | None:
        schema: Any = definition.get("inputSchema")
        if schema is None:
            return None
        try:
            return compile_schema(schema)
        except (ValueError, TypeError, RecursionError) as error:
            self.unusable += 1
            _log.warning(
                "an input schema cannot be used, so its tool's arguments are not validated",
                tool=str(definition.get("name"))[:128],
                cause=str(error).partition("\n")[0][:300],
            )
            return None


def compile_schema(schema: Any) -> js.Validator:
    """The validator of a schema that nobody trusts.

    JSON Schema 2020-12, unless `$schema` names an older draft (MCP 2025-11-25, "JSON Schema usage").

    Raises:
        ValueError: It is no schema, too deep or too large, or refers to something outside itself.
    """
    if not isinstance(schema, dict):
        raise TypeError("the schema is not an object")
    known = cast("dict[str, Any]", schema)
    if nested_deeper_than(known, MAX_DEPTH):
        raise ValueError(f"the schema is nested deeper than {MAX_DEPTH}")
    _Expansion(known).check()
    draft = js.validator_cls_for(known)
    try:
        return draft(known, offline=True, pattern_options=_LINEAR, validate_formats=False)
    except ValueError:
        return draft(known, offline=True, pattern_options=_BOUNDED, validate_formats=False)


def part_at(schema: Any, path: list[str | int]) -> Any:
    """The part of a schema that `path` leads to, or None."""
    part: Any = schema
    for step in path:
        if isinstance(part, dict):
            part = cast("dict[Any, Any]", part).get(step)
        elif isinstance(part, list) and str(step).isdecimal() and int(step) < len(cast("list[Any]", part)):
            part = cast("list[Any]", part)[int(step)]
        else:
            return None
    return part


class _Expansion:
    """Counts what a schema is with its local references written out, each cycle once."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._left = _MAX_EXPANDED
        self._open: set[str] = set()

    def check(self) -> None:
        """Raises ValueError where it is too large."""
        self._count(self._schema)

    def _count(self, part: object) -> None:
        if not isinstance(part, dict | list):
            return
        self._left -= 1
        if self._left < 0:
            raise ValueError("the schema expands to too many subschemas")
        if isinstance(part, list):
            for item in cast("list[object]", part):
                self._count(item)
        else:
            known = cast("dict[str, object]", part)
            for key, value in known.items():
                # Definitions count where they are used.
                if part is not self._schema or key not in {"$defs", "definitions"}:
                    self._count(value)
            ref = known.get("$ref")
            if isinstance(ref, str) and ref.startswith("#") and ref not in self._open:
                steps = [step.replace("~1", "/").replace("~0", "~") for step in ref[1:].split("/")[1:]]
                self._open.add(ref)
                self._count(part_at(self._schema, list(steps)))
                self._open.discard(ref)
