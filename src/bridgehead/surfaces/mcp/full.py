"""The full surface: every tool, resource and prompt of a view, in both protocol generations on one URL.

It turns requests into calls, hands them to the gate and shows what came of them. It decides nothing: what a caller can see and
do follows from the view of its URL and from the gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import anyio
import mcp_types as types
import structlog
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types.methods import validate_client_request
from pydantic import BaseModel

from bridgehead import __version__
from bridgehead.catalog import Catalog
from bridgehead.core import BridgeError, Call, Caller, CallId, Clock, Era, Method, as_mapping, new_id
from bridgehead.surfaces.mcp.announcements import Announcements
from bridgehead.surfaces.mcp.channel import LEVEL_KEY, ROOTS_KEY, FrontChannel
from bridgehead.surfaces.mcp.failures import as_rpc_error, as_tool_result, is_for_the_model
from bridgehead.surfaces.mcp.forwarding import forwarded_headers
from bridgehead.surfaces.mcp.lists import LISTS_FRESH_MS, SERVER_IDENTITY, Lists, input_schema_of
from bridgehead.surfaces.mcp.ports import Gate, Instructions
from bridgehead.surfaces.mcp.sdk import Context, ViewServer, connection_of
from bridgehead.surfaces.mcp.sealing import Binding, Seal, digest

log = structlog.get_logger(__name__)

CALLER_KEY = "bridgehead.caller"
_CONNECTION_META = frozenset(
    {types.SERVER_INFO_META_KEY, types.PROTOCOL_VERSION_META_KEY, "io.modelcontextprotocol/subscriptionId"}
)
_SUBSCRIBED_KEY = "bridgehead.subscribed"
_RELAYED: dict[str, type[BaseModel]] = {
    "tools/call": types.CallToolRequestParams,
    "resources/read": types.ReadResourceRequestParams,
    "prompts/get": types.GetPromptRequestParams,
    "completion/complete": types.CompleteRequestParams,
}
RELAYED_METHODS = frozenset(_RELAYED)
_MODERN_KEYS = ("resultType", "ttlMs", "cacheScope")


@dataclass(frozen=True, slots=True)
class Inside:
    """What a surface may know of the inside of the bridge."""

    catalog: Catalog
    gate: Gate
    seal: Seal
    instructions: Instructions
    clock: Clock
    forwarded_headers: Callable[[], frozenset[str]] = frozenset
    """The names, in lower case, of the callers' headers that some backend wants."""


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
        self.lists = Lists(lambda: inside.catalog.snapshot.view(group))
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
            return result
        validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
        return _enveloped(await self._relay(ctx, None), ctx)

    async def _relay(self, ctx: Context, _params: Any) -> dict[str, Any]:
        """Run `tools/call`, `prompts/get`, `resources/read` or `completion/complete`."""
        raw: Mapping[str, Any] = ctx.params or {}
        method = Method(ctx.method)
        match method:
            case Method.TOOL | Method.PROMPT:
                return await self._run(ctx, method, raw["name"], raw.get("arguments") or {})
            case Method.COMPLETE:
                ref: Mapping[str, Any] = raw["ref"]
                sent = {key: raw[key] for key in ("ref", "argument", "context") if key in raw}
                return await self._run(ctx, method, ref.get("name") or ref.get("uri") or "", sent)
            case _:
                return await self._run(ctx, method, raw["uri"], {})

    async def _run(self, ctx: Context, method: Method, target: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        channel = FrontChannel(ctx)
        caller = self._caller(ctx)
        raw: Mapping[str, Any] = ctx.params or {}
        try:
            sealed = raw.get("requestState")
            call = Call(
                id=CallId(new_id("call")),
                caller=caller,
                method=method,
                target=target,
                arguments=arguments,
                channel=channel,
                surface="mcp",
                group=self._group,
                meta=_mapping(raw.get("_meta")),
                answers=_mapping(raw["inputResponses"]) if "inputResponses" in raw else None,
                forwarded=self._forwarded(ctx),
            )
            if isinstance(sealed, str):
                call = replace(call, state=self._inside.seal.open(sealed, self._binding(call)))
            outcome = await self._inside.gate.run(call)
        except BridgeError as error:
            if is_for_the_model(error, method):
                return as_tool_result(error)
            raise as_rpc_error(error, channel.era, target) from error
        result = _without_connection_meta(outcome.result)
        if outcome.needs_input:
            # Sealed also where the backend gave none, so that a retry is always bound to what it answers.
            state = result.get("requestState")
            sealable = state if isinstance(state, str) else None
            result["requestState"] = self._inside.seal.close(sealable, self._binding(call))
        return result

    def _forwarded(self, ctx: Context) -> Mapping[str, str]:
        wanted = self._inside.forwarded_headers()
        return forwarded_headers(ctx.request.headers, wanted) if wanted and ctx.request is not None else {}

    def _binding(self, call: Call) -> Binding:
        backend = self._backend_of(call.method, call.target)
        return Binding(backend, call.method, call.target, call.caller.id, call.group, digest(call.arguments))

    def _backend_of(self, method: Method, target: str) -> str:
        view = self._inside.catalog.snapshot.view(self._group)
        if view is None:
            return ""
        entry = view.resource(target) if method is Method.RESOURCE else None
        entry = entry or view.tools.get(target) or view.prompts.get(target)
        return entry.backend if entry is not None else ""

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
            await self._run(ctx, Method.SUBSCRIBE, uri, {})
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
            await self._run(ctx, Method.UNSUBSCRIBE, uri, {})
        return {}

    async def _unsubscribe_all(self, ctx: Context, held: set[str]) -> None:
        for uri in tuple(held):
            with suppress(MCPError):
                await self._run(ctx, Method.UNSUBSCRIBE, uri, {})

    async def _listen_for_changes(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve `subscriptions/listen`; resources are watched at their backends for as long as the stream is open."""
        watched: list[str] = []
        try:
            for uri in params.notifications.resource_subscriptions or ():
                # A subscription to something unknown is honoured and never fires, as the SDK has it.
                with suppress(MCPError):
                    await self._run(ctx, Method.SUBSCRIBE, str(uri), {})
                    watched.append(str(uri))
            return await self._listen(ctx, params)
        finally:
            with anyio.CancelScope(shield=True):
                await self._unsubscribe_all(ctx, set(watched))

    def end_streams(self) -> None:
        """End every open `subscriptions/listen` stream in order, as the bridge stops."""
        self._listen.close()


def _mapping(value: Any) -> dict[str, Any]:
    return dict(as_mapping(value))


def _enveloped(result: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """The result with what its generation requires around it, and without what only the other one knows."""
    if FrontChannel(ctx).era is Era.LEGACY:
        return {key: value for key, value in result.items() if key not in _MODERN_KEYS}
    result.setdefault("resultType", "complete")
    if ctx.method == "resources/read":
        result.setdefault("ttlMs", 0)
        result["cacheScope"] = "private"
    result["_meta"] = {**(result.get("_meta") or {}), types.SERVER_INFO_META_KEY: SERVER_IDENTITY}
    return result


def _without_connection_meta(result: Mapping[str, Any]) -> dict[str, Any]:
    """The result without the `_meta` keys that belong to the backend's own connection."""
    relayed = dict(result)
    if "_meta" in relayed:
        kept = {key: value for key, value in as_mapping(relayed["_meta"]).items() if key not in _CONNECTION_META}
        if kept:
            relayed["_meta"] = kept
        else:
            del relayed["_meta"]
    return relayed
