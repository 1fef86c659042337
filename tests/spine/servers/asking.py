"""A server on the real SDK that asks its client for things, in whichever way its generation has.

`asking.py legacy|modern [PORT]`: over standard input and output, or Streamable HTTP on the port. `legacy` refuses the
2026-07-28 generation as servers do that were written before it; `modern` refuses `initialize`.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

GENERATION = sys.argv[1]
BUS = InMemorySubscriptionBus()
WATCHED: set[str] = set()
ROOTS_CHANGES: list[str] = []
FORM: types.ElicitRequest = types.ElicitRequest(
    params=types.ElicitRequestFormParams(
        message="Which colour?",
        requested_schema={"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]},
    )
)
URL = types.ElicitRequest(
    params=types.ElicitRequestURLParams(message="Sign in", url="https://example.com/in", elicitation_id="e1")
)
SAMPLE = types.CreateMessageRequest(
    params=types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Say hi"))],
        max_tokens=10,
    )
)
QUESTIONS: dict[str, tuple[Any, Any]] = {
    "ask_form": (FORM, types.ElicitResult),
    "ask_url": (URL, types.ElicitResult),
    "sample": (SAMPLE, types.CreateMessageResult),
    "roots": (types.ListRootsRequest(), types.ListRootsResult),
}
NAMES = [*QUESTIONS, "ask_twice", "progress", "logs", "touch", "roots_changes"]


def text(value: str) -> types.CallToolResult:
    """A result of one text block."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=value)])


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    """List every tool."""
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in NAMES])


async def ask(ctx: Any, params: types.CallToolRequestParams, names: list[str]) -> Any:
    """Ask the client these questions one after another, in the way of the generation that is spoken."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        answers = [await ctx.session.send_request(*QUESTIONS[name]) for name in names]
        return text(" | ".join(answer.model_dump_json(exclude_none=True, by_alias=True) for answer in answers))
    done = params.request_state or ""
    answered = [part for part in done.split("\n") if part]
    given = (params.input_responses or {}).values()
    answered.extend(answer.model_dump_json(exclude_none=True, by_alias=True) for answer in given)
    if len(answered) < len(names):
        question = QUESTIONS[names[len(answered)]][0]
        return types.InputRequiredResult(input_requests={"q": question}, request_state="\n".join(answered))
    return text(" | ".join(answered))


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
    """Run a tool."""
    match params.name:
        case "ask_twice":
            return await ask(ctx, params, ["ask_form", "sample"])
        case "progress":
            for step in range(1, 4):
                await ctx.session.report_progress(step, 3, f"step {step}")
            return text("done")
        case "logs":
            for level in ("debug", "info", "error"):
                await ctx.session.send_log_message(level, f"a {level} line", related_request_id=ctx.request_id)
            return text("logged")
        case "roots_changes":
            return text(str(len(ROOTS_CHANGES)))
        case "touch":
            await BUS.publish(ResourceUpdated(uri="note://1"))
            if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                await ctx.session.send_resource_updated("note://1")
            return text("touched")
        case name:
            return await ask(ctx, params, [name])


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    """List the one note."""
    return types.ListResourcesResult(resources=[types.Resource(name="note", uri="note://1")])


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    """List the template of notes."""
    return types.ListResourceTemplatesResult(
        resource_templates=[types.ResourceTemplate(name="notes", uri_template="note://{number}")]
    )


async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    """Read a note."""
    if str(params.uri) == "note://404":
        raise MCPError(-32002, "no such note", {"uri": str(params.uri)})
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text=f"note {params.uri}")])


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    """List the one prompt."""
    argument = types.PromptArgument(name="who", required=True)
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", arguments=[argument])])


async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """Make the prompt."""
    content = types.TextContent(type="text", text=f"hello {(params.arguments or {})['who']}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def complete(ctx: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Complete with what was asked about."""
    about = getattr(params.ref, "name", None) or getattr(params.ref, "uri", "")
    return types.CompleteResult(completion=types.Completion(values=[f"{about}:{params.argument.value}"]))


async def watch(ctx: Any, params: Any) -> types.EmptyResult:
    """Take note of a subscription."""
    WATCHED.add(str(params.uri))
    return types.EmptyResult()


async def refuse_initialize(ctx: Any, call_next: CallNext) -> HandlerResult:
    """Speak the modern generation only."""
    if ctx.method == "initialize":
        raise MCPError(-32022, "only 2026-07-28", {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": "x"})
    return await call_next(ctx)


def server() -> Server[Any]:
    """The server of the chosen generation."""
    made: Server[Any] = Server(
        "asking",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=watch,
        on_unsubscribe_resource=watch,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_subscriptions_listen=ListenHandler(BUS),
    )
    made.add_request_handler("logging/setLevel", types.SetLevelRequestParams, watch_level)
    made.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, roots_changed)
    if GENERATION == "modern":
        made.middleware.append(refuse_initialize)
    return made


async def roots_changed(ctx: Any, params: Any) -> None:
    """Take note that the client's roots changed."""
    ROOTS_CHANGES.append(ctx.method)


async def watch_level(ctx: Any, params: Any) -> types.EmptyResult:
    """Accept any level."""
    return types.EmptyResult()


class BeforeItsTime:
    """An HTTP server that was written before 2026-07-28: it does not know that version."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the version in the header, as the older SDKs do."""
        versions = [value for key, value in scope.get("headers", []) if key == b"mcp-protocol-version"]
        if any(version.decode() in MODERN_PROTOCOL_VERSIONS for version in versions):
            error = {"code": -32600, "message": "Bad Request: Unsupported protocol version"}
            body = {"jsonrpc": "2.0", "id": "server-error", "error": error}
            await JSONResponse(body, status_code=400)(scope, receive, send)
            return
        await self.app(scope, receive, send)


async def on_stdio() -> None:
    """Serve one client on standard input and output."""
    made = server()
    async with stdio_server() as (read, write):
        if GENERATION == "legacy":
            await serve_loop(made, read, write, lifespan_state={})
        else:
            await made.run(read, write, made.create_initialization_options())


if len(sys.argv) > 2:
    app: ASGIApp = server().streamable_http_app()
    uvicorn.run(
        BeforeItsTime(app) if GENERATION == "legacy" else app,
        host="127.0.0.1",
        port=int(sys.argv[2]),
        log_level="error",
    )
else:
    anyio.run(on_stdio)
