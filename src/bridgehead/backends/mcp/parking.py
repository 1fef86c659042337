"""Calls of callers that cannot be asked directly, on servers that only know how to ask directly.

A caller of the 2026-07-28 generation is asked by an interim result and answers with a new request. A legacy server asks in the
middle of a call and waits. So the call is parked: it keeps running in a task of the backend, its question goes out as
`input_required` with a handle, and the retry that brings the answers takes it up again.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
import structlog

from bridgehead.core import Call, Channel, Era, Outcome
from bridgehead.core.errors import BackendUnavailable, StateInvalid

log = structlog.get_logger(__name__)

_SETTLE_S = 0.05
PARKED_FOR_S = 900.0
"""How long a parked call waits for its answers."""


@dataclass(eq=False)
class Parked:
    """A call that runs in a task of its own, and the channel its server sees.

    Implements `Channel` towards the server's side of the call.
    """

    channel: Channel
    questions: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    answers: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    news: anyio.Event = field(default_factory=anyio.Event)
    answered: anyio.Event = field(default_factory=anyio.Event)
    taken: anyio.Event = field(default_factory=anyio.Event)
    outcome: Outcome | None = None
    failure: Exception | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    era: Era = Era.MODERN
    can_ask: bool = True
    session: None = None
    _count: int = 0

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the caller declared."""
        return self.channel.capabilities

    @property
    def wants_progress(self) -> bool:
        """Whether the caller wants progress now."""
        return self.channel.wants_progress

    @property
    def log_level(self) -> str | None:
        """The least level of message the caller wants now."""
        return self.channel.log_level

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Report to whichever request of the caller is open."""
        await self.channel.progress(progress, total, message)

    async def log(self, params: Mapping[str, Any]) -> None:
        """Send to whichever request of the caller is open."""
        await self.channel.log(params)

    def on_close(self, callback: Callable[[], Awaitable[None]]) -> None:
        """A parked call has no session that could end."""

    def on_roots_changed(self, callback: Callable[[], Awaitable[None]]) -> None:
        """A parked call has no session in which that could be said."""

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Put the question up, and wait until a retry answers it."""
        self._count += 1
        key = f"q{self._count}"
        self.questions[key] = {"method": method, "params": dict(params)} if params else {"method": method}
        self.news.set()
        while key not in self.answers:
            await self.answered.wait()
        return self.answers.pop(key)

    def take_up(self, channel: Channel, answers: Mapping[str, Any]) -> None:
        """Continue on behalf of a further request of the same caller."""
        self.taken.set()
        self.taken = anyio.Event()
        self.channel = channel
        self.news = anyio.Event()
        for key in list(self.questions):
            answer = answers.get(key)
            if isinstance(answer, Mapping):
                del self.questions[key]
                self.answers[key] = answer
        waiting, self.answered = self.answered, anyio.Event()
        waiting.set()
        if self.questions or self.outcome is not None or self.failure is not None:
            self.news.set()


class ParkingLot:
    """The parked calls of one backend."""

    def __init__(self) -> None:
        self._parked: dict[str, Parked] = {}

    async def run(
        self,
        call: Call,
        tasks: anyio.abc.TaskGroup,
        start: Callable[[Channel], Awaitable[Outcome]],
    ) -> Outcome:
        """Start a call that may have to be parked, or take a parked one up again.

        Args:
            call: The call; with `state` it takes up the parked call of that handle.
            tasks: The task group that the call runs in, which outlives the caller's request.
            start: Runs the call to its end over the channel it is given.

        Raises:
            StateInvalid: The handle is unknown or too old.
        """
        if call.state is None:
            parked = Parked(call.channel)
            handle = secrets.token_urlsafe(24)
            tasks.start_soon(self._drive, parked, start)
        else:
            handle = call.state
            found = self._parked.pop(handle, None)
            if found is None:
                raise StateInvalid(
                    "The call that this requestState belongs to is over or unknown.",
                    hint="send the call again without requestState.",
                )
            parked = found
            parked.take_up(call.channel, call.answers or {})
        try:
            await parked.news.wait()
            if parked.questions:
                # A server may ask several things at once; all of them go out together.
                await anyio.sleep(_SETTLE_S)
        except BaseException:
            # The caller left while its call was running, not while it was parked: the call ends too.
            parked.scope.cancel()
            raise
        if parked.failure is not None:
            raise parked.failure
        if parked.outcome is not None:
            return parked.outcome
        self._parked[handle] = parked
        tasks.start_soon(self._expire, handle, parked, parked.taken)
        return Outcome(
            {"resultType": "input_required", "inputRequests": dict(parked.questions), "requestState": handle}
        )

    async def _drive(self, parked: Parked, start: Callable[[Channel], Awaitable[Outcome]]) -> None:
        try:
            with parked.scope:
                parked.outcome = await start(parked)
        except Exception as error:  # noqa: BLE001 – raised again where the caller waits, not in the backend's task group
            log.info("a parked call failed", cause=str(error))
            parked.failure = error
        finally:
            if parked.outcome is None and parked.failure is None:
                parked.failure = BackendUnavailable("The call was ended before it had a result.")
            parked.news.set()

    async def _expire(self, handle: str, parked: Parked, taken: anyio.Event) -> None:
        with anyio.move_on_after(PARKED_FOR_S):
            await taken.wait()
        if not taken.is_set():
            self._parked.pop(handle, None)
            parked.scope.cancel()
