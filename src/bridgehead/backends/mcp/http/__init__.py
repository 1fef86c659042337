"""MCP servers over HTTP: Streamable HTTP, and the older HTTP+SSE transport (2024-11-05).

`pool` is the door. Behind it: `guard` (where connections may lead), `wire` (one request, and all of aiohttp), `streamable` with
`posting` and `following`, and `legacy` (the transports), `lane` (the short way for calls), and `answers`, `events` and `causes`
(reading what servers send).
"""

from bridgehead.backends.mcp.http.lane import Lane
from bridgehead.backends.mcp.http.pool import HttpSession, HttpTarget, SharedPool, open_http

__all__ = ["HttpSession", "HttpTarget", "Lane", "SharedPool", "open_http"]
