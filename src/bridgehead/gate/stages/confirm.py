"""Whoever has to agree to a call is asked here, after everything that could refuse it without a person."""

from __future__ import annotations

from bridgehead.core import Call, Method, Outcome
from bridgehead.gate.pipeline import Next
from bridgehead.gate.ports import Confirmer


class Confirm:
    """Runs a tool once its confirmer is content."""

    def __init__(self, confirmer: Confirmer) -> None:
        self._confirmer = confirmer

    async def __call__(self, call: Call, proceed: Next) -> Outcome:
        """Ask, then run. Only tools change anything, so only they are asked about."""
        if call.method is Method.TOOL:
            await self._confirmer.confirm(call)
        return await proceed(call)


class AllowAll:
    """A confirmer that agrees to everything, for owners who leave the asking to their agent."""

    async def confirm(self, call: Call) -> None:
        """Agree."""
