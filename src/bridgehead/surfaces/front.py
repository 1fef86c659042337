"""The ASGI application: the MCP endpoints before everything else, then the small routes; every error in one shape."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bridgehead.core import BridgeError, new_id
from bridgehead.surfaces.errors import error_body, http_status
from bridgehead.surfaces.mcp import Doors

log = structlog.get_logger(__name__)

MCP_PATH = "/mcp"


class Front:
    """Hands MCP requests to the endpoints at once, because they are nearly all there is, and the rest to the router."""

    def __init__(self, endpoints: ASGIApp, routes: Sequence[Route], doors: Doors) -> None:
        self._endpoints = endpoints
        self._doors = doors
        self._rest = Starlette(
            routes=list(routes),
            exception_handlers={BridgeError: _ours, HTTPException: _theirs, Exception: _unexpected},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._rest(scope, receive, send)
            return
        path: str = scope["path"]
        if path == MCP_PATH or path.startswith(f"{MCP_PATH}/"):
            group = path[len(MCP_PATH) + 1 :] or None
            await self._endpoints({**scope, "path_params": {"group": group}}, receive, send)
            return
        request = Request(scope)
        problem = self._doors.problem(request.headers.get("host"), request.headers.get("origin"))
        if problem is not None:
            status, sentence = problem
            await _error(status, "forbidden", sentence)(scope, receive, send)
            return
        await self._rest(scope, receive, send)


def _error(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)


async def _ours(request: Request, error: Exception) -> Response:
    if not isinstance(error, BridgeError):
        return await _unexpected(request, error)
    headers = (
        {"www-authenticate": 'Bearer realm="bridgehead"'}
        if http_status(error.kind) == HTTPStatus.UNAUTHORIZED
        else None
    )
    return JSONResponse(error_body(error), status_code=http_status(error.kind), headers=headers)


async def _theirs(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == HTTPStatus.NOT_FOUND:
        return _error(
            404, "not_found", f"There is nothing at {request.url.path}. hint: the MCP endpoint is {MCP_PATH}."
        )
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return _error(405, "method_not_allowed", f"{request.method} is not possible at {request.url.path}.")
    return _error(status, "http_error", "The request cannot be answered.")


async def _unexpected(request: Request, error: Exception) -> Response:
    incident = new_id("incident")
    log.error("unexpected error", incident=incident, path=request.url.path, exc_info=error)
    return _error(500, "internal", f"Something went wrong here; the log has it under {incident}.")
