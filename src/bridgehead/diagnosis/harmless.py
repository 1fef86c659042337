"""Which tools may be called only to see whether the backend answers."""

from __future__ import annotations

from bridgehead.catalog import Definition, Entry, Snapshot
from bridgehead.core import as_mapping


def harmless_tools(snapshot: Snapshot, backend: str) -> list[Entry]:
    """The backend's tools that change nothing, reach nothing and need no arguments, by their own word.

    An annotation that is not there counts as the dangerous value, as MCP has it (2025-11-25, `ToolAnnotations`).
    """
    tools = snapshot.everything.tools.values()
    return [entry for entry in tools if entry.backend == backend and _is_harmless(entry.original)]


def _is_harmless(tool: Definition) -> bool:
    hints, schema = as_mapping(tool.get("annotations")), as_mapping(tool.get("inputSchema"))
    return (
        hints.get("readOnlyHint") is True
        and hints.get("openWorldHint") is False
        and hints.get("destructiveHint") is not True
        and not schema.get("required")
    )
