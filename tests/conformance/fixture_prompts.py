"""The prompts that the conformance suite asks for, by the names it knows."""

from typing import Any, Final

import mcp_types as types
from fixture_asking import ask, elicitation
from fixture_media import PNG
from fixture_world import World
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

_EXTRA: Final = types.Prompt(name="test_extra_prompt", description="Is listed after every other change of the list")


def _argument(name: str, description: str) -> types.PromptArgument:
    return types.PromptArgument(name=name, description=description, required=True)


_PROMPTS: Final = (
    types.Prompt(name="test_simple_prompt", description="One message, no arguments"),
    types.Prompt(
        name="test_prompt_with_arguments",
        description="One message that quotes both arguments",
        arguments=[_argument("arg1", "First test argument"), _argument("arg2", "Second test argument")],
    ),
    types.Prompt(
        name="test_prompt_with_embedded_resource",
        description="A resource and what to do with it",
        arguments=[_argument("resourceUri", "URI of the resource to embed")],
    ),
    types.Prompt(name="test_prompt_with_image", description="An image and what to do with it"),
    types.Prompt(name="test_input_required_result_prompt", description="Asks for a context before it answers"),
)


def prompts(world: World) -> list[types.Prompt]:
    """Every prompt, in the order of the list."""
    return [*_PROMPTS, *([_EXTRA] if world.has_extra_prompt else [])]


async def get_prompt(
    ctx: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams, world: World
) -> types.GetPromptResult:
    """The prompt of that name.

    Raises:
        Asked: The client must give a context first.
        MCPError: There is no such prompt, or an argument is missing.
    """
    arguments = params.arguments or {}
    prompt = next((prompt for prompt in prompts(world) if prompt.name == params.name), None)
    if prompt is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    for argument in prompt.arguments or ():
        if argument.name not in arguments:
            raise MCPError(types.INVALID_PARAMS, f"Missing argument: {argument.name}")
    return types.GetPromptResult(
        description=prompt.description,
        messages=[
            types.PromptMessage(role="user", content=content) for content in await _contents(ctx, params, arguments)
        ],
    )


async def _contents(
    ctx: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams, arguments: dict[str, str]
) -> list[types.ContentBlock]:
    match params.name:
        case "test_prompt_with_arguments":
            text = f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"
            return [types.TextContent(text=text)]
        case "test_prompt_with_embedded_resource":
            resource = types.TextResourceContents(
                uri=arguments["resourceUri"], mime_type="text/plain", text="Embedded resource content for testing."
            )
            return [
                types.EmbeddedResource(resource=resource),
                types.TextContent(text="Please process the embedded resource above."),
            ]
        case "test_prompt_with_image":
            return [
                types.ImageContent(data=PNG, mime_type="image/png"),
                types.TextContent(text="Please analyze the image above."),
            ]
        case "test_input_required_result_prompt":
            question = elicitation(
                "What context should the prompt use?", {"context": {"type": "string"}}, required=["context"]
            )
            answer = (await ask(ctx, params, {"user_context": question}))["user_context"]
            context = answer.content if isinstance(answer, types.ElicitResult) else None
            return [types.TextContent(text=f"Answer with this in mind: {context}")]
        case _:
            return [types.TextContent(text="This is a simple prompt for testing.")]
