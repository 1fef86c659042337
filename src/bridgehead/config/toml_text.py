"""Changes one table or value in a text of TOML and leaves every other byte as it is.

Tables are added behind the last line, and taken out line by line, which keeps comments, line ends and layout. Only where a
table is written in another way (inline, or with dotted keys) does tomlkit rewrite the part that holds it. Every result is
read again and compared with what was meant before it is handed out.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError

_LINE_LENGTH = 100
_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[{]|[\]}]|\n|[^"\'#\[\]{}\n]+',
    re.DOTALL,
)


class TomlUneditable(ValueError):
    """The text is not TOML, or what it holds cannot be changed without rewriting more than was asked for."""


def read_toml(text: str) -> dict[str, Any]:
    """The tables of the text.

    Raises:
        TomlUneditable: It is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise TomlUneditable(f"it is not TOML: {str(error).rstrip('.')}") from None


def put_table(text: str, path: Sequence[str], table: Mapping[str, Any]) -> str:
    """The text with a table at `path`, behind everything else, and without the one that was there.

    Raises:
        TomlUneditable: The text is not TOML, or something else than a table is on the way.
    """
    text = remove_table(text, path)
    expected = read_toml(text)
    _parent(expected, path)[path[-1]] = table
    newline = _newline(text)
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    appended = text + gap + rendered_table(path, table).replace("\n", newline)
    if _reads_as(appended, expected):
        return appended
    document = tomlkit.parse(text)
    try:
        _parent(cast("dict[str, Any]", document), path)[path[-1]] = dict(table)
        return _checked(document.as_string(), expected)
    except TOMLKitError as error:
        raise TomlUneditable(str(error)) from error


def remove_table(text: str, path: Sequence[str]) -> str:
    """The text without the table at `path`; unchanged where there is none. Comments outside the table stay.

    Raises:
        TomlUneditable: The text is not TOML, or the table cannot be told from what is around it.
    """
    expected = read_toml(text)
    parent = _inner(expected, path[:-1])
    if parent is None or path[-1] not in parent:
        return text
    del parent[path[-1]]
    cut = _without_sections(text, tuple(path))
    if _reads_as(cut, expected):
        return cut
    document = tomlkit.parse(text)
    inner = _inner(cast("dict[str, Any]", document), path[:-1])
    try:
        if inner is not None:
            del inner[path[-1]]
        return _checked(document.as_string(), expected)
    except TOMLKitError as error:
        raise TomlUneditable(str(error)) from error


def put_value(text: str, path: Sequence[str], value: bool) -> str:  # noqa: FBT001  the value is what it is about
    """The text with `value` at `path`; a comment behind the old value stays.

    Raises:
        TomlUneditable: The text is not TOML, or something else than a table is on the way.
    """
    expected = read_toml(text)
    _parent(expected, path)[path[-1]] = value
    document = tomlkit.parse(text)
    try:
        _parent(cast("dict[str, Any]", document), path)[path[-1]] = value
        return _checked(document.as_string(), expected)
    except TOMLKitError as error:
        raise TomlUneditable(str(error)) from error


def rendered_table(path: Sequence[str], table: Mapping[str, Any]) -> str:
    """The table under a header of its own; tables within it are inline where they fit on a line."""
    lines = ["[" + ".".join(_key(part) for part in path) + "]"]
    long: list[str] = []
    for name, value in table.items():
        line = f"{_key(name)} = {_value(value)}"
        if isinstance(value, Mapping) and len(line) > _LINE_LENGTH:
            long.append("\n" + rendered_table((*path, name), cast("Mapping[str, Any]", value)))
        else:
            lines.append(line)
    return "\n".join(lines) + "\n" + "".join(long)


def _key(name: str) -> str:
    return tomlkit.key(name).as_string()


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in cast("Mapping[str, Any]", value).items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(one) for one in cast("Sequence[Any]", value)) + "]"
    return str(tomlkit.item(value).as_string())  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _inner(tables: MutableMapping[str, Any], path: Sequence[str]) -> MutableMapping[str, Any] | None:
    for part in path:
        inner = tables.get(part)
        if not isinstance(inner, MutableMapping):
            return None
        tables = cast("MutableMapping[str, Any]", inner)
    return tables


def _parent(tables: MutableMapping[str, Any], path: Sequence[str]) -> MutableMapping[str, Any]:
    """The table that holds the last part of the path, made where there is none."""
    for index, part in enumerate(path[:-1]):
        inner = tables.setdefault(part, {})
        if not isinstance(inner, MutableMapping):
            raise TomlUneditable(f"`{'.'.join(path[: index + 1])}` is no table")
        tables = cast("MutableMapping[str, Any]", tables[part])
    return tables


def _reads_as(text: str, expected: Mapping[str, Any]) -> bool:
    try:
        return _without_empty(tomllib.loads(text)) == _without_empty(expected)
    except tomllib.TOMLDecodeError:
        return False


def _checked(text: str, expected: Mapping[str, Any]) -> str:
    if not _reads_as(text, expected):
        raise TomlUneditable("it is written in a way that cannot be changed here")
    return text


def _without_empty(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Without top-level tables that hold nothing: whether one is there says nothing, and headers come and go."""
    return {key: copy.deepcopy(value) for key, value in tables.items() if value != {}}


@dataclass(frozen=True, slots=True)
class _Line:
    """One statement, with its line end; several lines where its value has several.

    Attributes:
        header: The path of a header; None for anything else.
        is_blank: Whether it is empty, or a comment alone.
    """

    text: str
    header: tuple[str, ...] | None = None
    is_blank: bool = False


def _lines(text: str) -> Iterator[_Line]:
    start = depth = 0
    for piece in _PIECE.finditer(text):
        if piece[0] in {"[", "{"}:
            depth += 1
        elif piece[0] in {"]", "}"}:
            depth -= 1
        elif piece[0] == "\n" and depth <= 0:
            yield _line(text[start : piece.end()])
            start, depth = piece.end(), 0
    if start < len(text):
        yield _line(text[start:])


def _line(text: str) -> _Line:
    bare = text.strip()
    if not bare.startswith("["):
        return _Line(text, is_blank=not bare or bare.startswith("#"))
    path: list[str] = []
    tables: Any = tomllib.loads(bare)
    while tables:
        if isinstance(tables, list):
            tables = cast("list[Any]", tables)[0]
            continue
        key, tables = next(iter(cast("dict[str, Any]", tables).items()))
        path.append(key)
    return _Line(text, tuple(path))


def _without_sections(text: str, path: tuple[str, ...]) -> str:
    """Without the header of that path and those below it, and what they hold; comments behind the last value stay."""
    kept: list[_Line] = []
    inside = False
    held: list[_Line] = []
    removed_at = 0
    for line in _lines(text):
        if line.header is not None:
            inside = line.header[: len(path)] == path
            if not inside:
                kept.extend(held)
            held = []
            removed_at = len(kept) if inside else removed_at
        if not inside:
            kept.append(line)
        elif line.is_blank:
            held.append(line)
        else:
            held = []
    before, behind = kept[:removed_at], [*kept[removed_at:], *held]
    if before and not before[-1].text.strip() and (not behind or not behind[0].text.strip()):
        # One of the two blank lines that stood around it.
        before.pop()
    return "".join(line.text for line in (*before, *behind))
