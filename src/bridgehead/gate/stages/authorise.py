"""Finds where a call goes, and whether the caller may go there."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import replace

from bridgehead.catalog import Snapshot
from bridgehead.core import Call, Outcome
from bridgehead.core.errors import Forbidden
from bridgehead.gate.pipeline import Next
from bridgehead.gate.ports import Policy
from bridgehead.gate.routing import find_route


class Authorise:
    """Confines calls, not only lists: the name is looked up in the caller's view and nowhere else."""

    def __init__(self, catalog: Callable[[], Snapshot], policy: Policy, routed: MutableMapping[str, str]) -> None:
        """Look names up in `catalog`, ask `policy`; `routed` takes the backend of each running call, by call id."""
        self._catalog = catalog
        self._policy = policy
        self._routed = routed

    async def __call__(self, call: Call, proceed: Next) -> Outcome:
        """Pass the call on with its route set."""
        route = find_route(call, self._catalog())
        self._routed[call.id] = route.backend
        if not self._policy.allows(call.caller, route.risk):
            raise Forbidden(
                f"{call.caller.name} may not run {route.risk} calls such as {call.target}.",
                hint="Ask the owner of the bridge for the right, or use a tool that does less.",
                details={"risk": route.risk.value},
            )
        return await proceed(replace(call, route=route))
