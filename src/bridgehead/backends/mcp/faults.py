"""What goes wrong with a session, in the bridge's terms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import mcp_types as types

from bridgehead.backends.mcp.sdk import MCPError
from bridgehead.core import as_mapping
from bridgehead.core.errors import BridgeError


def result_of(answer: Mapping[str, Any]) -> Any:
    """The result in a JSON-RPC answer.

    Raises:
        MCPError: It is an error, or no answer at all.
    """
    if "result" in answer:
        return answer["result"]
    problem = as_mapping(answer.get("error"))
    code, message = problem.get("code"), problem.get("message")
    if not isinstance(code, int) or not isinstance(message, str):
        raise MCPError(types.INTERNAL_ERROR, "The server's answer is no JSON-RPC answer.")
    raise MCPError(code, message, problem.get("data"))


def innermost(error: BaseException) -> BaseException:
    """The first leaf of an exception group, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def transport_fault(error: BaseException) -> BridgeError | None:
    """What the transport has to say of an error, where it is the transport's own: no server can make it say so."""
    if isinstance(error, MCPError) and isinstance(error.error.data, BridgeError):
        return error.error.data
    return error if isinstance(error, BridgeError) else None


def reason(error: BaseException) -> str:
    """Why a handshake failed, as part of a sentence that may be shown to anyone."""
    if isinstance(error, MCPError):
        return f"it answered the handshake with error {error.code}: {error.message[:200]}"
    text = str(error).strip() or type(error).__name__
    # An address may hold a key, and a cause is shown to anyone.
    return re.sub(r"https?://[^\s'\"]+", "its address", text)[:300].rstrip(".")
