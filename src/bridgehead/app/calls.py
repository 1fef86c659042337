"""The calls that run, counted, so that the bridge or one of its backends can end in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio

from bridgehead.core import Call, Outcome
from bridgehead.core.errors import BackendUnavailable
from bridgehead.gate import Backend, Gate


class _Emptiness:
    """An end to any number of waits for a moment in which nothing is inside."""

    __slots__ = ("_came",)

    def __init__(self) -> None:
        self._came: anyio.Event | None = None

    def tell(self) -> None:
        if self._came is not None:
            self._came.set()

    async def wait(self) -> None:
        if self._came is None or self._came.is_set():
            self._came = anyio.Event()
        await self._came.wait()


class CountingGate:
    """The gate, with a count of the calls inside it, for a clean stop. Implements the surfaces' `Gate`."""

    def __init__(self, gate: Gate, give_up: Callable[[], None]) -> None:
        """Run calls through `gate`; `give_up` ends those that its backends run, each with an answer."""
        self._gate = gate
        self._give_up = give_up
        self._inside = 0
        self._emptiness = _Emptiness()

    async def run(self, call: Call) -> Outcome:
        """Run the call.

        Raises:
            BackendUnavailable: The bridge stops, and the call has had its grace.
        """
        self._inside += 1
        try:
            return await self._gate.run(call)
        finally:
            self._inside -= 1
            if not self._inside:
                self._emptiness.tell()

    def give_up(self) -> None:
        """End every call that is inside; each is answered, and on record."""
        self._give_up()

    async def wait_empty(self) -> None:
        """Return as soon as no call is inside."""
        while self._inside:
            await self._emptiness.wait()


class EndableBackend:
    """A backend whose calls can be ended, each with an answer that says why. Implements the gate's `Backend`."""

    def __init__(self, backend: Backend) -> None:
        self.name = backend.name
        self._backend = backend
        self._inside: set[asyncio.Task[Any] | None] = set()
        self._loop = asyncio.get_running_loop()
        self._emptiness = _Emptiness()
        self._over: str | None = None

    async def run(self, call: Call) -> Outcome:
        """Run the call.

        Raises:
            BackendUnavailable: The backend has been given up, before the call or during it.
        """
        if self._over is not None:
            raise BackendUnavailable(f"{self._over}.", hint="send the call again.")
        # The task, not a scope of its own: entering one costs as much as two stages of the gate.
        task = asyncio.current_task(self._loop)
        self._inside.add(task)
        try:
            return await self._backend.run(call)
        except asyncio.CancelledError:
            if self._over is None or task is None:
                raise
            task.uncancel()
        finally:
            self._inside.discard(task)
            if not self._inside:
                self._emptiness.tell()
        raise BackendUnavailable(
            f"{self._over} while the call ran. The call may or may not have had its effect.",
            hint="look at its effect before you repeat it.",
        )

    def give_up(self, reason: str) -> None:
        """End the calls that run, and take no more; `reason` is a sentence without its full stop."""
        self._over = reason
        for task in tuple(self._inside):
            if task is not None:
                task.cancel()

    async def wait_empty(self) -> None:
        """Return as soon as no call runs."""
        while self._inside:
            await self._emptiness.wait()
