"""When a backend is started: how many at a time, and how long after a failure.

Starting is the dearest thing that a server does, so only so many do at once. One that hangs gives its place up after a while:
it waits and costs nothing, and must not hold up the others. After each failure in a row the pause doubles, and after many it
is a long one.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

import anyio

FIRST_PAUSE_S = 0.2
BREAK_AFTER = 8
"""Failures in a row after which only the long pause is made."""
LONG_PAUSE_S = 60.0
HELD_S = 20.0
"""How long a start keeps its place at most."""


class Turn:
    """A place among those that are starting."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back = give_back
        self._over = anyio.Event()

    def end(self) -> None:
        """Let the next one start; further calls do nothing."""
        if not self._over.is_set():
            self._over.set()
            self._give_back()

    async def end_in_time(self) -> None:
        """End it after a while, should it last longer than any start that comes to something."""
        with anyio.move_on_after(HELD_S):
            await self._over.wait()
        self.end()


class Starts:
    """So many starts at a time, first come first served, but those first that were ready before."""

    def __init__(self, places: int = 8) -> None:
        self._free = places
        self._waiting: deque[anyio.Event] = deque()

    async def turn(self, *, urgent: bool) -> Turn:
        """Wait for a place; `urgent` goes before those that are not."""
        if self._free > 0:
            self._free -= 1
            return Turn(self._give)
        called = anyio.Event()
        if urgent:
            self._waiting.appendleft(called)
        else:
            self._waiting.append(called)
        try:
            await called.wait()
        except BaseException:
            if called.is_set():
                self._give()
            else:
                self._waiting.remove(called)
            raise
        return Turn(self._give)

    def _give(self) -> None:
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._free += 1


def pause_s(failures: int, draw: Callable[[], float] = random.random) -> float:
    """How long to wait after so many failures in a row, at least one.

    Up to a fifth more or less than that, by `draw`, so that what fell together does not get up together.
    """
    whole = LONG_PAUSE_S if failures >= BREAK_AFTER else FIRST_PAUSE_S * 2 ** (failures - 1)
    return whole * (0.8 + 0.4 * draw())
