"""The loop breaker's memory: which call of which caller failed last, and how often in a row.

Two stages write here, because a call can fail in two ways that repeating will not mend: its arguments are refused
before it is run, or it runs and fails. A real model sent one misnested argument 1,022 times. What may mend itself (a
backend that is away, a deadline) does not count.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass

import orjson

from bridgehead.core import BridgeError, Call, Clock, Kind, Outcome
from bridgehead.core.errors import LoopStopped

_REMEMBERED = 4096
"""Callers and tools whose last failure is kept; past it the oldest is forgotten, which only lets a call through."""


@dataclass(slots=True)
class _Streak:
    digest: bytes
    count: int
    at: float


class Failures:
    """Failing calls in a row, by caller and tool; other arguments or a success end a row."""

    def __init__(self, clock: Clock, *, stop_at: int, window_s: float) -> None:
        """Stop the `stop_at`-th identical call whose forerunners failed, the last within `window_s`; 0 stops none."""
        self._clock = clock
        self._streaks: OrderedDict[tuple[str, str], _Streak] = OrderedDict()
        self.adjust(stop_at=stop_at, window_s=window_s)

    def adjust(self, *, stop_at: int, window_s: float) -> None:
        """Go by other numbers from now on; what has failed so far is remembered."""
        # At the least one failure has to be seen before its like can be stopped.
        self._allowed = max(1, stop_at - 1) if stop_at > 0 else 0
        self._window_s = window_s

    def admit(self, call: Call) -> None:
        """Let the call through, unless it would fail again.

        Raises:
            LoopStopped: The same call failed too often in a row.
        """
        if not self._streaks:
            return
        streak = self._streaks.get((call.caller.id, call.target))
        if streak is None or streak.count < self._allowed:
            return
        wait_s = self._window_s - (self._clock.monotonic() - streak.at)
        if wait_s <= 0 or streak.digest != _digest(call):
            return
        raise LoopStopped(
            f"This exact call of {call.target} has failed {streak.count} times in a row and was not run again.",
            hint="Read the earlier error and change the arguments, choose another tool, or ask the person you work for."
            f" The same call is run again in {max(1, round(wait_s))} s at the earliest.",
            details={"failures": streak.count, "retry_after_s": max(1, round(wait_s))},
        )

    def note_outcome(self, call: Call, outcome: Outcome) -> None:
        """Remember what came of the call; an interim result says nothing yet."""
        if outcome.is_error:
            self._failed(call)
        elif self._streaks and not outcome.needs_input:
            self._streaks.pop((call.caller.id, call.target), None)

    def note_error(self, call: Call, error: BridgeError) -> None:
        """Remember an error that sending the same again cannot mend."""
        if error.kind is Kind.INVALID:
            self._failed(call)

    def _failed(self, call: Call) -> None:
        if self._allowed <= 0:
            return
        key = (call.caller.id, call.target)
        digest, now = _digest(call), self._clock.monotonic()
        streak = self._streaks.get(key)
        if streak is None or streak.digest != digest or now - streak.at > self._window_s:
            self._streaks[key] = _Streak(digest, 1, now)
        else:
            streak.count += 1
            streak.at = now
        self._streaks.move_to_end(key)
        if len(self._streaks) > _REMEMBERED:
            self._streaks.popitem(last=False)


def _digest(call: Call) -> bytes:
    """What makes two calls the same: everything the tool gets, whatever the order of keys."""
    sent = [call.group, call.arguments, call.answers, call.state]
    try:
        text = orjson.dumps(sent, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError, RecursionError):
        try:
            text = json.dumps(sent, sort_keys=True, default=repr).encode()
        except (TypeError, ValueError, RecursionError):
            # Too odd to compare: never the same as another.
            text = call.id.encode()
    return hashlib.blake2b(text, digest_size=16).digest()
