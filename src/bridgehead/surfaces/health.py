"""How the bridge is, and what it offers, for monitors and scripts: `/health`, `/groups`, `/mcp-servers`.

`/health` needs no credential and therefore holds no more than names, states, counts and causes that the bridge itself
wrote; with a credential it also shows the last lines each backend wrote to standard error, and how the configuration in force
relates to its file. The lists need a credential.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bridgehead.catalog import BUILTIN, BackendStatus, Catalog, Entry, Listing, Snapshot, State
from bridgehead.config import ConfigStatus
from bridgehead.core import BridgeError, Kind
from bridgehead.surfaces.errors import error_body, http_status

Authorised = Callable[[Request], None]
"""Returns for a request with a good credential, else raises `Unauthenticated`."""

_NAMES_SHOWN = 10
_NOTHING = Listing(stale=True)
_WELL = (State.READY, State.DISABLED)


def health_routes(
    catalog: Catalog, version: str, authorised: Authorised, config: Callable[[], ConfigStatus]
) -> list[Route]:
    """The routes; each answers GET and HEAD with JSON that is not to be cached."""

    async def health(request: Request) -> Response:
        return _json(_health(catalog, version, config(), trusted=_is_authorised(request, authorised)))

    async def groups(request: Request) -> Response:
        authorised(request)
        return _json(_groups(catalog.snapshot))

    async def servers(request: Request) -> Response:
        authorised(request)
        return _json(_servers(catalog.snapshot, str(request.base_url)))

    return [
        Route("/health", _guarded(health), name="health"),
        Route("/groups", _guarded(groups), name="groups"),
        Route("/mcp-servers", _guarded(servers), name="mcp-servers"),
    ]


def _guarded(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except BridgeError as error:
            response = _json(error_body(error), status=http_status(error.kind))
            if error.kind is Kind.UNAUTHENTICATED:
                response.headers["WWW-Authenticate"] = "Bearer"
            return response

    return answer


def _is_authorised(request: Request, authorised: Authorised) -> bool:
    try:
        authorised(request)
    except BridgeError:
        return False
    return True


def _json(content: Any, *, status: int = 200) -> Response:
    body = orjson.dumps(content)
    return Response(body, status, {"Cache-Control": "no-store"}, media_type="application/json")


def _health(catalog: Catalog, version: str, config: ConfigStatus, *, trusted: bool) -> dict[str, Any]:
    snapshot = catalog.snapshot
    tools = snapshot.everything.tools.values()
    own = sum(1 for tool in tools if tool.backend == BUILTIN)
    backends = [_backend(status, snapshot, trusted=trusted) for status in catalog.statuses.values()]
    well = all(status.state in _WELL for status in catalog.statuses.values())
    stale = any(backend["stale"] for backend in backends)
    shown: dict[str, Any] = {
        "status": "ok" if well and not stale and config.error is None else "degraded",
        "service": "bridgehead",
        "version": version,
        "tools": {
            "builtin": own,
            "external": len(tools) - own,
            "total": len(tools),
            "hidden": snapshot.hidden,
        },
        "groups": {"enabled": len(snapshot.by_group), "total": len(snapshot.groups)},
        "backends": {
            "total": len(backends),
            "ready": sum(1 for status in catalog.statuses.values() if status.state is State.READY),
            "list": backends,
        },
    }
    if trusted:
        shown["config"] = config.as_dict()
    return shown


def _backend(status: BackendStatus, snapshot: Snapshot, *, trusted: bool) -> dict[str, Any]:
    """One backend's line; `tools` counts what callers can see, so that the lines add up to `tools.external`."""
    listing = snapshot.listings.get(status.name)
    shown: dict[str, Any] = {
        "name": status.name,
        "state": status.state.value,
        "cause": status.cause,
        "since": status.since.isoformat(),
        "next_try": status.next_try.isoformat() if status.next_try is not None else None,
        "restarts": status.restarts,
        "protocol": status.protocol,
        "server": status.server,
        "tools": sum(1 for tool in snapshot.everything.tools.values() if tool.backend == status.name),
        # Of a backend that has never listed anything, nothing can be out of date.
        "stale": listing is not None and listing.stale and listing != _NOTHING,
        "skipped_lines": status.skipped_lines,
    }
    if trusted:
        shown["stderr"] = list(status.stderr)
    return shown


def _tools_of(snapshot: Snapshot, group: str) -> list[Entry]:
    """The group's tools; none for a group that is off."""
    view = snapshot.by_group.get(group)
    return [tool for tool in view.tools.values() if group in tool.groups] if view is not None else []


def _groups(snapshot: Snapshot) -> dict[str, Any]:
    """Per group: `enabled`, `title`, `description`, `tools` (how many), `toolNames` (the first ten).

    Where a member chooses what its backend does not offer, `unmatched` has a sentence for each such choice; what a backend has
    not listed yet is not held against it.
    """
    shown: dict[str, Any] = {}
    for group in snapshot.groups:
        tools = _tools_of(snapshot, group.name)
        shown[group.name] = {
            "enabled": group.enabled,
            "title": group.title,
            "description": group.description,
            "tools": len(tools),
            "toolNames": [tool.exposed for tool in tools[:_NAMES_SHOWN]],
        }
        if group.name in snapshot.unmatched:
            shown[group.name]["unmatched"] = list(snapshot.unmatched[group.name])
    return shown


def _servers(snapshot: Snapshot, base: str) -> list[dict[str, Any]]:
    """Each group that is on and holds a tool, as a server to connect to."""
    shown: list[dict[str, Any]] = []
    for group in snapshot.groups:
        tools = _tools_of(snapshot, group.name)
        if group.enabled and tools:
            url = f"{base.rstrip('/')}/mcp/{group.name}"
            shown.append({"name": group.title, "url": url, "tools": len(tools), "group": group.name})
    return shown
