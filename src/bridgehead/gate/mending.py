"""Words for arguments that do not fit: where, what was expected, and one way to mend the call.

What the caller sent is never repeated, apart from the names of properties: arguments can hold secrets, and errors are
kept.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, cast

import jsonschema_rs as js
import orjson

from bridgehead.core.errors import ArgumentsInvalid
from bridgehead.gate.schemas import part_at

_MAX_PROBLEMS = 5
_MAX_WORDS = 300
_MAX_SCHEMA_BYTES = 2048
_MAX_NAMES = 12
_MAX_NAME = 64
_WRAPPERS = frozenset({"arguments", "args", "params", "parameters", "input", "kwargs"})
_BESIDE_WRAPPERS = frozenset({"tool", "name", "tool_name", "method", "id", "type", *_WRAPPERS})


def arguments_error(
    tool: str, schema: Mapping[str, Any], arguments: Mapping[str, Any], errors: list[js.ValidationError]
) -> ArgumentsInvalid:
    """The error for arguments with these problems, of which at most five are told."""
    told = errors[:_MAX_PROBLEMS]
    sentences = [f"{_pointer(error)}: {_expected(error, schema)}" for error in told]
    more = f" (and {len(errors) - len(told)} more)" if len(errors) > len(told) else ""
    first = told[0]
    return ArgumentsInvalid(
        f"The arguments of {tool} do not fit its input schema. {'; '.join(sentences)}{more}.",
        hint=_misnested_hint(schema, arguments) or _hint(first, schema),
        details={
            "path": _pointer(first),
            "schema": _failing_part(schema, first),
            "paths": [_pointer(error) for error in told],
        },
    )


def _pointer(error: js.ValidationError) -> str:
    steps = [_name(str(step).replace("~", "~0").replace("/", "~1")) for step in error.instance_path]
    return "/" + "/".join(steps)


def _expected(error: js.ValidationError, schema: Mapping[str, Any]) -> str:
    match error.kind:
        case js.ValidationErrorKind.Required(property=missing):
            return f"`{_name(missing)}` is missing"
        case js.ValidationErrorKind.Type(types=types):
            return f"expected {' or '.join(types)}"
        case js.ValidationErrorKind.AdditionalProperties(unexpected=extra):
            return f"{_names(extra)} is not known here"
        case js.ValidationErrorKind.UnevaluatedProperties(unexpected=extra):
            return f"{_names(extra)} is not known here"
        case js.ValidationErrorKind.FalseSchema():
            return "nothing is allowed here"
        case _:
            wanted = part_at(schema, error.schema_path)
            return f"expected {error.kind.name} {_cut(_json(wanted), _MAX_WORDS)}"


def _hint(error: js.ValidationError, schema: Mapping[str, Any]) -> str:
    where = "" if not error.instance_path else f" in {_pointer(error)}"
    part: Any = part_at(schema, error.schema_path[:-1])
    properties = _properties(part)
    match error.kind:
        case js.ValidationErrorKind.Required(property=missing):
            kind = properties.get(missing)
            shape: Any = cast("dict[str, Any]", kind).get("type") if isinstance(kind, dict) else None
            return f"Add {_name(missing)!r}{where}{f' ({shape})' if isinstance(shape, str) else ''} and call again."
        case js.ValidationErrorKind.Type(types=types):
            if isinstance(error.instance, str) and {"object", "array"} & set(types):
                return f"Send {_pointer(error)} as JSON itself, not as a string that holds JSON."
            return f"Make {_pointer(error)} {_article(types)} and call again."
        case js.ValidationErrorKind.AdditionalProperties(unexpected=extra):
            near = difflib.get_close_matches(extra[0][:_MAX_NAME], list(properties), n=1) if extra else []
            if near:
                return f"Use {near[0]!r} instead of {_name(extra[0])!r}{where}."
            known = f"; known are {_names(properties)}" if properties else ""
            return f"Leave {_names(extra)} out{where}{known}."
        case js.ValidationErrorKind.Enum():
            return f"Set {_pointer(error)} to one of the listed values."
        case _:
            return f"Change {_pointer(error)} to what the schema in the details asks for and call again."


def _misnested_hint(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """A way out of the mistake that models repeat most: the arguments wrapped once more in a call of their own."""
    wrappers = [key for key in arguments if key in _WRAPPERS]
    properties = _properties(schema)
    if len(wrappers) != 1 or wrappers[0] in properties or not _BESIDE_WRAPPERS.issuperset(arguments):
        return None
    if not isinstance(arguments[wrappers[0]], Mapping | str):
        return None
    shape = ", ".join(f'"{_name(name)}": …' for name in list(properties)[:3])
    return (
        f"The arguments are wrapped in {wrappers[0]!r}. Send what is inside it as the arguments themselves:"
        f" {{{shape}}}, with nothing around it."
    )


def _failing_part(schema: Mapping[str, Any], error: js.ValidationError) -> Any:
    """The part of the schema that was not met: whole where it is small, else the one keyword, else its beginning."""
    keyword = error.schema_path[-1] if error.schema_path else ""
    part = part_at(schema, error.schema_path[:-1])
    if len(_json(part)) <= _MAX_SCHEMA_BYTES:
        return part
    only = {str(keyword): part_at(schema, error.schema_path)}
    text = _json(only)
    return only if len(text) <= _MAX_SCHEMA_BYTES else _cut(text, _MAX_SCHEMA_BYTES // 2)


def _properties(schema: Any) -> Mapping[str, Any]:
    if isinstance(schema, Mapping):
        properties = cast("Mapping[str, Any]", schema).get("properties")
        if isinstance(properties, Mapping):
            return cast("Mapping[str, Any]", properties)
    return {}


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    shown = ", ".join(f"`{_name(name)}`" for name in listed[:_MAX_NAMES])
    return shown if len(listed) <= _MAX_NAMES else f"{shown} and {len(listed) - _MAX_NAMES} more"


def _name(name: str) -> str:
    return _cut(name, _MAX_NAME)


def _article(types: list[str]) -> str:
    names = " or ".join(types)
    return f"{'an' if names[:1] in 'aio' else 'a'} {names}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… [{len(text) - most} of {len(text)} characters cut]"


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError, RecursionError):
        return "…"
