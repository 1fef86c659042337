"""JSON with comments and commas at the end, read so that every value knows where in the text it stands.

What VS Code, Cursor and Gemini CLI accept in their own files; plain JSON (RFC 8259) is a part of it. Knows nothing of what
the values mean. `bridgehead.config.clients.json_text` changes a text by these places and touches nothing else.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

_MAX_DEPTH = 200
_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z_.])")
_WORD = re.compile(r"(?:true|false|null)(?![0-9A-Za-z_])")


class NotJson(ValueError):
    """The text is not JSON, not even with comments.

    Attributes:
        line: Counted from 1, like `column`.
        problem: What is wrong there, as the rest of a sentence. Never holds what stands there.
    """

    def __init__(self, text: str, position: int, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = text.count("\n", 0, position) + 1
        self.column = position - (text.rfind("\n", 0, position) + 1) + 1


@dataclass(frozen=True, slots=True)
class Member:
    """A key and its value in an object.

    Attributes:
        start: Where the key's first quotation mark is.
        comma: Where the comma behind the value is, or None.
    """

    key: str
    start: int
    value: Node
    comma: int | None


@dataclass(frozen=True, slots=True)
class ObjectNode:
    """An object; `start` is its opening brace, `end` is behind its closing one."""

    start: int
    end: int
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class ListNode:
    """An array."""

    start: int
    end: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """Text, a number, a switch or null."""

    start: int
    end: int
    value: str | float | bool | None


Node: TypeAlias = "ObjectNode | ListNode | ScalarNode"


def parse(text: str) -> Node:
    """The one value that the text holds.

    Raises:
        NotJson: It holds none, or more than one.
    """
    parser = _Parser(text)
    start = parser.blank(0)
    node = parser.value(start, 0)
    end = parser.blank(node.end)
    if end != len(text):
        raise NotJson(text, end, "there is something behind the end")
    return node


def plain(node: Node) -> Any:
    """The value without its places."""
    match node:
        case ObjectNode():
            return {member.key: plain(member.value) for member in node.members}
        case ListNode():
            return [plain(item) for item in node.items]
        case ScalarNode():
            return node.value


class _Parser:
    """Recursive descent, bounded in depth."""

    def __init__(self, text: str) -> None:
        self._text = text

    def blank(self, at: int) -> int:
        """Behind white space and comments."""
        found = _BLANK.match(self._text, at)
        end = found.end() if found else at
        if self._text.startswith("/*", end):
            raise NotJson(self._text, end, "a comment does not end")
        return end

    def value(self, at: int, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise NotJson(self._text, at, "it is nested too deep")
        match self._text[at : at + 1]:
            case "{":
                return self._object(at, depth)
            case "[":
                return self._list(at, depth)
            case '"':
                text, end = self._string(at)
                return ScalarNode(at, end, text)
            case _:
                found = _NUMBER.match(self._text, at) or _WORD.match(self._text, at)
                if found is None:
                    raise self._wrong(at, "a value is expected")
                return ScalarNode(at, found.end(), self._literal(at, found[0]))

    def _object(self, start: int, depth: int) -> ObjectNode:
        members: list[Member] = []
        at = self.blank(start + 1)
        while not self._text.startswith("}", at):
            if members and members[-1].comma is None:
                raise self._wrong(at, "a comma or `}` is expected")
            if not self._text.startswith('"', at):
                raise self._wrong(at, "a key in quotation marks is expected")
            key, end = self._string(at)
            colon = self.blank(end)
            if not self._text.startswith(":", colon):
                raise self._wrong(colon, "a colon is expected")
            value = self.value(self.blank(colon + 1), depth + 1)
            behind = self.blank(value.end)
            comma = behind if self._text.startswith(",", behind) else None
            members.append(Member(key, at, value, comma))
            at = behind if comma is None else self.blank(behind + 1)
        return ObjectNode(start, at + 1, tuple(members))

    def _list(self, start: int, depth: int) -> ListNode:
        items: list[Node] = []
        more = True
        at = self.blank(start + 1)
        while not self._text.startswith("]", at):
            if not more:
                raise self._wrong(at, "a comma or `]` is expected")
            items.append(self.value(at, depth + 1))
            at = self.blank(items[-1].end)
            more = self._text.startswith(",", at)
            if more:
                at = self.blank(at + 1)
        return ListNode(start, at + 1, tuple(items))

    def _string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self._text, at)
        if found is None:
            raise NotJson(self._text, at, "a text does not end on its line")
        value = self._literal(at, found[0])
        return str(value), found.end()

    def _literal(self, at: int, written: str) -> str | float | bool | None:
        try:
            return json.loads(written)
        except ValueError as error:
            raise NotJson(self._text, at, "a text or number is not written as JSON has it") from error

    def _wrong(self, at: int, problem: str) -> NotJson:
        return NotJson(self._text, at, "it ends too early" if at >= len(self._text) else problem)
