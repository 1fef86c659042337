"""The tools that the conformance suite asks for, by the names it knows.

The tool that comes first is also called with no arguments by the suite's header checks, so it must take none.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import anyio
import mcp_types as types
from fixture_asking import Asked, ask, declares, elicitation, is_modern, sampling
from fixture_media import PNG, WAV
from fixture_world import LOG_LEVELS, World, connection_of
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

_PAUSE_S: Final = 0.05
_NAME: Final[dict[str, Any]] = {"name": {"type": "string"}}


@dataclass(frozen=True)
class ToolCall:
    """One call, and the server it reached."""

    ctx: ServerRequestContext[Any, Any]
    params: types.CallToolRequestParams
    world: World

    @property
    def arguments(self) -> dict[str, Any]:
        """What the tool was given."""
        return self.params.arguments or {}

    async def ask(
        self, questions: dict[str, types.InputRequest], *, state: str | None = None
    ) -> dict[str, types.InputResponse]:
        """The client's answers, by either generation's way."""
        return await ask(self.ctx, self.params, questions, state=state)


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


def _answer(answer: types.InputResponse) -> str:
    return json.dumps(answer.model_dump(mode="json", by_alias=True, exclude_none=True))


async def _simple_text(_call: ToolCall) -> types.CallToolResult:
    return _text("This is a simple text response for testing.")


async def _image(_call: ToolCall) -> types.CallToolResult:
    return types.CallToolResult(content=[types.ImageContent(data=PNG, mime_type="image/png")])


async def _audio(_call: ToolCall) -> types.CallToolResult:
    return types.CallToolResult(content=[types.AudioContent(data=WAV, mime_type="audio/wav")])


async def _embedded_resource(_call: ToolCall) -> types.CallToolResult:
    resource = types.TextResourceContents(
        uri="test://embedded-resource", mime_type="text/plain", text="This is an embedded resource content."
    )
    return types.CallToolResult(content=[types.EmbeddedResource(resource=resource)])


async def _multiple_content_types(_call: ToolCall) -> types.CallToolResult:
    resource = types.TextResourceContents(
        uri="test://mixed-content-resource",
        mime_type="application/json",
        text=json.dumps({"test": "data", "value": 123}),
    )
    return types.CallToolResult(
        content=[
            types.TextContent(text="Multiple content types test:"),
            types.ImageContent(data=PNG, mime_type="image/png"),
            types.EmbeddedResource(resource=resource),
        ]
    )


async def _error_handling(_call: ToolCall) -> types.CallToolResult:
    text = "This tool intentionally returns an error for testing"
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


async def _echo_arguments(call: ToolCall) -> types.CallToolResult:
    return _text(json.dumps(call.arguments, sort_keys=True))


async def _log(call: ToolCall, text: str) -> None:
    """Log at level info on the stream of the request, if the client wants to hear it."""
    allowed = allowed_log_levels(call.ctx.protocol_version, call.ctx.meta)
    least: types.LoggingLevel = connection_of(call.ctx).state.get("log_level", "debug")
    if "info" in allowed and LOG_LEVELS.index(least) <= LOG_LEVELS.index("info"):
        await call.ctx.session.send_notification(
            types.LoggingMessageNotification(params=types.LoggingMessageNotificationParams(level="info", data=text)),
            related_request_id=call.ctx.request_id,
        )


async def _logging(call: ToolCall) -> types.CallToolResult:
    await _log(call, "Tool execution started")
    await anyio.sleep(_PAUSE_S)
    await _log(call, "Tool processing data")
    await anyio.sleep(_PAUSE_S)
    await _log(call, "Tool execution completed")
    return _text("The tool has run and logged three times.")


async def _progress(call: ToolCall) -> types.CallToolResult:
    for progress in (0, 50, 100):
        await call.ctx.session.report_progress(progress, 100)
        await anyio.sleep(_PAUSE_S)
    return _text("The tool has run and reported its progress.")


async def _reconnection(call: ToolCall) -> types.CallToolResult:
    """Let go of the stream in the middle of the call (SEP-1699); the answer waits for the client to come back."""
    if call.ctx.close_sse_stream is not None:
        await call.ctx.close_sse_stream()
    await anyio.sleep(_PAUSE_S)
    return _text("The answer came after the stream was closed.")


async def _toggle_tool(call: ToolCall) -> types.CallToolResult:
    await call.world.toggle_tool()
    return _text("The list of tools has changed.")


async def _toggle_prompt(call: ToolCall) -> types.CallToolResult:
    await call.world.toggle_prompt()
    return _text("The list of prompts has changed.")


async def _sample(call: ToolCall) -> types.CallToolResult:
    answers = await call.ask({"sample": sampling(str(call.arguments["prompt"]))})
    return _text(f"LLM response: {_answer(answers['sample'])}")


async def _elicit(call: ToolCall) -> types.CallToolResult:
    form = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    question = elicitation(str(call.arguments["message"]), form, required=["username", "email"])
    answers = await call.ask({"user": question})
    return _text(f"User response: {_answer(answers['user'])}")


async def _elicit_defaults(call: ToolCall) -> types.CallToolResult:
    form = {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {
            "type": "string",
            "description": "User status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "description": "Whether the user is verified", "default": True},
    }
    answers = await call.ask({"user": elicitation("Review the values and change what is wrong", form)})
    return _text(f"Elicitation completed: {_answer(answers['user'])}")


async def _elicit_enums(call: ToolCall) -> types.CallToolResult:
    plain = ["option1", "option2", "option3"]
    titled = [
        {"const": "value1", "title": "First"},
        {"const": "value2", "title": "Second"},
        {"const": "value3", "title": "Third"},
    ]
    form: dict[str, Any] = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    answers = await call.ask({"choice": elicitation("Choose from each list", form)})
    return _text(f"Elicitation completed: {_answer(answers['choice'])}")


async def _elicit_name(call: ToolCall) -> types.CallToolResult:
    question = elicitation("What is your name?", _NAME, required=["name"])
    answers = await call.ask({"user_name": question})
    return _text(f"Hello, {_answer(answers['user_name'])}!")


async def _sample_capital(call: ToolCall) -> types.CallToolResult:
    answers = await call.ask({"capital_question": sampling("What is the capital of France?")})
    return _text(_answer(answers["capital_question"]))


async def _list_roots(call: ToolCall) -> types.CallToolResult:
    answers = await call.ask({"client_roots": types.ListRootsRequest()})
    return _text(_answer(answers["client_roots"]))


async def _confirm(call: ToolCall) -> types.CallToolResult:
    """Ask with a state, and accept answers only together with it; sealing it is the boundary's part."""
    state = "waiting for confirmation"
    question = elicitation("Please confirm", {"ok": {"type": "boolean"}}, required=["ok"])
    answers = await call.ask({"confirm": question}, state=state)
    if is_modern(call.ctx) and call.params.request_state != state:
        raise Asked(types.InputRequiredResult(input_requests={"confirm": question}, request_state=state))
    return _text(f"state-ok: {_answer(answers['confirm'])}")


async def _multiple_inputs(call: ToolCall) -> types.CallToolResult:
    questions: dict[str, types.InputRequest] = {
        "user_name": elicitation("What is your name?", _NAME, required=["name"]),
        "greeting": sampling("Generate a greeting", max_tokens=50),
        "client_roots": types.ListRootsRequest(),
    }
    answers = await call.ask(questions, state="waiting for all three")
    return _text("\n".join(_answer(answers[key]) for key in questions))


async def _multi_round(call: ToolCall) -> types.CallToolResult:
    """Two questions, one after the other; the state of the second carries the answer to the first."""
    kept = call.params.request_state or ""
    if not kept.startswith("step 2: "):
        first = elicitation("Step 1: What is your name?", _NAME, required=["name"])
        answers = await call.ask({"step1": first}, state="step 1")
        kept = f"step 2: {_answer(answers['step1'])}"
    second = elicitation("Step 2: What is your favorite color?", {"color": {"type": "string"}}, required=["color"])
    answers = await call.ask({"step2": second}, state=kept)
    return _text(f"{kept.removeprefix('step 2: ')} likes {_answer(answers['step2'])}")


async def _only_what_is_declared(call: ToolCall) -> types.CallToolResult:
    questions: dict[str, types.InputRequest] = {
        "user_name": elicitation("What is your name?", _NAME, required=["name"]),
        "greeting": sampling("Generate a greeting"),
    }
    declared = {key: question for key, question in questions.items() if declares(call.ctx, question)}
    if not declared:
        return _text("The client can answer no question.")
    answers = await call.ask(declared)
    return _text("\n".join(_answer(answers[key]) for key in declared))


_NOTHING: Final[dict[str, Any]] = {"type": "object", "properties": {}}


def _takes(name: str, description: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": description}},
        "required": [name],
    }


_REGION: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"region": {"type": "string", "description": "Also sent as a header", "x-mcp-header": "Region"}},
    "required": ["region"],
}

_FULL_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

_Run: TypeAlias = Callable[[ToolCall], Awaitable[types.CallToolResult]]

_TOOLS: Final[tuple[tuple[str, str, dict[str, Any], _Run], ...]] = (
    ("test_simple_text", "Returns a text", _NOTHING, _simple_text),
    ("test_image_content", "Returns an image", _NOTHING, _image),
    ("test_audio_content", "Returns a sound", _NOTHING, _audio),
    ("test_embedded_resource", "Returns a resource", _NOTHING, _embedded_resource),
    ("test_multiple_content_types", "Returns a text, an image and a resource", _NOTHING, _multiple_content_types),
    ("test_error_handling", "Always fails", _NOTHING, _error_handling),
    ("test_tool_with_logging", "Logs three times while it runs", _NOTHING, _logging),
    ("test_tool_with_progress", "Reports its progress three times while it runs", _NOTHING, _progress),
    ("test_reconnection", "Closes the stream before it answers", _NOTHING, _reconnection),
    ("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", _FULL_SCHEMA, _echo_arguments),
    ("test_x_mcp_header", "Returns its argument, which a header repeats", _REGION, _echo_arguments),
    ("test_sampling", "Asks the client's model", _takes("prompt", "The prompt to send to the LLM"), _sample),
    ("test_elicitation", "Asks the user", _takes("message", "The message to show the user"), _elicit),
    ("test_elicitation_sep1034_defaults", "Asks with default values", _NOTHING, _elicit_defaults),
    ("test_elicitation_sep1330_enums", "Asks with all kinds of choices", _NOTHING, _elicit_enums),
    ("test_missing_capability", "Needs a client that can sample", _NOTHING, _sample_capital),
    ("test_streaming_elicitation", "Asks for a name", _NOTHING, _elicit_name),
    ("test_logging_tool", "Logs three times, if the client wants to hear it", _NOTHING, _logging),
    ("test_trigger_tool_change", "Changes the list of tools", _NOTHING, _toggle_tool),
    ("test_trigger_prompt_change", "Changes the list of prompts", _NOTHING, _toggle_prompt),
    ("test_input_required_result_elicitation", "Asks for a name", _NOTHING, _elicit_name),
    ("test_input_required_result_sampling", "Asks the client's model", _NOTHING, _sample_capital),
    ("test_input_required_result_list_roots", "Asks for the client's roots", _NOTHING, _list_roots),
    ("test_input_required_result_request_state", "Asks with a state", _NOTHING, _confirm),
    ("test_input_required_result_multiple_inputs", "Asks three things at once", _NOTHING, _multiple_inputs),
    ("test_input_required_result_multi_round", "Asks twice, one after the other", _NOTHING, _multi_round),
    ("test_input_required_result_tampered_state", "Asks with a state", _NOTHING, _confirm),
    ("test_input_required_result_capabilities", "Asks what can be answered", _NOTHING, _only_what_is_declared),
)

_EXTRA: Final = types.Tool(
    name="test_extra_tool", description="Is listed after every other change of the list", input_schema=_NOTHING
)
_LISTED: Final = tuple(
    types.Tool(name=name, description=description, input_schema=schema) for name, description, schema, _ in _TOOLS
)
_RUNS: Final[dict[str, _Run]] = {name: run for name, _, _, run in _TOOLS}


def tools(world: World) -> list[types.Tool]:
    """Every tool, in the order of the list."""
    return [*_LISTED, *([_EXTRA] if world.has_extra_tool else [])]


def input_schema(name: str) -> dict[str, Any] | None:
    """The schema of the tool of that name; the transport reads the declared headers from it."""
    return next((tool.input_schema for tool in _LISTED if tool.name == name), None)


async def run(call: ToolCall) -> types.CallToolResult:
    """Run the tool.

    Raises:
        Asked: The client must answer first.
        MCPError: There is no such tool, or the client lacks a capability (modern only; a legacy client that refuses to
            answer makes the tool fail).
    """
    name = call.params.name
    if name == _EXTRA.name and call.world.has_extra_tool:
        return await _simple_text(call)
    if name not in _RUNS:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name}")
    try:
        return await _RUNS[name](call)
    except MCPError as refusal:
        if is_modern(call.ctx):
            raise
        text = f"The client did not answer: {refusal.message}"
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
