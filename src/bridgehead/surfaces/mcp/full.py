"""The full surface: every tool, resource and prompt of a view, in both protocol generations on one URL.

It turns requests into calls, hands them to the gate and shows what came of them. It decides nothing: what a caller can see and
do follows from the view of its URL and from the gate.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import mcp_types as types
import structlog
from mcp.server.caching import CacheHint
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types.methods import validate_client_request
from pydantic import BaseModel

from bridgehead import __version__
from bridgehead.catalog import View
from bridgehead.core import Caller, Method
from bridgehead.surfaces.mcp.announcements import Announcements
from bridgehead.surfaces.mcp.calls import Calls, Inside, enveloped
from bridgehead.surfaces.mcp.channel import LEVEL_KEY, ROOTS_KEY, FrontChannel
from bridgehead.surfaces.mcp.lists import LISTS_FRESH_MS, Lists, input_schema_of
from bridgehead.surfaces.mcp.sdk import Context, ViewServer, connection_of

log = structlog.get_logger(__name__)

CALLER_KEY = "bridgehead.caller"
_SUBSCRIBED_KEY = "bridgehead.subscribed"
_RELAYED: dict[str, type[BaseModel]] = {
    "tools/call": types.CallToolRequestParams,
    "resources/read": types.ReadResourceRequestParams,
    "prompts/get": types.GetPromptRequestParams,
    "completion/complete": types.CompleteRequestParams,
}
RELAYED_METHODS = frozenset(_RELAYED)


class FullSurface:
    """The MCP server of one view."""

    def __init__(self, inside: Inside, group: str | None, *, local_caller: Caller | None = None) -> None:
        """Make the server of a group, or of everything.

        Args:
            inside: The bridge.
            group: The group, or None.
            local_caller: Who is calling where requests do not say so, on standard input.
        """
        self._inside = inside
        self._group = group
        self._local_caller = local_caller
        self.on_initialized: Callable[[Connection], None] | None = None
        """Told of each session of the older generation once it may be used."""
        self.calls = Calls(inside, group)
        self.lists = Lists(self.view)
        self.announcements = Announcements(inside.catalog, group)
        self._listen = ListenHandler(self.announcements)
        hint = CacheHint(ttl_ms=LISTS_FRESH_MS, scope="private")
        self.server = ViewServer(
            "bridgehead",
            version=__version__,
            title="Bridgehead",
            write_instructions=self._write_instructions,
            cache_hints={
                "server/discover": hint,
                "tools/list": hint,
                "resources/list": hint,
                "resources/templates/list": hint,
                "prompts/list": hint,
            },
            get_tool_input_schema=input_schema_of(lambda: inside.catalog.snapshot, group),
            on_list_tools=self._list_tools,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._listen_for_changes,
            on_list_prompts=self._list_prompts,
        )
        for method, params_type in _RELAYED.items():
            self.server.add_request_handler(method, params_type, self._relay)
        # Registered apart: as constructor arguments they warn of their deprecation in 2026-07-28, which no client can help.
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        self.server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )
        # In place of the SDK's own, which makes a trace span of each request that nothing here collects.
        self.server.middleware[:] = [self._around]

    def view(self) -> View | None:
        """What can be seen and called here now."""
        return self._inside.catalog.snapshot.view(self._group)

    def _write_instructions(self) -> str:
        snapshot = self._inside.catalog.snapshot
        view = snapshot.view(self._group)
        return self._inside.instructions(view, snapshot) if view is not None else ""

    # --- lists

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        return self._list(ctx, "tools/list", params)

    async def _list_resources(self, ctx: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        return self._list(ctx, "resources/list", params)

    async def _list_templates(self, ctx: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        return self._list(ctx, "resources/templates/list", params)

    async def _list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        return self._list(ctx, "prompts/list", params)

    def _list(self, ctx: Context, method: str, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        if params is not None and params.cursor:
            raise MCPError(types.INVALID_PARAMS, "This list has one page, so no cursor of it exists.")
        return self.lists.result(method, FrontChannel(ctx).era)

    # --- calls

    async def _around(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Relay results as they are, and remember each client of the older generation.

        The SDK would refuse or trim whatever its models do not have. Requests are still checked against them, so what reaches
        a backend is well-formed. Clients with sessions are remembered so that changes can be announced to them.
        """
        if ctx.method not in _RELAYED or not connection_of(ctx).initialize_accepted:
            result = await call_next(ctx)
            if ctx.method == "notifications/initialized":
                connection = connection_of(ctx)
                connection.exit_stack.callback(self.announcements.add(connection))
                if self.on_initialized is not None:
                    self.on_initialized(connection)
            return result
        validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
        return enveloped(await self._relay(ctx, None), ctx.method, FrontChannel(ctx).era)

    async def _relay(self, ctx: Context, _params: Any) -> dict[str, Any]:
        headers = ctx.request.headers if ctx.request is not None else None
        return await self.calls.relay(
            Method(ctx.method), ctx.params or {}, self._caller(ctx), FrontChannel(ctx), headers
        )

    async def _run(self, ctx: Context, method: Method, target: str) -> None:
        """Run a call about a resource that has no result to show."""
        call = self.calls.call(method, target, {}, caller=self._caller(ctx), channel=FrontChannel(ctx))
        if ctx.request is not None:
            call.forwarded = self.calls.forwarded(ctx.request.headers)
        await self.calls.run(call, ctx.params or {})

    def _caller(self, ctx: Context) -> Caller:
        if ctx.request is not None:
            return ctx.request.scope[CALLER_KEY]
        if self._local_caller is None:
            raise MCPError(types.INVALID_REQUEST, "The request does not say who is calling.")
        return self._local_caller

    # --- what belongs to a session

    async def _set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        connection_of(ctx).state[LEVEL_KEY] = params.level
        return types.EmptyResult()

    async def _roots_changed(self, ctx: Context, _params: types.NotificationParams) -> None:
        for tell in connection_of(ctx).state.get(ROOTS_KEY, ()):
            await tell()

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> dict[str, Any]:
        connection, uri = connection_of(ctx), str(params.uri)
        held: set[str] = connection.state.setdefault(_SUBSCRIBED_KEY, set())
        if uri not in held:
            await self._run(ctx, Method.SUBSCRIBE, uri)
            if not held:
                connection.exit_stack.push_async_callback(self._unsubscribe_all, ctx, held)
            held.add(uri)
            self.announcements.watch(connection, uri)
        return {}

    async def _unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> dict[str, Any]:
        connection, uri = connection_of(ctx), str(params.uri)
        held: set[str] = connection.state.get(_SUBSCRIBED_KEY, set())
        if uri in held:
            held.discard(uri)
            self.announcements.unwatch(connection, uri)
            await self._run(ctx, Method.UNSUBSCRIBE, uri)
        return {}

    async def _unsubscribe_all(self, ctx: Context, held: set[str]) -> None:
        for uri in tuple(held):
            with suppress(MCPError):
                await self._run(ctx, Method.UNSUBSCRIBE, uri)

    async def _listen_for_changes(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve `subscriptions/listen`; resources are watched at their backends for as long as the stream is open."""
        watched: list[str] = []
        try:
            for uri in params.notifications.resource_subscriptions or ():
                # A subscription to something unknown is honoured and never fires, as the SDK has it.
                with suppress(MCPError):
                    await self._run(ctx, Method.SUBSCRIBE, str(uri))
                    watched.append(str(uri))
            return await self._listen(ctx, params)
        finally:
            with anyio.CancelScope(shield=True):
                await self._unsubscribe_all(ctx, set(watched))

    def end_streams(self) -> None:
        """End every open `subscriptions/listen` stream in order, as the bridge stops."""
        self._listen.close()
