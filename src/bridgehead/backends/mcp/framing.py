"""Messages out of a stream of bytes, one a line (MCP 2025-11-25 and 2026-07-28, stdio transport).

Chunks are joined as bytes, so that a character may be split anywhere, and a line may be as long as the limit says, however many
chunks it takes. A longer one is thrown away as it comes; what is kept of it is enough to say whose answer it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import orjson

KEPT = 4096
"""Bytes kept of each end of a line that is too long."""
_ID_LAST = re.compile(rb'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+')


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line over the limit.

    Attributes:
        length: In bytes.
        id: The id of the message, where it could be told: of an answer, of a request, or None.
        is_answer: Whether it was no request or notification, as far as could be told.
    """

    length: int
    id: int | str | None
    is_answer: bool


class Framer:
    """Cuts what it is fed into lines."""

    __slots__ = ("_dropping", "_head", "_length", "_limit", "_partial", "_tail")

    def __init__(self, limit: int) -> None:
        """Lines of more than `limit` bytes are thrown away."""
        self._limit = limit
        self._partial: list[bytes] = []
        self._length = 0
        self._dropping = False
        self._head = b""
        self._tail = b""

    def feed(self, chunk: bytes) -> list[bytes | TooLong]:
        """The lines that this chunk completes, without their line feed, in order."""
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        head, *rest = chunk.split(b"\n")
        lines: list[bytes | TooLong] = []
        for following in rest:
            if self._partial or self._dropping or len(head) > self._limit:
                self._keep(head)
                lines.append(self._taken())
            else:
                lines.append(head)
            head = following
        self._keep(head)
        return lines

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._length += len(part)
        if not self._dropping:
            self._partial.append(part)
            if self._length <= self._limit:
                return
            self._dropping = True
            whole = b"".join(self._partial)
            self._partial.clear()
            self._head, self._tail = whole[:KEPT], whole[-KEPT:]
            return
        self._tail = (self._tail + part)[-KEPT:]

    def _taken(self) -> bytes | TooLong:
        """The line that has just ended."""
        line: bytes | TooLong
        if self._dropping:
            request_id, has_method = envelope(self._head, self._tail)
            line = TooLong(self._length, request_id, not has_method)
        else:
            line = b"".join(self._partial)
        self._partial.clear()
        self._length, self._dropping, self._head, self._tail = 0, False, b"", b""
        return line


def envelope(head: bytes, tail: bytes) -> tuple[int | str | None, bool]:
    """The id of a message of which only the ends are known, and whether it has a method.

    Only members of the outermost object count; a result may well hold an `id` of its own.
    """
    members = _members(head)
    found = _read(members[b'"id"']) if b'"id"' in members else None
    if found is None:
        last = _ID_LAST.search(tail)
        found = _read(last[1]) if last is not None else None
    return found, b'"method"' in members


def _members(head: bytes) -> dict[bytes, bytes]:
    """The members of the outermost object in the beginning of its text, as written; of containers, the bracket."""
    members: dict[bytes, bytes] = {}
    depth = 0
    key: bytes | None = None
    for match in _TOKEN.finditer(head):
        token = match[0]
        if depth == 1 and key is None and token.startswith(b'"'):
            key = token
        elif depth == 1 and token == b",":
            key = None
        elif depth == 1 and key is not None and token not in b":}" and match.end() < len(head):
            members.setdefault(key, token)
        depth += (token in b"{[") - (token in b"}]")
    return members


def _read(token: bytes) -> int | str | None:
    try:
        value = orjson.loads(token)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None
