"""The resources that the conformance suite asks for, by the addresses it knows."""

import json
import re
from typing import Any, Final

import mcp_types as types
from fixture_asking import is_modern
from fixture_media import PNG
from fixture_world import connection_of
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

RESOURCES: Final = [
    types.Resource(
        uri="test://static-text", name="static-text", description="A text that never changes", mime_type="text/plain"
    ),
    types.Resource(
        uri="test://static-binary", name="static-binary", description="One red pixel", mime_type="image/png"
    ),
    types.Resource(
        uri="test://watched-resource",
        name="watched-resource",
        description="A text to subscribe to",
        mime_type="text/plain",
    ),
]

TEMPLATES: Final = [
    types.ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="template",
        description="Data that tells the id it was asked for",
        mime_type="application/json",
    )
]

_TEMPLATE: Final = re.compile(r"test://template/([^/]+)/data")
_LEGACY_NOT_FOUND: Final = -32002


async def read(
    ctx: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    """The contents behind the address.

    Raises:
        MCPError: Nothing is there. The code changed between the generations (SEP-2164).
    """
    uri = str(params.uri)
    match uri:
        case "test://static-text":
            text = "This is the content of the static text resource."
            contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
        case "test://watched-resource":
            contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text="Watched resource content.")
        case "test://static-binary":
            contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
        case _:
            templated = _TEMPLATE.fullmatch(uri)
            if templated is None:
                code = types.INVALID_PARAMS if is_modern(ctx) else _LEGACY_NOT_FOUND
                raise MCPError(code, "Resource not found", {"uri": uri})
            key = templated[1]
            body = json.dumps({"id": key, "templateTest": True, "data": f"Data for ID: {key}"})
            contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=body)
    return types.ReadResourceResult(contents=[contents])


def subscriptions(ctx: ServerRequestContext[Any, Any]) -> set[str]:
    """The addresses that this legacy connection watches."""
    return connection_of(ctx).state.setdefault("subscriptions", set[str]())
