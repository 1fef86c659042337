"""How often, how stubbornly and how much: the rate, the loop breaker, and the size of what comes back."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from bridgehead.core import BridgeError, Call, Clock, Method, Outcome
from bridgehead.core.errors import RateLimited
from bridgehead.gate.failures import Failures
from bridgehead.gate.overflow import Overflow
from bridgehead.gate.pipeline import Next

_REMEMBERED = 4096
"""Buckets kept; past it the one that was used longest ago is forgotten, which fills it."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Rate:
    """A token bucket for each caller and tool: `per_minute` calls a minute, as many at once."""

    def __init__(self, clock: Clock, per_minute: float) -> None:
        """Start with every bucket full; 0 sets no limit."""
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()
        self.adjust(per_minute)

    def adjust(self, per_minute: float) -> None:
        """Fill the buckets at another rate from now on; what was used up stays used up."""
        self._burst = max(1.0, per_minute)
        self._per_s = per_minute / 60

    def take(self, call: Call) -> None:
        """Use up one call.

        Raises:
            RateLimited: There is none left.
        """
        if self._per_s <= 0:
            return
        key, now = (call.caller.id, call.target), self._clock.monotonic()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(self._burst, now)
            if len(self._buckets) > _REMEMBERED:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._per_s)
        bucket.at = now
        if bucket.tokens < 1:
            wait_s = max(1, round((1 - bucket.tokens) / self._per_s))
            raise RateLimited(
                f"{call.target} has been called as often as it may be for now.",
                hint=f"Wait {wait_s} s, or do the rest in fewer calls.",
                details={"retry_after_s": wait_s},
            )
        bucket.tokens -= 1


class Limit:
    """Before the call: rate and loops. After it: failures are remembered, and what is too large is put on the shelf."""

    def __init__(self, rate: Rate, failures: Failures, overflow: Overflow) -> None:
        self._rate = rate
        self._failures = failures
        self._overflow = overflow

    async def __call__(self, call: Call, proceed: Next) -> Outcome:
        """Run the call unless it is one too many, and hand back as much of its result as fits."""
        if call.method is not Method.TOOL:
            return await self._overflow.fit(call, await proceed(call))
        self._failures.admit(call)
        self._rate.take(call)
        try:
            outcome = await proceed(call)
        except BridgeError as error:
            self._failures.note_error(call, error)
            raise
        self._failures.note_outcome(call, outcome)
        return await self._overflow.fit(call, outcome)
