"""A request on its way to a server: how long it may take, and what is told and asked meanwhile."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import structlog

from bridgehead.backends.mcp.lane import Lane
from bridgehead.core import Channel

log = structlog.get_logger(__name__)

PROGRESS = "notifications/progress"
_MOST_NEWS = 256


@dataclass(eq=False, slots=True)
class InFlight:
    """A request on its way.

    Attributes:
        channel: Where its caller can be reached now; it changes when a parked call is taken up again.
        longest_s: How long it may take where it reports progress; 0: no longer than without.
        deadline: Until when an answer is waited for, by the loop's clock; infinite while a person is asked.
    """

    channel: Channel
    longest_s: float = 0.0
    deadline: float = math.inf
    scope: anyio.CancelScope | None = None
    """Ends the wait for the answer, where the lane does not."""
    lane: Lane | None = None
    news: deque[tuple[str, Mapping[str, Any]]] = field(default_factory=deque[tuple[str, Mapping[str, Any]]])
    telling: anyio.Event | None = None
    """Set once everything in `news` has been told; None while there is nothing to tell."""
    lost: int = 0
    """News that was dropped."""
    lacks: str | None = None
    """The capability that the server needed and the caller had not declared."""
    _timeout_s: float = 0.0
    _latest: float = 0.0
    _asking: int = 0
    _asked_since: float = 0.0
    _left_s: float = 0.0

    def begin(self, now: float, timeout_s: float) -> None:
        """Start its time; `now` by the loop's clock."""
        self._timeout_s, self._latest = timeout_s, now + max(timeout_s, self.longest_s)
        self.deadline = now + timeout_s

    def extend(self) -> None:
        """Give it its time anew, since it gets on."""
        if self.longest_s > self._timeout_s and not self._asking:
            self._wait_until(min(self._latest, anyio.current_time() + self._timeout_s))

    def overtime(self) -> str:
        """How long nothing came, for the sentence that says so."""
        if self.longest_s > self._timeout_s and anyio.current_time() >= self._latest:
            return f"within {self.longest_s:g} s, for all the progress it reported,"
        return f"within {self._timeout_s:g} s"

    def _wait_until(self, deadline: float) -> None:
        self.deadline = deadline
        if self.scope is not None:
            self.scope.deadline = deadline
        if self.lane is not None:
            self.lane.look_again(deadline)

    def give_up(self, reason: str) -> None:
        """Wait for the answer no longer."""
        if self.scope is not None:
            self.scope.cancel()
        if self.lane is not None:
            self.lane.give_up(self, reason)

    def hear(self, method: str, params: Mapping[str, Any]) -> None:
        """Keep news until it is told; of a caller that does not listen only the latest."""
        if len(self.news) >= _MOST_NEWS:
            if not self.lost:
                log.warning("a caller does not take what it is told; the oldest is dropped")
            self.lost += 1
            self.news.popleft()
        self.news.append((method, params))

    async def tell(self) -> None:
        """Tell the caller all news, in order."""
        done = self.telling
        try:
            while self.news:
                if self.lost and self.channel.log_level is not None:
                    lost, self.lost = self.lost, 0
                    said = f"{lost} earlier messages about this call were dropped, since they were not taken in time."
                    await self.channel.log({"level": "warning", "logger": "bridgehead", "data": said})
                method, params = self.news.popleft()
                if method == PROGRESS:
                    total, message = params.get("total"), params.get("message")
                    await self.channel.progress(
                        float(params["progress"]),
                        float(total) if isinstance(total, int | float) else None,
                        message if isinstance(message, str) else None,
                    )
                else:
                    await self.channel.log(params)
        except Exception as error:  # noqa: BLE001 – a caller that cannot be told is no reason to end the session
            log.info("news could not be told", cause=str(error))
        finally:
            self.telling = None
            if done is not None:
                done.set()

    async def told(self) -> None:
        """Return once all news has been told."""
        while self.telling is not None:
            await self.telling.wait()

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the caller, with the deadline standing still meanwhile."""
        if not self._asking:
            self._asked_since = anyio.current_time()
            self._left_s = self.deadline - self._asked_since
            self._wait_until(math.inf)
        self._asking += 1
        try:
            return await self.channel.ask(method, params)
        finally:
            self._asking -= 1
            if not self._asking:
                now = anyio.current_time()
                self._latest += now - self._asked_since
                self._wait_until(now + self._left_s)
