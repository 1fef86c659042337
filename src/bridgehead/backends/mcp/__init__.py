"""MCP servers as backends: over stdio, Streamable HTTP and HTTP+SSE, in every protocol revision."""

from bridgehead.backends.mcp.backend import McpBackend, Surroundings
from bridgehead.backends.mcp.http import SharedPool
from bridgehead.backends.mcp.ports import Shelf
from bridgehead.backends.mcp.processes import DEPTH_VARIABLE, Processes, adopt_orphans
from bridgehead.backends.mcp.starts import Starts

__all__ = [
    "DEPTH_VARIABLE",
    "McpBackend",
    "Processes",
    "SharedPool",
    "Shelf",
    "Starts",
    "Surroundings",
    "adopt_orphans",
]
