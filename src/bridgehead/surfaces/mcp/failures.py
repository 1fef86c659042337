"""How errors look in MCP: as a tool result that a model can read, or as a JSON-RPC error.

A model can mend a call only if it sees what was wrong, and clients show tool results to it, not JSON-RPC errors (MCP
2025-11-25, tools, error handling). So what went wrong with a call of a known tool is a result; what went wrong before that, an
unknown name or a request that cannot be read, is a JSON-RPC error.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from bridgehead.core import BridgeError, Era, Kind, Method
from bridgehead.core.errors import ConfirmationRequired, GroupNotFound, ProtocolFailure, StateInvalid, ToolNotFound

ERROR_META_KEY = "bridgehead/error"
"""The `_meta` key under which programs find the error's code, message and details."""

RESOURCE_NOT_FOUND_LEGACY = -32002
"""Replaced by -32602 in 2026-07-28."""

_RPC_CODES = {
    Kind.INVALID: types.INVALID_PARAMS,
    Kind.UNAUTHENTICATED: types.INVALID_REQUEST,
    Kind.FORBIDDEN: types.INVALID_REQUEST,
    Kind.NOT_FOUND: types.INVALID_PARAMS,
    Kind.CONFLICT: types.INVALID_REQUEST,
    Kind.LIMITED: types.INTERNAL_ERROR,
    Kind.UNAVAILABLE: types.INTERNAL_ERROR,
    Kind.TIMEOUT: types.INTERNAL_ERROR,
    Kind.INTERNAL: types.INTERNAL_ERROR,
}


def as_rpc_error(error: BridgeError, era: Era, target: str) -> MCPError:
    """The JSON-RPC error for a failure, in the caller's generation."""
    if isinstance(error, ProtocolFailure):
        code = error.rpc_code
        if code == RESOURCE_NOT_FOUND_LEGACY and era is Era.MODERN:
            code = types.INVALID_PARAMS
        return MCPError(code, error.message, error.data)
    code = _RPC_CODES[error.kind]
    data: dict[str, Any] = error.as_dict()
    if error.code == "unknown_resource":
        data["uri"] = target
        if era is Era.LEGACY:
            code = RESOURCE_NOT_FOUND_LEGACY
    return MCPError(code, error.sentence(), data)


def as_tool_result(error: BridgeError) -> dict[str, Any]:
    """The tool result for a failure that a model can do something about."""
    return {
        "content": [{"type": "text", "text": error.sentence()}],
        "isError": True,
        "_meta": {ERROR_META_KEY: error.as_dict()},
    }


def is_for_the_model(error: BridgeError, method: Method) -> bool:
    """Whether the failure is shown as a tool result."""
    outside = ToolNotFound, GroupNotFound, ProtocolFailure, StateInvalid, ConfirmationRequired
    return method is Method.TOOL and not isinstance(error, outside)
