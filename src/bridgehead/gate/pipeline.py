"""The one path from a call to an outcome.

Every surface, skill, script and workflow step enters here, and nothing else may reach a backend. A stage sees the call on
the way in and the outcome (or the error) on the way out. Which stages there are and in what order is `order.py`'s; what they
do is theirs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from bridgehead.core import Call, Outcome

Next = Callable[[Call], Awaitable[Outcome]]
"""The rest of the way: the stages further in, and the backend at the end."""


class Stage(Protocol):
    """One step of the gate."""

    async def __call__(self, call: Call, proceed: Next) -> Outcome:
        """Handle `call`, and await `proceed` at most once.

        To refuse, raise a `BridgeError`. To change the call, `await proceed(replace(call, …))`.
        """
        ...


class Gate:
    """The stages around the dispatch, put together once; a call costs one function per stage and nothing for the whole.

    They can be swapped between two calls. A call goes all its way through those that it met at the outermost.
    """

    def __init__(self, stages: Sequence[Stage], dispatch: Next) -> None:
        """Put `stages` around `dispatch`, the first outermost."""
        self._run = _through(stages, dispatch)

    def swap(self, stages: Sequence[Stage], dispatch: Next) -> None:
        """Put these in the place of those before, for the calls that come from now on."""
        self._run = _through(stages, dispatch)

    async def run(self, call: Call) -> Outcome:
        """Take the call through every stage.

        Raises:
            BridgeError: It was refused, or it failed in a way that is not the tool's own.
        """
        return await self._run(call)


def _through(stages: Sequence[Stage], dispatch: Next) -> Next:
    run = dispatch
    for stage in reversed(stages):
        run = _around(stage, run)
    return run


def _around(stage: Stage, proceed: Next) -> Next:
    return lambda call: stage(call, proceed)
