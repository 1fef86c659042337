"""The stream on which a server of the older generation says what belongs to no request (MCP 2025-11-25, transports)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Protocol, cast

import anyio
import structlog

from bridgehead.backends.mcp.http.answers import decoded
from bridgehead.backends.mcp.http.events import EventParser, EventTooLarge
from bridgehead.backends.mcp.http.wire import BrokeOff, Reply
from bridgehead.core import as_mapping
from bridgehead.core.errors import BridgeError

log = structlog.get_logger(__name__)

_FIRST_WAIT_S = 1.0
_LEAST_WAIT_S = 0.1
_LONGEST_WAIT_S = 30.0
_TRIES = 2
"""Times in a row that no connection came about before the server counts as gone."""
_OK = range(200, 300)
_NOT_FOUND = 404
_LATER = frozenset({408, 429, 500, 502, 503, 504})


class Ended(Enum):
    """Why it is followed no more."""

    NOT_OFFERED = auto()
    SESSION_LOST = auto()
    UNREACHABLE = auto()
    SUPERSEDED = auto()


class Followed(Protocol):
    """A session that has such a stream."""

    async def open_stream(self, last_id: str) -> Reply:
        """Ask for the stream, from after the event with that id."""
        ...

    async def hand_over(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Take what the server said."""
        ...


class Following:
    """Keeps the stream open for as long as the session lasts."""

    def __init__(self, session: Followed, *, limit: int, is_current: Callable[[], bool]) -> None:
        """Prepare to follow.

        Args:
            session: Whose stream it is.
            limit: The most bytes of one event.
            is_current: Whether the session is still the one that it was when this began.
        """
        self._session = session
        self._is_current = is_current
        self._parser = EventParser(limit)

    async def run(self) -> Ended:
        """Follow until there is nothing to follow, and say why."""
        fruitless = unreached = 0
        while self._is_current():
            heard = False
            try:
                reply = await self._session.open_stream(self._parser.last_id)
            except BridgeError as error:
                unreached = unreached + 1 if error.details.get("reached") is False else 0
                if unreached >= _TRIES:
                    return Ended.UNREACHABLE
            else:
                unreached = 0
                try:
                    if (end := _end_by(reply)) is not None:
                        return end
                    if reply.status in _OK:
                        heard = await self._read(reply)
                finally:
                    reply.drop()
            fruitless = 0 if heard else fruitless + 1
            wanted_s = self._parser.retry_s if self._parser.retry_s is not None else _FIRST_WAIT_S
            backed_off_s = _FIRST_WAIT_S * 2 ** min(fruitless - 1, 5) if fruitless > 1 else _LEAST_WAIT_S
            await anyio.sleep(max(wanted_s, min(backed_off_s, _LONGEST_WAIT_S)))
        return Ended.SUPERSEDED

    async def _read(self, reply: Reply) -> bool:
        """Read the stream to its end; whether anything came."""
        self._parser = self._parser.resumed()
        heard = False
        try:
            while chunk := await reply.more():
                heard = True
                messages: list[Mapping[str, Any]] = []
                for event in self._parser.feed(chunk):
                    if event.kind == "message":
                        messages.extend(_messages(event.data))
                await self._session.hand_over(messages)
        except (BrokeOff, EventTooLarge) as error:
            log.info("the stream of the server's own messages broke off", cause=type(error).__name__)
        return heard


def _end_by(reply: Reply) -> Ended | None:
    """Why an answer means that there is nothing to follow, or None."""
    if reply.status == _NOT_FOUND:
        return Ended.SESSION_LOST
    if reply.status in _OK:
        return None if reply.content_type == "text/event-stream" else Ended.NOT_OFFERED
    return None if reply.status in _LATER else Ended.NOT_OFFERED


def _messages(data: bytes) -> list[Mapping[str, Any]]:
    """The messages of an event: one, or a batch of them."""
    try:
        content = decoded(data)
    except (ValueError, RecursionError):
        log.warning("an event that is not JSON was skipped")
        return []
    items = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [message for message in map(as_mapping, items) if message]
