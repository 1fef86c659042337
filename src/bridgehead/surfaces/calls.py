"""The calls of the bridge as they happen: `GET /api/calls/stream`, for its owner.

Server-sent events (HTML Living Standard, section 9.2). A `call` event has one call as JSON: `at` (ISO 8601, UTC), `call_id`,
`caller`, `surface`, `method`, `target`, `group`, `backend`, `verdict`, `code` and `seconds`; never arguments or results. A
`lost` event has `{"lost": n}`: so many calls are missing before the next. A comment comes at least every 15 s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

import anyio
import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

_KEEP_ALIVE_S = 15.0
_KEEP_ALIVE = b": keep-alive\n\n"
_HELLO = b": calls follow\n\n"


class Record(Protocol):
    """One call that has ended, as the gate records it."""

    @property
    def call_id(self) -> str:
        """Its id, which the caller gets with an error."""
        ...

    @property
    def at(self) -> datetime:
        """When it came in."""
        ...

    @property
    def caller(self) -> str:
        """Who called."""
        ...

    @property
    def surface(self) -> str:
        """Where it came in."""
        ...

    @property
    def method(self) -> str:
        """What was asked for, as in `tools/call`."""
        ...

    @property
    def target(self) -> str:
        """The name or URI that was called."""
        ...

    @property
    def group(self) -> str | None:
        """The group whose URL was used."""
        ...

    @property
    def backend(self) -> str | None:
        """The backend that it went to."""
        ...

    @property
    def verdict(self) -> str:
        """What came of it."""
        ...

    @property
    def code(self) -> str | None:
        """The error code, where there is one."""
        ...

    @property
    def duration_s(self) -> float:
        """How long it took."""
        ...


class Reader(Protocol):
    """Follows the calls for one client."""

    async def take(self) -> tuple[Sequence[Record], int] | None:
        """The records since the last time, and how many were lost before them; None when nothing will come any more."""
        ...


class LiveCalls(Protocol):
    """The calls as they happen."""

    def follow(self) -> AbstractContextManager[Reader]:
        """A reader, for as long as the context lasts.

        Raises:
            RateLimited: There are as many as there may be.
        """
        ...


def calls_routes(live: LiveCalls, authorised: Callable[[Request], None]) -> list[Route]:
    """The route, which needs a credential.

    Args:
        live: The calls.
        authorised: Raises `Unauthenticated` for a request without a good credential.
    """

    async def stream(request: Request) -> Response:
        authorised(request)
        return _Stream(live)

    return [Route("/api/calls/stream", stream, name="calls-stream")]


class _Stream(Response):
    """The event stream, which lasts until its client leaves or the bridge stops.

    Not Starlette's `StreamingResponse`: that leaves the reader to the garbage collector when the client goes.
    """

    def __init__(self, live: LiveCalls) -> None:
        super().__init__(headers={"Cache-Control": "no-store"}, media_type="text/event-stream")
        self._live = live
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one client."""
        del scope
        with self._live.follow() as reader:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async with anyio.create_task_group() as tasks:

                async def wait_for_leaving() -> None:
                    while (await receive())["type"] != "http.disconnect":
                        pass
                    tasks.cancel_scope.cancel()

                tasks.start_soon(wait_for_leaving)
                await self._send_events(reader, send)
                tasks.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b""})

    @staticmethod
    async def _send_events(reader: Reader, send: Send) -> None:
        chunk = _HELLO
        while True:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            taken: tuple[Sequence[Record], int] | None = None
            with anyio.move_on_after(_KEEP_ALIVE_S) as patience:
                taken = await reader.take()
            if patience.cancelled_caught:
                chunk = _KEEP_ALIVE
            elif taken is None:
                return
            else:
                chunk = _events(*taken)


def _events(records: Sequence[Record], lost: int) -> bytes:
    told = b"event: lost\ndata: %b\n\n" % orjson.dumps({"lost": lost}) if lost else b""
    return told + b"".join(b"event: call\ndata: %b\n\n" % orjson.dumps(as_shown(record)) for record in records)


def as_shown(record: Record) -> dict[str, Any]:
    """The record as clients get it."""
    return {
        "at": record.at.isoformat(),
        "call_id": record.call_id,
        "caller": record.caller,
        "surface": record.surface,
        "method": record.method,
        "target": record.target,
        "group": record.group,
        "backend": record.backend,
        "verdict": record.verdict,
        "code": record.code,
        "seconds": round(record.duration_s, 6),
    }
