"""The HTTP answer to one request: JSON where the answer is all there is to say, else an event stream.

The first notification or question turns it into a stream, and so does a long silence, because whatever stands between would
close a connection on which nothing comes. A stream costs about as much as the call itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus

from starlette.types import Send

JSON_HEADER = (b"content-type", b"application/json")
STREAM_HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
KEEP_ALIVE_S = 15.0
KEEP_ALIVE = b": keep-alive\r\n\r\n"


class Reply:
    """What is said to one client about one request."""

    __slots__ = ("_extra", "_lock", "_send", "silent_since", "streaming")

    def __init__(self, send: Send, extra: Sequence[tuple[bytes, bytes]], now: float) -> None:
        """Answer over `send`, with these headers besides; `now` is the loop's clock."""
        self._send = send
        self._extra = extra
        self._lock: asyncio.Lock | None = None
        self.streaming = False
        self.silent_since = now

    async def say(self, message: bytes) -> None:
        """Send a message that is not the answer."""
        await self._write(b"event: message\r\ndata: %b\r\n\r\n" % message)

    async def keep_alive(self) -> None:
        """Send nothing, so that the connection is kept."""
        await self._write(KEEP_ALIVE)

    async def finish(self, message: bytes, status: int = HTTPStatus.OK) -> None:
        """Send the answer."""
        if self.streaming:
            await self._write(b"event: message\r\ndata: %b\r\n\r\n" % message, more=False)
            return
        headers = [JSON_HEADER, (b"content-length", b"%d" % len(message)), *self._extra]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": message})

    async def _write(self, event: bytes, *, more: bool = True) -> None:
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            self.silent_since = asyncio.get_running_loop().time()
            if not self.streaming:
                self.streaming = True
                headers = [*STREAM_HEADERS, *self._extra]
                await self._send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": headers})
            await self._send({"type": "http.response.body", "body": event, "more_body": more})
