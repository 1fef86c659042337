"""Requests over one connection, many at once, without the SDK in between: an id, a future and a line each.

The SDK's session keeps the handshake, the lists and what a server asks or announces. Requests on behalf of callers are nearly
all the traffic and go here: a request becomes one write, an answer one look-up. Ids are numbers that the SDK's own never reach,
so that both can share a connection.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from bridgehead.core.json import dumps

FIRST_ID = 1_000_000_000
"""The SDK counts from one. Below 2**31, since some servers read ids into 32 bits."""
_LAST_ID = 2**31 - 1


class LaneClosed(Exception):
    """The connection has ended.

    Attributes:
        sent: Whether the request may have reached the server.
    """

    def __init__(self, *, sent: bool) -> None:
        super().__init__("the connection has ended")
        self.sent = sent


@dataclass(frozen=True, slots=True)
class GivenUp:
    """In place of an answer: nobody waits for one any more."""

    reason: str


class Timed(Protocol):
    """Whoever waits for an answer, with the moment until which it does (the loop's clock; infinite: no end)."""

    deadline: float


class Lane:
    """The requests that are out on one connection."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        """`write` takes one line, without waiting, and may raise `LaneClosed`."""
        self._write = write
        self._next_id = FIRST_ID
        self._pending: dict[int, tuple[asyncio.Future[Mapping[str, Any] | GivenUp], Timed]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self.room = asyncio.Event()
        """Set while the other side takes what is written."""
        self.room.set()

    async def request(self, method: str, params: Mapping[str, Any], waiting: Timed) -> Mapping[str, Any] | GivenUp:
        """Send a request and return the whole message that answers it, or `GivenUp` once the deadline has passed.

        The server is told of a request that nobody waits for any more (MCP 2025-11-25, utilities, cancellation).

        Raises:
            LaneClosed: The connection has ended.
            ValueError: The request cannot be written; nothing was sent.
        """
        if not self.room.is_set():
            with anyio.move_on_after(waiting.deadline - self._loop.time()):
                await self.room.wait()
            if not self.room.is_set():
                return GivenUp("the server does not read what it is sent")
        if self._closed:
            raise LaneClosed(sent=False)
        number = self._next_id
        self._next_id = number + 1 if number < _LAST_ID else FIRST_ID
        line = dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        future: asyncio.Future[Mapping[str, Any] | GivenUp] = self._loop.create_future()
        self._pending[number] = future, waiting
        try:
            self._write(line + b"\n")
            if waiting.deadline < self._timer_at:
                self.look_again(waiting.deadline)
            answer = await future
        except asyncio.CancelledError:
            self._tell_cancelled(number, "the caller cancelled it")
            raise
        finally:
            self._pending.pop(number, None)
        if isinstance(answer, GivenUp):
            self._tell_cancelled(number, answer.reason)
        return answer

    def answer(self, message: Mapping[str, Any]) -> bool:
        """Take in a message; whether it answers a request of this lane."""
        number = message.get("id")
        if not isinstance(number, int) or number < FIRST_ID or "method" in message:
            return False
        pending = self._pending.pop(number, None)
        if pending is not None and not pending[0].done():
            pending[0].set_result(message)
        # The answer to a request that was given up is nobody's.
        return True

    def give_up(self, waiting: Timed, reason: str) -> None:
        """Wait no longer for the answer that `waiting` waits for."""
        for future, who in self._pending.values():
            if who is waiting and not future.done():
                future.set_result(GivenUp(reason))

    def close(self) -> None:
        """Fail everything that is out."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = None, math.inf
        for future, _ in self._pending.values():
            if not future.done():
                future.set_exception(LaneClosed(sent=True))
        self.room.set()

    def look_again(self, at: float) -> None:
        """Look for passed deadlines at that moment, and not before; call it when a deadline has come nearer."""
        if at >= self._timer_at or math.isinf(at):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._sweep)

    def _sweep(self) -> None:
        """Give up what is overdue. One timer serves all requests, since a timer each would cost more than the request."""
        self._timer, self._timer_at = None, math.inf
        now, nearest = self._loop.time(), math.inf
        for future, waiting in self._pending.values():
            if waiting.deadline > now:
                nearest = min(nearest, waiting.deadline)
            elif not future.done():
                future.set_result(GivenUp("it took too long"))
        self.look_again(nearest)

    def _tell_cancelled(self, number: int, reason: str) -> None:
        params = {"requestId": number, "reason": reason}
        note = dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        try:
            self._write(note + b"\n")
        except LaneClosed:
            return
