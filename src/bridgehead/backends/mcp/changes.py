"""What changes in a server while it runs: its lists, and the resources that callers watch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import mcp_types as types
import structlog

from bridgehead.backends.mcp.connection import Connection
from bridgehead.backends.mcp.faults import innermost
from bridgehead.backends.mcp.in_flight import InFlight
from bridgehead.backends.mcp.ports import Shelf
from bridgehead.backends.mcp.rounds import params_of, request_meta
from bridgehead.backends.mcp.sdk import MCPError
from bridgehead.core import Call, Method, Outcome, as_mapping
from bridgehead.core.errors import BackendUnavailable

log = structlog.get_logger(__name__)

_SETTLE_S = 0.05
_LISTEN_AGAIN_S = 1.0


class Changes:
    """Hears what one backend announces, over all its lives."""

    def __init__(self, backend: str, shelf: Shelf) -> None:
        self._backend = backend
        self._shelf = shelf
        self._watched: Counter[str] = Counter()
        self._changed = anyio.Event()
        self._rewatch = anyio.Event()

    async def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Take note of what the server announces."""
        if method == "notifications/resources/updated":
            self._shelf.announce(self._backend, str(params.get("uri", "")))
        elif method.endswith("/list_changed"):
            self._changed.set()

    async def follow_lists(self, list_again: Callable[[], Awaitable[None]]) -> None:
        """List again whenever something was announced; a failure to list leaves the last good listing."""
        while True:
            await self._changed.wait()
            await anyio.sleep(_SETTLE_S)
            self._changed = anyio.Event()
            try:
                await list_again()
            except (MCPError, TimeoutError, BackendUnavailable) as error:
                log.warning("a changed list could not be read", backend=self._backend, cause=str(innermost(error)))

    async def listen(self, connection: Connection, capabilities: Mapping[str, Any]) -> None:
        """Keep a `subscriptions/listen` stream open with a modern server, where it offers one."""
        offers = any(
            as_mapping(capabilities.get(part)).get(promise)
            for part in ("tools", "prompts", "resources")
            for promise in ("listChanged", "subscribe")
        )
        while offers and connection.session is not None:
            self._rewatch = anyio.Event()
            try:
                async with (
                    connection.session.listen_for_changes(tuple(+self._watched)) as events,
                    anyio.create_task_group() as waiting,
                ):
                    waiting.start_soon(self._cancel_on_rewatch, waiting.cancel_scope)
                    async for event in events:
                        uri = getattr(event, "uri", None)
                        if uri is None:
                            self._changed.set()
                        else:
                            self._shelf.announce(self._backend, str(uri))
                    waiting.cancel_scope.cancel()
            except Exception as error:  # noqa: BLE001 – whatever ended the stream, it is opened again
                reason = innermost(error)
                if isinstance(reason, MCPError) and reason.code == types.METHOD_NOT_FOUND:
                    return
                log.info("the stream of changes was lost", backend=self._backend, cause=str(reason))
                await anyio.sleep(_LISTEN_AGAIN_S)
                # What changed while nobody listened is not told again, so look once.
                self._changed.set()

    async def _cancel_on_rewatch(self, scope: anyio.CancelScope) -> None:
        await self._rewatch.wait()
        scope.cancel()

    async def watch_again(self, connection: Connection) -> None:
        """Tell a legacy server of the resources that its forerunner was told of, and announce each, since it was away."""
        for uri in +self._watched:
            session = connection.session
            try:
                if session is not None:
                    await session.request(Method.SUBSCRIBE, {"uri": uri})
            except MCPError as error:
                log.warning("a resource can no longer be watched", backend=self._backend, uri=uri, cause=str(error))
            else:
                self._shelf.announce(self._backend, uri)

    async def subscribe(self, call: Call, main: Connection, timeout_s: float) -> Outcome:
        """Count who watches a resource; the server is told of the first and the last."""
        params = params_of(call)
        uri = str(params["uri"])
        change = 1 if call.method is Method.SUBSCRIBE else -1
        before = self._watched[uri]
        matters = bool(before) != bool(max(0, before + change))
        outcome = Outcome({})
        if matters and not main.is_modern:
            meta = request_meta(call, call.channel, modern=False)
            flight = InFlight(call.channel)
            outcome = await main.run(call.method, params, flight=flight, timeout_s=timeout_s, meta=meta)
        self._watched[uri] = max(0, self._watched[uri] + change)
        if matters and main.is_modern:
            self._rewatch.set()
        return outcome
