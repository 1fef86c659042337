"""Finds where a call goes, and whether the caller may go there."""

from __future__ import annotations

from collections.abc import Callable, Collection, MutableMapping

from bridgehead.catalog import Snapshot
from bridgehead.catalog.names import SEPARATOR
from bridgehead.core import Call, Outcome
from bridgehead.core.errors import Forbidden, ToolNotFound
from bridgehead.gate.pipeline import Next
from bridgehead.gate.ports import Policy
from bridgehead.gate.routing import find_route


class Authorise:
    """Confines calls, not only lists: the name is looked up in the caller's view and nowhere else."""

    def __init__(
        self,
        catalog: Callable[[], Snapshot],
        policy: Policy,
        routed: MutableMapping[str, str],
        starting: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """Look names up in `catalog`, ask `policy`; `routed` takes the backend of each running call, by call id.

        `starting` names the backends that have never listed anything yet.
        """
        self._starting = starting
        self._catalog = catalog
        self._policy = policy
        self._routed = routed

    async def __call__(self, call: Call, proceed: Next) -> Outcome:
        """Pass the call on with its route set."""
        try:
            route = find_route(call, self._catalog())
        except ToolNotFound as error:
            coming = [name for name in self._starting() if call.target.startswith(f"{name}{SEPARATOR}")]
            if not coming:
                raise
            hint = f"Backend {coming[0]} is still starting and has not listed its tools yet; try again in a moment."
            raise ToolNotFound(error.message, hint=hint) from error
        self._routed[call.id] = route.backend
        if not self._policy.allows(call.caller, route.risk):
            raise Forbidden(
                f"{call.caller.name} may not run {route.risk} calls such as {call.target}.",
                hint="Ask the owner of the bridge for the right, or use a tool that does less.",
                details={"risk": route.risk.value},
            )
        call.route = route
        return await proceed(call)
