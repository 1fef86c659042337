"""Reading a tool's input schema for people and models: one line a parameter, and a skeleton of a call.

Schemas come from backends, so nothing about their shape is taken for granted: what cannot be read is shown as `any`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from bridgehead.guidance.words import cut, one_line

Schema = Mapping[str, Any]
_MAX_DEPTH = 4
_DESCRIPTION_LENGTH = 500
_ENUM_SHOWN = 30


def as_schema(value: Any) -> Schema:
    """The value where it is a schema object, else the schema that allows everything."""
    return cast("Schema", value) if isinstance(value, Mapping) else {}


def _listed(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()


def resolved(schema: Any, root: Schema) -> Schema:
    """The schema behind a local `$ref`, a few steps deep; other references stay unread."""
    found = as_schema(schema)
    for _ in range(_MAX_DEPTH):
        reference = found.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        target: Any = root
        for step in reference[2:].split("/"):
            target = as_schema(target).get(step.replace("~1", "/").replace("~0", "~"))
        found = {**as_schema(target), **{key: value for key, value in found.items() if key != "$ref"}}
    return found


def type_words(schema: Any, root: Schema, depth: int = 0) -> str:
    """The type in a few words: `string`, `array of integer`, `string or null`, `any`."""
    shape = resolved(schema, root)
    if depth > _MAX_DEPTH:
        return "any"
    if "const" in shape or "enum" in shape:
        return _typed(shape) or "value"
    for key in ("anyOf", "oneOf"):
        choices = _listed(shape.get(key))
        if choices:
            return " or ".join(dict.fromkeys(type_words(choice, root, depth + 1) for choice in choices))
    if shape.get("type") == "array" and "items" in shape:
        return f"array of {type_words(shape['items'], root, depth + 1)}"
    return _typed(shape) or ("object" if "properties" in shape else "any")


def _typed(shape: Schema) -> str:
    declared = shape.get("type")
    if isinstance(declared, str):
        return declared
    return " or ".join(str(each) for each in _listed(declared))


def parameter_lines(input_schema: Any) -> list[str]:
    """One Markdown list item a parameter, in the schema's order; nested objects name their fields."""
    root = as_schema(input_schema)
    required = frozenset(str(name) for name in _listed(root.get("required")))
    properties = as_schema(root.get("properties"))
    lines = [_parameter(name, schema, root, required=name in required) for name, schema in properties.items()]
    if properties and root.get("additionalProperties") is False:
        lines.append("- No other parameters are accepted.")
    return lines


def _parameter(name: str, schema: Any, root: Schema, *, required: bool) -> str:
    shape = resolved(schema, root)
    facts = [type_words(shape, root), "required" if required else "optional"]
    facts.extend(_limits(shape))
    parts = [f"- `{name}` ({', '.join(facts)})"]
    description = shape.get("description")
    if isinstance(description, str) and description.strip():
        parts.append(f": {cut(one_line(description), _DESCRIPTION_LENGTH)}")
    fields = list(as_schema(shape.get("properties")))
    if fields:
        parts.append(f" Fields: {', '.join(f'`{field}`' for field in fields)}.")
    return "".join(parts)


def _limits(shape: Schema) -> list[str]:
    facts: list[str] = []
    choices = _listed(shape.get("enum"))
    if choices:
        shown = ", ".join(_json(choice) for choice in choices[:_ENUM_SHOWN])
        more = len(choices) - _ENUM_SHOWN
        facts.append(f"one of {shown}" + (f" and {more} more in the input schema" if more > 0 else ""))
    if "const" in shape:
        facts.append(f"always {_json(shape['const'])}")
    if "default" in shape:
        facts.append(f"default {cut(_json(shape['default']), 100)}")
    words = {
        "minimum": "at least",
        "maximum": "at most",
        "minLength": "at least this long:",
        "maxLength": "at most this long:",
    }
    facts.extend(f"{text} {shape[key]}" for key, text in words.items() if isinstance(shape.get(key), int | float))
    if isinstance(shape.get("pattern"), str):
        facts.append(f"matching `{shape['pattern']}`")
    return facts


def example_arguments(input_schema: Any) -> dict[str, Any]:
    """Arguments to fill in: every required parameter, or the first one where none is required."""
    root = as_schema(input_schema)
    properties = as_schema(root.get("properties"))
    wanted = [str(name) for name in _listed(root.get("required"))] or list(properties)[:1]
    return {name: _example(name, properties.get(name), root) for name in wanted}


_MISSING = object()


def _example(name: str, schema: Any, root: Schema, depth: int = 0) -> Any:
    shape = resolved(schema, root)
    given = _given_example(shape)
    if given is not _MISSING:
        return given
    choices = _listed(shape.get("anyOf")) or _listed(shape.get("oneOf"))
    if choices and depth < _MAX_DEPTH:
        return _example(name, choices[0], root, depth + 1)
    declared = shape.get("type")
    kind = declared if isinstance(declared, str) else str(next(iter(_listed(declared)), ""))
    match kind:
        case "array":
            return [_example(name, shape.get("items"), root, depth + 1)] if depth < _MAX_DEPTH else []
        case "object":
            return _example_object(shape, root, depth)
        case _:
            return {
                "integer": shape.get("minimum", 1),
                "number": shape.get("minimum", 1),
                "boolean": True,
                "null": None,
            }.get(kind, f"<{name}>")


def _given_example(shape: Schema) -> Any:
    """The value that the schema itself offers, or `_MISSING`."""
    for key in ("const", "default"):
        if key in shape:
            return shape[key]
    choices = _listed(shape.get("examples")) or _listed(shape.get("enum"))
    return choices[0] if choices else _MISSING


def _example_object(shape: Schema, root: Schema, depth: int) -> dict[str, Any]:
    if depth >= _MAX_DEPTH:
        return {}
    properties = as_schema(shape.get("properties"))
    required = [str(name) for name in _listed(shape.get("required"))]
    return {name: _example(name, properties.get(name), root, depth + 1) for name in required}


def _json(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()
