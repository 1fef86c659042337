"""How our errors look over HTTP: one status a kind, one body shape."""

from __future__ import annotations

from typing import Any

from bridgehead.core import BridgeError, Kind

_STATUS = {
    Kind.INVALID: 400,
    Kind.UNAUTHENTICATED: 401,
    Kind.FORBIDDEN: 403,
    Kind.NOT_FOUND: 404,
    Kind.CONFLICT: 409,
    Kind.LIMITED: 429,
    Kind.INTERNAL: 500,
    Kind.UNAVAILABLE: 503,
    Kind.TIMEOUT: 504,
}


def http_status(kind: Kind) -> int:
    """The status code for an error of that kind."""
    return _STATUS[kind]


def error_body(error: BridgeError) -> dict[str, Any]:
    """`{"error": {"code", "message"}}`, with `hint` and `details` where there are any."""
    return {"error": error.as_dict()}
