"""Innermost: a place among the backend's running calls, and the backend itself.

Deadlines are not set here: a backend knows its tools' own, and what it has to tell its provider when one passes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import anyio

from bridgehead.core import Call, Outcome
from bridgehead.core.errors import BackendBusy, BackendUnavailable
from bridgehead.gate.limits import Limits
from bridgehead.gate.ports import Backend


class Places:
    """So many calls at once in one backend, first come first served; how many can change meanwhile.

    Not `anyio.CapacityLimiter`: its two checkpoints a call cost more than the rest of the gate.
    """

    __slots__ = ("_free", "_places", "_waiting")

    def __init__(self, places: int) -> None:
        self._places = places
        self._free = places
        """Below 0 where more calls run than there are places now."""
        self._waiting: deque[anyio.Event] = deque()

    async def take(self, wait_s: float) -> bool:
        """Take a place, waiting for it at most `wait_s`; false where there was none."""
        if self._free > 0:
            self._free -= 1
            return True
        if wait_s <= 0:
            return False
        turn = anyio.Event()
        self._waiting.append(turn)
        try:
            with anyio.move_on_after(wait_s):
                await turn.wait()
        except BaseException:
            self._leave(turn)
            raise
        if turn.is_set():
            return True
        self._leave(turn)
        return False

    def give(self) -> None:
        """Give the place back, to whoever has waited longest."""
        if self._waiting and self._free >= 0:
            self._waiting.popleft().set()
        else:
            self._free += 1

    def resize(self, places: int) -> None:
        """Have so many places from now on; whoever holds one keeps it, and those who wait take new ones in order."""
        self._free += places - self._places
        self._places = places
        while self._free > 0 and self._waiting:
            self._free -= 1
            self._waiting.popleft().set()

    def _leave(self, turn: anyio.Event) -> None:
        """Stop waiting; a place that was handed over meanwhile goes to the next."""
        if turn.is_set():
            self.give()
        else:
            self._waiting.remove(turn)


class Dispatch:
    """Runs the call where its route leads."""

    def __init__(self, backends: Mapping[str, Backend], limits: Limits) -> None:
        self._backends = backends
        self._limits = limits
        self._places: dict[str, Places] = {}

    def changed(self, backends: Mapping[str, Backend], limits: Limits) -> Dispatch:
        """One for these backends and limits. Backends that stay share their places with this one."""
        after = Dispatch(backends, limits)
        for name, backend in backends.items():
            if backend is self._backends.get(name):
                places = after._places[name] = self._places_of(name)
                places.resize(limits.places(name))
        return after

    async def __call__(self, call: Call) -> Outcome:
        """Wait for a place, then run the call to its end."""
        route = call.route
        if route is None:
            raise AssertionError("a call reached dispatch without having been authorised")
        backend = self._backends.get(route.backend)
        if backend is None:
            raise BackendUnavailable(
                f"Backend {route.backend} is not running.",
                hint="Try again later, or look at `bridgehead backend list`.",
            )
        allowed = self._limits.places(route.backend)
        places = self._places_of(route.backend)
        if not await places.take(self._limits.queue_s):
            raise BackendBusy(
                f"Backend {route.backend} has {allowed} calls running, which is as many as it is allowed.",
                hint="Wait for your other calls to end before you make more, then send this one again.",
                details={"in_flight": allowed},
            )
        try:
            return await backend.run(call)
        finally:
            places.give()

    def _places_of(self, backend: str) -> Places:
        places = self._places.get(backend)
        if places is None:
            places = self._places[backend] = Places(self._limits.places(backend))
        return places
