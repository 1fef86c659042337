"""Server-sent events, from bytes that come in any pieces (WHATWG HTML, section 9.2.6).

Works on bytes, so that a character may be split anywhere. An event without data is never dispatched, but its id and its
`retry` count, which is how a server primes a stream that can be resumed (MCP 2025-11-25, transports).
"""

from __future__ import annotations

from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"
_MOST_RETRY_MS = 60_000


class EventTooLarge(Exception):
    """An event has more bytes than are let in; nothing more can be read from its stream."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    Attributes:
        kind: Its type; `message` where it gives none.
        data: Its data lines, joined with line feeds.
    """

    kind: str
    data: bytes


class EventParser:
    """Parses one stream.

    Attributes:
        last_id: The id to resume after, empty where there is none.
        retry_s: How long the server wants to be left alone before the stream is opened again, or None.
    """

    def __init__(self, limit: int) -> None:
        self.last_id = ""
        self.retry_s: float | None = None
        self._limit = limit
        self._begun = False
        self._head = b""
        self._after_cr = False
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._kind = ""
        self._id: str | None = None

    def resumed(self) -> EventParser:
        """A parser for what follows the last event, on another stream."""
        parser = EventParser(self._limit)
        parser.last_id, parser.retry_s = self.last_id, self.retry_s
        return parser

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes.

        Raises:
            EventTooLarge: An event is over the limit.
        """
        if not self._begun:
            chunk = self._without_bom(chunk)
        if self._after_cr and chunk:
            # The line ended with the CR that was the last byte; an LF now is the other half of it.
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        events: list[Event] = []
        if not chunk:
            return events
        self._after_cr = chunk.endswith(b"\r")
        for piece in chunk.splitlines(keepends=True):
            line = piece.rstrip(b"\r\n")
            self._measure(len(line))
            if len(line) == len(piece):
                self._partial.append(piece)
                continue
            if self._partial:
                line = b"".join((*self._partial, line))
                self._partial.clear()
            self._partial_size = 0
            if line:
                self._take(line)
            elif (event := self._dispatch()) is not None:
                events.append(event)
        return events

    def _without_bom(self, chunk: bytes) -> bytes:
        self._head += chunk
        if len(self._head) < len(_BOM) and _BOM.startswith(self._head):
            return b""
        self._begun = True
        head, self._head = self._head, b""
        return head.removeprefix(_BOM)

    def _measure(self, size: int) -> None:
        self._partial_size += size
        if self._partial_size + self._data_size > self._limit + 64:
            raise EventTooLarge

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._data_size += len(value) + 1
        elif name == b"event":
            self._kind = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self.retry_s = min(int(value[:9]), _MOST_RETRY_MS) / 1_000

    def _dispatch(self) -> Event | None:
        if self._id is not None:
            self.last_id = self._id
        kind, data = self._kind or "message", b"\n".join(self._data)
        self._kind, self._id, self._data_size = "", None, 0
        self._data.clear()
        return Event(kind, data) if data else None
