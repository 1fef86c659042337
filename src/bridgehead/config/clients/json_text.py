"""Changes one member in a text of JSON with comments and leaves every other byte as it is.

Indentation, line ends, the comma at the end and whether an object is written on one line are taken from what surrounds the
change. `remove` takes out exactly what `put` put in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from bridgehead.config.clients.jsonc import Member, ObjectNode, parse

_DEFAULT_INDENT = "  "
_INDENT = re.compile(r"[ \t]*")
_SPACED_COLON = re.compile(r'"\s*:\s')
_COMMENTS = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?:[ \t]*//[^\r\n]*)?")


class NotAnObject(ValueError):
    """Something else than an object stands where one is needed, or a key is there twice.

    Attributes:
        key: The dotted key; empty for the whole document.
        problem: What is wrong, as the rest of a sentence that begins with the key.
    """

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(problem)
        self.key = key
        self.problem = problem


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` at `path`: replaced where there is one, else behind the last member. Makes objects on the way.

    Raises:
        NotJson: The text cannot be read.
        NotAnObject: Something else than an object is on the way.
    """
    if not text.strip():
        return _new_document(path, value) + text
    node = _root(text)
    for depth, key in enumerate(path):
        member = _member(node, path[: depth + 1])
        if member is None:
            inner: Any = value
            for above in reversed(path[depth + 1 :]):
                inner = {above: inner}
            return _append(text, node, key, inner)
        if depth == len(path) - 1:
            return text[: member.value.start] + _Style(text, node).rendered(value) + text[member.value.end :]
        node = _as_object(member, path[: depth + 1])
    return text


def remove(text: str, path: Sequence[str]) -> str:
    """The text without the member at `path`; unchanged where there is none.

    Raises:
        NotJson: The text cannot be read.
        NotAnObject: Something else than an object is on the way.
    """
    node = _root(text)
    for depth in range(len(path)):
        member = _member(node, path[: depth + 1])
        if member is None:
            return text
        if depth == len(path) - 1:
            return _cut(text, node, member)
        node = _as_object(member, path[: depth + 1])
    return text


def _root(text: str) -> ObjectNode:
    root = parse(text)
    if not isinstance(root, ObjectNode):
        raise NotAnObject("", "is no object")
    return root


def _member(node: ObjectNode, path: Sequence[str]) -> Member | None:
    """The member that the path ends with. Readers disagree about which one counts where there are two."""
    found = [member for member in node.members if member.key == path[-1]]
    if len(found) > 1:
        raise NotAnObject(".".join(path), "is there more than once")
    return found[0] if found else None


def _as_object(member: Member, path: Sequence[str]) -> ObjectNode:
    if not isinstance(member.value, ObjectNode):
        raise NotAnObject(".".join(path), "is no object")
    return member.value


def _new_document(path: Sequence[str], value: Any) -> str:
    for key in reversed(path):
        value = {key: value}
    return json.dumps(value, indent=_DEFAULT_INDENT, ensure_ascii=False) + "\n"


class _Style:
    """How an object is written, so that a new member looks like the others."""

    def __init__(self, text: str, node: ObjectNode) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        first = node.members[0] if node.members else None
        if first is None:
            self.on_one_line = "\n" not in text.strip() and node.end - node.start < len(text.strip())
            self._indent = _indent_of(text, node.start) + self._unit()
        else:
            self.on_one_line = "\n" not in text[node.start : first.start]
            self._indent = _indent_of(text, first.start)

    def _unit(self) -> str:
        """One step of indentation, by the first line that has any."""
        found = re.search(r"\n([ \t]+)\S", self._text)
        return found[1] if found else _DEFAULT_INDENT

    def new_line(self) -> str:
        """A line break, and the indentation of a member."""
        return self._newline + self._indent

    def opening(self) -> str:
        """What stands between the opening brace and a member."""
        return "" if self.on_one_line else self.new_line()

    def gap(self) -> str:
        """What stands between a comma and the next member."""
        if self.on_one_line:
            return " " if self._is_airy() else ""
        return self.new_line()

    def closing(self, node: ObjectNode) -> str:
        """What stands before the closing brace."""
        return "" if self.on_one_line else self._newline + _indent_of(self._text, node.start)

    def _is_airy(self) -> bool:
        """Whether there is a space behind colons, and so behind commas."""
        return _SPACED_COLON.search(self._text) is not None or '":' not in self._text

    def rendered(self, value: Any) -> str:
        """The value as it would be written here."""
        if self.on_one_line:
            separators = (", ", ": ") if self._is_airy() else (",", ":")
            return json.dumps(value, ensure_ascii=False, separators=separators)
        return json.dumps(value, ensure_ascii=False, indent=self._unit()).replace("\n", self.new_line())

    def member(self, key: str, value: Any) -> str:
        """A key with its value."""
        colon = ": " if self._is_airy() or not self.on_one_line else ":"
        return json.dumps(key, ensure_ascii=False) + colon + self.rendered(value)


def _indent_of(text: str, at: int) -> str:
    """The white space at the start of the line."""
    found = _INDENT.match(text, text.rfind("\n", 0, at) + 1)
    return found[0] if found else ""


def _append(text: str, node: ObjectNode, key: str, value: Any) -> str:
    style = _Style(text, node)
    written = style.member(key, value)
    if not node.members:
        comments = text[node.start + 1 : node.end - 1].rstrip()
        opening = style.new_line() if "//" in comments else style.opening()
        return text[: node.start + 1] + comments + opening + written + style.closing(node) + text[node.end - 1 :]
    last = node.members[-1]
    start = last.value.end if last.comma is None else last.comma + 1
    behind = _end_of_line(text, start)
    comments = text[start:behind]
    gap = style.new_line() if "//" in comments else style.gap()
    if last.comma is None:
        return text[:start] + "," + comments + gap + written + text[behind:]
    return text[:behind] + gap + written + "," + text[behind:]


def _end_of_line(text: str, at: int) -> int:
    """Behind the comments on the rest of the line, which belong to what stands before them; `at` where there are none."""
    found = _COMMENTS.match(text, at)
    return found.end() if found else at


def _cut(text: str, node: ObjectNode, member: Member) -> str:
    index = node.members.index(member)
    end = member.value.end if member.comma is None else member.comma + 1
    if len(node.members) == 1:
        start = node.start + 1
        comments = text[start : member.start].rstrip() + text[end : node.end - 1]
        return text[:start] + (comments if comments.strip() else "") + text[node.end - 1 :]
    if index == 0:
        # What follows moves to its place.
        return text[: member.start] + text[end:].lstrip(" \t\r\n")
    comma = node.members[index - 1].comma
    before = member.start if comma is None else comma
    behind = _end_of_line(text, before + 1)
    if member.comma is None:
        return text[:before] + text[before + 1 : behind] + text[end:]
    return text[:behind] + text[end:]
