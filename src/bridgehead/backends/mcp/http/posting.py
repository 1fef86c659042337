"""One POST of Streamable HTTP and its answer, in whichever form it comes (MCP transports, sending messages to the server)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.abc
import structlog

from bridgehead.backends.mcp.http.answers import Answer, RequestId, is_session_complaint, sort
from bridgehead.backends.mcp.http.causes import Causes
from bridgehead.backends.mcp.http.events import EventParser, EventTooLarge
from bridgehead.backends.mcp.http.wire import BrokeOff, Reply, TooLarge, Wire

log = structlog.get_logger(__name__)

AT_THE_DOOR = frozenset({401, 403, 502, 503, 504})
"""Statuses that say more of why there is no answer than any JSON-RPC error beside them."""
_OK = range(200, 300)
_ACCEPTED = 202
_NOT_FOUND, _BAD_REQUEST = 404, 400
_DRAIN_S = 1.0
_RESUME_TRIES = 3
_RESUME_S = 1.0
_LEAST_RESUME_S = 0.05

HandOver = Callable[[Sequence[Mapping[str, Any]]], Awaitable[None]]
Resume = Callable[[str], Awaitable[Reply]]
"""Opens the stream of what followed the event with that id."""


class SessionLost(Exception):
    """The server does not know the session, so it has run nothing."""

    def __init__(self, answer: Answer | None) -> None:
        super().__init__()
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Way:
    """How requests are sent just now.

    Attributes:
        in_session: Whether they name a session, so that 404 says that it is over.
        resume: How a stream that ended early is resumed, where the generation has that.
        begun: Told of an answer before its connection is given back.
    """

    in_session: bool
    resume: Resume | None
    begun: Callable[[Reply, Answer], None] | None = None


class Posting:
    """Sends requests and finds their answers."""

    def __init__(
        self, wire: Wire, causes: Causes, *, limit: int, tasks: anyio.abc.TaskGroup, hand_over: HandOver
    ) -> None:
        """Prepare to send.

        Args:
            wire: The way to the server.
            causes: Words what fails.
            limit: The most bytes of one message.
            tasks: Where streams are read to their ends.
            hand_over: Takes what the server says besides answers.
        """
        self._wire = wire
        self._causes = causes
        self._limit = limit
        self._tasks = tasks
        self._hand_over = hand_over

    async def post(self, body: bytes, request_id: RequestId, head: bytes, way: Way) -> Answer:
        """One POST and its answer.

        Args:
            body: The JSON-RPC request.
            request_id: Its id.
            head: The headers, rendered.
            way: How it is sent.

        Raises:
            SessionLost: The server does not know the session.
            BridgeError: There is no answer.
        """
        reply = await self._wire.send(b"POST", head, body)
        kept = False
        try:
            kind = reply.content_type
            if reply.status in _OK and reply.status != _ACCEPTED and kind == "application/json":
                answer = await self._json_answer(reply, request_id)
            elif reply.status in _OK and kind == "text/event-stream":
                answer = await self._stream_answer(reply, request_id, way)
                if not reply.is_read:
                    # The end of the stream is on its way as a rule, and the connection is worth keeping for it.
                    self._tasks.start_soon(self._drain, reply)
                    kept = True
            else:
                answer = await self._refusal(reply, request_id, in_session=way.in_session)
            if way.begun is not None:
                way.begun(reply, answer)
        except TooLarge:
            raise self._causes.too_large(self._limit) from None
        except BrokeOff as error:
            raise self._causes.broke_off("its answer broke off") from error
        finally:
            if not kept:
                reply.end()
        return answer

    async def _json_answer(self, reply: Reply, request_id: RequestId) -> Answer:
        raw = await reply.read(self._limit)
        try:
            answer, others = sort(raw, request_id)
        except (ValueError, RecursionError) as error:
            raise self._causes.no_answer("answered with JSON that cannot be read") from error
        if others:
            await self._hand_over(others)
        if answer is None:
            raise self._causes.no_answer("answered under an id that was not asked" if raw else "answered with nothing")
        return answer

    async def _refusal(self, reply: Reply, request_id: RequestId, *, in_session: bool) -> Answer:
        """What an answer is that is no success: the server's own error, a lost session, or neither."""
        if reply.status == _ACCEPTED:
            raise self._causes.no_answer("accepted a request without answering it (HTTP 202)")
        body = await reply.some()
        if reply.status in _OK:
            raise self._causes.wrong_type(reply.content_type, body)
        answer: Answer | None = None
        if reply.content_type == "application/json":
            with suppress(ValueError, RecursionError):
                answer, _ = sort(body, request_id)
        if in_session and reply.status == _NOT_FOUND:
            # Whatever the body says (MCP 2025-11-25, transports, session management).
            raise SessionLost(answer)
        if in_session and reply.status == _BAD_REQUEST and is_session_complaint(answer, body):
            raise SessionLost(None)
        if answer is not None and "error" in answer.message and reply.status not in AT_THE_DOOR:
            return answer
        raise self._causes.status(reply.status, reply.headers, body)

    async def _stream_answer(self, reply: Reply, request_id: RequestId, way: Way) -> Answer:
        """Read events up to the answer; where the stream ends before it, resume it if the server said how."""
        parser = EventParser(self._limit)
        with suppress(BrokeOff):
            if (answer := await self._from_stream(reply, parser, request_id)) is not None:
                return answer
        if not parser.last_id or way.resume is None:
            raise self._causes.broke_off("its stream of events ended before the answer")
        reply.drop()
        return await self._resumed_answer(parser, request_id, way.resume)

    async def _resumed_answer(self, parser: EventParser, request_id: RequestId, resume: Resume) -> Answer:
        """The answer from where a stream broke off (MCP 2025-11-25, transports, resumability).

        A server may end its streams at will, so it is asked for as long as it gets on.
        """
        tries = 0
        while tries < _RESUME_TRIES:
            await anyio.sleep(max(_LEAST_RESUME_S, parser.retry_s) if parser.retry_s is not None else _RESUME_S)
            resumed_at = parser.last_id
            reply = await resume(resumed_at)
            try:
                if reply.status not in _OK or reply.content_type != "text/event-stream":
                    break
                parser = parser.resumed()
                with suppress(BrokeOff):
                    if (answer := await self._from_stream(reply, parser, request_id)) is not None:
                        return answer
            finally:
                reply.end()
            tries = tries + 1 if parser.last_id == resumed_at else 0
        raise self._causes.broke_off("its stream of events ended before the answer and was not resumed")

    async def _from_stream(self, reply: Reply, parser: EventParser, request_id: RequestId) -> Answer | None:
        """The answer in a stream, or None where it ended without."""
        while chunk := await reply.more():
            try:
                events = parser.feed(chunk)
            except EventTooLarge:
                raise TooLarge from None
            found: Answer | None = None
            for event in events:
                if event.kind != "message":
                    continue
                try:
                    answer, others = sort(event.data, request_id)
                except (ValueError, RecursionError):
                    log.warning("an event that is not JSON was skipped")
                    continue
                if others:
                    await self._hand_over(others)
                found = found or answer
            if found is not None:
                return found
        return None

    async def _drain(self, reply: Reply) -> None:
        """Read a stream to its end, shortly, so that its connection can be used again."""
        size = 0
        try:
            with anyio.move_on_after(_DRAIN_S), suppress(BrokeOff):
                while size < self._limit and (chunk := await reply.more()):
                    size += len(chunk)
        finally:
            reply.end()
