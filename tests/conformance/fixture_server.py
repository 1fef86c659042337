"""A server that has every tool, resource and prompt the official MCP conformance suite looks for.

It is what the suite measures directly, and what the bridge is put in front of. `--generation` decides which protocol
generations it serves: `dual` serves both; `legacy` knows only the versions with a handshake, and answers the modern one
as a server written before it would; `modern` knows only 2026-07-28, has no handshake and no sessions.

    python tests/conformance/fixture_server.py --port 8001 [--generation dual|legacy|modern]
    python tests/conformance/fixture_server.py --stdio [--generation dual|legacy|modern]
"""

import argparse
import json
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

import anyio
import mcp_types as types
import uvicorn
from fixture_asking import Asked
from fixture_prompts import get_prompt, prompts
from fixture_resources import RESOURCES, TEMPLATES, read, subscriptions
from fixture_tools import ToolCall, input_schema, run, tools
from fixture_world import StreamLog, World, connection_of
from mcp.server._streamable_http_modern import handle_modern_request
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.runner import _serve_modern_stream, serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import ListenHandler
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

Generation: TypeAlias = Literal["dual", "legacy", "modern"]
_Context: TypeAlias = ServerRequestContext[dict[str, Any], Any]

_RETRY_MS: Final = 500
_FRESH: Final = CacheHint(ttl_ms=5_000, scope="public")
_LOOPBACK: Final = TransportSecuritySettings(
    enable_dns_rebinding_protection=True,
    allowed_hosts=["127.0.0.1:*", "localhost:*"],
    allowed_origins=["http://127.0.0.1:*", "http://localhost:*"],
)


class _FixtureServer(Server[dict[str, Any]]):
    """Says in the handshake, too, that its lists change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        announced = NotificationOptions(prompts_changed=True, tools_changed=True)
        return super().create_initialization_options(
            notification_options or announced, experimental_capabilities, extensions
        )


@dataclass(frozen=True)
class _Handlers:
    """What answers the requests whose answer depends on the state of the server."""

    world: World

    async def list_tools(self, _ctx: _Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools(self.world))

    async def call_tool(
        self, ctx: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        try:
            return await run(ToolCall(ctx, params, self.world))
        except Asked as asked:
            return asked.result

    async def list_prompts(
        self, _ctx: _Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=prompts(self.world))

    async def get_prompt(
        self, ctx: _Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        try:
            return await get_prompt(ctx, params, self.world)
        except Asked as asked:
            return asked.result


async def _list_resources(_ctx: _Context, _params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=RESOURCES)


async def _list_templates(
    _ctx: _Context, _params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=TEMPLATES)


async def _subscribe(ctx: _Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    subscriptions(ctx).add(str(params.uri))
    return types.EmptyResult()


async def _unsubscribe(ctx: _Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    subscriptions(ctx).discard(str(params.uri))
    return types.EmptyResult()


async def _complete(_ctx: _Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    known = ("paris", "park", "party", "test1", "test2")
    values = [value for value in known if value.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


async def _set_log_level(ctx: _Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    connection_of(ctx).state["log_level"] = params.level
    return types.EmptyResult()


def build() -> Server[dict[str, Any]]:
    """The server, before any transport and for both generations."""
    world = World()
    handlers = _Handlers(world)
    server = _FixtureServer(
        "bridgehead-conformance-fixture",
        version="1.0.0",
        instructions="Has what the MCP conformance suite looks for.",
        cache_hints={
            "server/discover": _FRESH,
            "tools/list": _FRESH,
            "prompts/list": _FRESH,
            "resources/list": _FRESH,
            "resources/templates/list": _FRESH,
            "resources/read": _FRESH,
        },
        get_tool_input_schema=input_schema,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=read,
        on_subscribe_resource=_subscribe,
        on_unsubscribe_resource=_unsubscribe,
        on_subscriptions_listen=ListenHandler(world.bus),
        on_completion=_complete,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _set_log_level)
    server.add_notification_handler("notifications/initialized", types.NotificationParams, world.remember)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=server.name))
    return server


class _LegacyOnly:
    """Refuses a version without a handshake before anything else looks at the request, as older servers do."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = Request(scope).headers.get("mcp-protocol-version") if scope["type"] == "http" else None
        if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._app(scope, receive, send)
            return
        supported = ", ".join(HANDSHAKE_PROTOCOL_VERSIONS)
        message = f"Bad Request: Unsupported protocol version: {version}. Supported versions: {supported}"
        body = {"jsonrpc": "2.0", "id": None, "error": {"code": types.INVALID_REQUEST, "message": message}}
        await JSONResponse(body, status_code=400)(scope, receive, send)


class _ModernOnly:
    """Serves every request on its own, and tells those who want a handshake which versions there are."""

    def __init__(self, app: ASGIApp, server: Server[dict[str, Any]]) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        if request.method != "POST":
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        body = await request.body()
        version = request.headers.get("mcp-protocol-version")
        if version in MODERN_PROTOCOL_VERSIONS or (refusal := _handshake_refusal(body)) is None:
            await handle_modern_request(self._server, _LOOPBACK, False, {}, scope, _replayed(body, receive), send)
            return
        await JSONResponse(refusal, status_code=400)(scope, receive, send)


def _handshake_refusal(body: bytes) -> dict[str, Any] | None:
    """What answers an `initialize`, and `None` for any other body."""
    try:
        message: Any = json.loads(body)
    except ValueError:
        return None
    if not isinstance(message, dict):
        return None
    sent = cast("dict[str, Any]", message)
    if sent.get("method") != "initialize":
        return None
    params: Any = sent.get("params")
    requested = cast("dict[str, Any]", params).get("protocolVersion") if isinstance(params, dict) else None
    error = {
        "code": types.UNSUPPORTED_PROTOCOL_VERSION,
        "message": "Unsupported protocol version",
        "data": {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": str(requested)},
    }
    return {"jsonrpc": "2.0", "id": sent.get("id"), "error": error}


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A channel that gives the body that was read already, and then whatever comes next."""
    pending = [body]

    async def replay() -> Any:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await receive()

    return replay


def application(generation: Generation) -> ASGIApp:
    """The server over Streamable HTTP, at `/mcp`."""
    server = build()
    app = server.streamable_http_app(event_store=StreamLog(), retry_interval=_RETRY_MS, transport_security=_LOOPBACK)
    match generation:
        case "dual":
            return app
        case "legacy":
            return _LegacyOnly(app)
        case "modern":
            return _ModernOnly(app, server)


async def serve_stdio(generation: Generation) -> None:
    """Serve one client on standard input and output until it closes them."""
    server = build()
    async with stdio_server() as (incoming, outgoing):
        match generation:
            case "dual":
                await server.run(incoming, outgoing, server.create_initialization_options())
            case "legacy":
                await serve_loop(server, incoming, outgoing, lifespan_state={})
            case "modern":
                await _serve_modern_stream(server, incoming, outgoing, lifespan_state={}, raise_exceptions=False)


def main() -> None:
    """Serve as the command line says."""
    parser = argparse.ArgumentParser(description="A server for the MCP conformance suite.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--port", type=int, help="serve http://127.0.0.1:PORT/mcp")
    where.add_argument("--stdio", action="store_true", help="serve standard input and output")
    parser.add_argument("--generation", choices=("dual", "legacy", "modern"), default="dual")
    options = parser.parse_args()
    if options.stdio:
        anyio.run(serve_stdio, options.generation)
    else:
        uvicorn.run(
            application(options.generation),
            host="127.0.0.1",
            port=options.port,
            http="h11",  # httptools keeps the blanks after a header value, which RFC 9110 §5.5 excludes
            log_level="warning",
            timeout_graceful_shutdown=1,
        )


if __name__ == "__main__":
    main()
