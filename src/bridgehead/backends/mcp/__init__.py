"""MCP servers as backends: over stdio, Streamable HTTP and HTTP+SSE, in every protocol revision."""

from bridgehead.backends.mcp.backend import McpBackend, Surroundings
from bridgehead.backends.mcp.http import SharedPool
from bridgehead.backends.mcp.ports import Shelf
from bridgehead.backends.mcp.stdio import DEPTH_VARIABLE

__all__ = ["DEPTH_VARIABLE", "McpBackend", "SharedPool", "Shelf", "Surroundings"]
