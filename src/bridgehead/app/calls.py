"""The calls that run, counted, so that the bridge or one of its backends can end in order."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from bridgehead.core import Call, Outcome
from bridgehead.core.errors import BackendUnavailable
from bridgehead.gate import Backend, Gate


class _Count:
    """How many are inside, and an end to the wait for none."""

    __slots__ = ("_empty", "_inside")

    def __init__(self) -> None:
        self._inside = 0
        self._empty: anyio.Event | None = None

    def enter(self) -> None:
        self._inside += 1

    def leave(self) -> None:
        self._inside -= 1
        if not self._inside and self._empty is not None:
            self._empty.set()

    async def wait_empty(self) -> None:
        while self._inside:
            self._empty = anyio.Event()
            await self._empty.wait()


class CountingGate:
    """The gate, with a count of the calls inside it, for a clean stop. Implements the surfaces' `Gate`."""

    def __init__(self, gate: Gate, give_up: Callable[[], None]) -> None:
        """Run calls through `gate`; `give_up` ends those that its backends run, each with an answer."""
        self._gate = gate
        self._give_up = give_up
        self._count = _Count()

    async def run(self, call: Call) -> Outcome:
        """Run the call.

        Raises:
            BackendUnavailable: The bridge stops, and the call has had its grace.
        """
        self._count.enter()
        try:
            return await self._gate.run(call)
        finally:
            self._count.leave()

    def give_up(self) -> None:
        """End every call that is inside; each is answered, and on record."""
        self._give_up()

    async def wait_empty(self) -> None:
        """Return as soon as no call is inside."""
        await self._count.wait_empty()


class EndableBackend:
    """A backend whose calls can be ended, each with an answer that says why. Implements the gate's `Backend`."""

    def __init__(self, backend: Backend) -> None:
        self.name = backend.name
        self._backend = backend
        self._inside: set[anyio.CancelScope] = set()
        self._count = _Count()
        self._over: str | None = None

    async def run(self, call: Call) -> Outcome:
        """Run the call.

        Raises:
            BackendUnavailable: The backend has been given up, before the call or during it.
        """
        if self._over is not None:
            raise BackendUnavailable(f"{self._over}.", hint="send the call again.")
        scope = anyio.CancelScope()
        self._inside.add(scope)
        self._count.enter()
        try:
            with scope:
                return await self._backend.run(call)
        finally:
            self._inside.discard(scope)
            self._count.leave()
        raise BackendUnavailable(
            f"{self._over} while the call ran. The call may or may not have had its effect.",
            hint="look at its effect before you repeat it.",
        )

    def give_up(self, reason: str) -> None:
        """End the calls that run, and take no more; `reason` is a sentence without its full stop."""
        self._over = reason
        for scope in tuple(self._inside):
            scope.cancel()

    async def wait_empty(self) -> None:
        """Return as soon as no call runs."""
        await self._count.wait_empty()
