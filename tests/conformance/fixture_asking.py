"""Asking the client something, in the words of either generation.

A handler calls `ask` and gets answers. In the modern generation (2026-07-28) the first call ends with an `input_required`
result, and the client's retry brings the answers along; in the legacy one the same questions are pushed as requests on the
stream of the call. A handler need not know which of the two happened.
"""

from collections.abc import Mapping
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

_TYPE_OF_ANSWER: Final[
    dict[str, type[types.CreateMessageResult] | type[types.ListRootsResult] | type[types.ElicitResult]]
] = {
    "sampling/createMessage": types.CreateMessageResult,
    "roots/list": types.ListRootsResult,
    "elicitation/create": types.ElicitResult,
}

_NEEDED: Final = {
    "sampling/createMessage": types.ClientCapabilities(sampling=types.SamplingCapability()),
    "roots/list": types.ClientCapabilities(roots=types.RootsCapability()),
    "elicitation/create": types.ClientCapabilities(elicitation=types.ElicitationCapability()),
}


class Asked(Exception):
    """The call ends here for now: the client is to answer and to call again."""

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__("the client must answer first")
        self.result = result


def is_modern(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether this request speaks 2026-07-28 or later."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def declares(ctx: ServerRequestContext[Any, Any], question: types.InputRequest) -> bool:
    """Whether the client said that it can answer such a question."""
    return ctx.session.check_client_capability(_NEEDED[question.method])


async def ask(
    ctx: ServerRequestContext[Any, Any],
    params: types.InputResponseRequestParams,
    questions: Mapping[str, types.InputRequest],
    *,
    state: str | None = None,
) -> dict[str, types.InputResponse]:
    """The client's answers to all `questions`, by their keys.

    Modern: an answer under a key that was not asked for is ignored, and as long as one is missing everything is asked again
    with `state`. Legacy: all questions are pushed at once, declared or not, and a client that cannot answer says so.

    Raises:
        Asked: The answers have to be fetched first (modern only).
        MCPError: The client did not declare what a question needs (modern), or refused to answer (legacy).
    """
    if not is_modern(ctx):
        return await _push(ctx, questions)
    for question in questions.values():
        if not declares(ctx, question):
            raise MCPError(
                types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                f"This request needs a client that can answer {question.method}",
                types.MissingRequiredClientCapabilityErrorData(
                    required_capabilities=_NEEDED[question.method]
                ).model_dump(by_alias=True, exclude_none=True),
            )
    answers = params.input_responses or {}
    if questions.keys() <= answers.keys():
        return {key: answers[key] for key in questions}
    raise Asked(types.InputRequiredResult(input_requests=dict(questions), request_state=state))


async def _push(
    ctx: ServerRequestContext[Any, Any], questions: Mapping[str, types.InputRequest]
) -> dict[str, types.InputResponse]:
    answers: dict[str, types.InputResponse] = {}
    refusals: list[MCPError] = []

    async def push(key: str, question: types.InputRequest) -> None:
        try:
            answers[key] = await ctx.session.send_request(
                question,
                _TYPE_OF_ANSWER[question.method],
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
        except MCPError as refusal:
            refusals.append(refusal)

    async with anyio.create_task_group() as pushes:
        for key, question in questions.items():
            pushes.start_soon(push, key, question)
    if refusals:
        raise refusals[0]
    return answers


def elicitation(message: str, properties: dict[str, Any], *, required: list[str] | None = None) -> types.ElicitRequest:
    """A question that a person answers by filling in a form of `properties`."""
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required is not None:
        schema["required"] = required
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str, *, max_tokens: int = 100) -> types.CreateMessageRequest:
    """A question that the client's model answers."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    )
