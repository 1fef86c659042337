"""The MCP surfaces: requests of any MCP client become calls for the gate."""

from bridgehead.surfaces.mcp.calls import Inside
from bridgehead.surfaces.mcp.doors import Doors
from bridgehead.surfaces.mcp.full import FullSurface
from bridgehead.surfaces.mcp.ports import Authenticator
from bridgehead.surfaces.mcp.sealing import Seal
from bridgehead.surfaces.mcp.stdio import serve_on_stdio
from bridgehead.surfaces.mcp.wire import McpEndpoints

__all__ = ["Authenticator", "Doors", "FullSurface", "Inside", "McpEndpoints", "Seal", "serve_on_stdio"]
