"""Everything one server offers, all pages of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import mcp_types as types
import structlog
from mcp.shared.inbound import find_invalid_x_mcp_header

from bridgehead.backends.mcp.sdk import MCPError, RelaySession
from bridgehead.catalog import Definition, Listing
from bridgehead.core import as_mapping
from bridgehead.core.json import dumps, nested_deeper_than

log = structlog.get_logger(__name__)

MOST_PAGES = 1_000
MOST_DEPTH = 200
"""How deep a definition may be nested."""


async def list_everything(backend: str, session: RelaySession) -> Listing:
    """Ask for all tools, resources, templates and prompts.

    A server that does not know a method offers nothing of that kind.

    Raises:
        MCPError: The server failed otherwise.
    """
    declared = session.server_capabilities or types.ServerCapabilities()
    capabilities = declared.model_dump(by_alias=True, mode="json", exclude_none=True)
    tools = await _all_pages(backend, session, "tools/list", "tools")
    resources: tuple[Definition, ...] = ()
    templates: tuple[Definition, ...] = ()
    if "resources" in capabilities:
        resources = await _all_pages(backend, session, "resources/list", "resources")
        templates = await _all_pages(backend, session, "resources/templates/list", "resourceTemplates")
    prompts = await _all_pages(backend, session, "prompts/list", "prompts") if "prompts" in capabilities else ()
    return Listing(
        tools=tuple(tool for tool in tools if _is_usable(backend, session, tool)),
        resources=resources,
        templates=templates,
        prompts=prompts,
        capabilities=capabilities,
        instructions=session.instructions,
    )


def _is_usable(backend: str, session: RelaySession, tool: Definition) -> bool:
    schema = tool.get("inputSchema")
    if not isinstance(tool.get("name"), str) or not isinstance(schema, Mapping):
        log.warning("a tool without a name or an input schema was left out", backend=backend, tool=tool.get("name"))
        return False
    reason = find_invalid_x_mcp_header(schema) if session.is_modern else None
    if reason is not None:
        log.warning("a tool was left out: invalid x-mcp-header", backend=backend, tool=tool["name"], reason=reason)
    return reason is None


def _is_writable(backend: str, method: str, item: Definition) -> bool:
    """Whether the definition can be shown to anyone; one that cannot would break the list for everybody."""
    if not nested_deeper_than(item, MOST_DEPTH):
        try:
            dumps(item)
        except ValueError:
            pass
        else:
            return True
    log.warning("a definition that cannot be written was left out", backend=backend, method=method)
    return False


async def _all_pages(backend: str, session: RelaySession, method: str, key: str) -> tuple[Definition, ...]:
    """Follow `nextCursor` to the end; a cursor that comes back, or a list without end, is cut off with a warning."""
    found: list[Definition] = []
    seen: set[str] = set()
    params: dict[str, Any] = {}
    for _ in range(MOST_PAGES):
        try:
            page = as_mapping(await session.request(method, params))
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND and not found:
                return ()
            raise
        listed = page.get(key)
        items = cast("list[object]", listed) if isinstance(listed, list) else []
        found.extend(item for item in map(as_mapping, items) if item and _is_writable(backend, method, item))
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            return tuple(found)
        if cursor in seen:
            log.warning("a list repeats its cursor and was cut off there", backend=backend, method=method)
            return tuple(found)
        seen.add(cursor)
        params = {"cursor": cursor}
    log.warning("a list has no end and was cut off", backend=backend, method=method, pages=MOST_PAGES)
    return tuple(found)
