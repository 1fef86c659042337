"""The way back to an MCP client while its request runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bridgehead.core import Era
from bridgehead.core.errors import ProtocolFailure
from bridgehead.core.json import nested_deeper_than
from bridgehead.surfaces.mcp.sdk import Context, ask, connection_of, notify

DEFAULT_LOG_LEVEL = "info"
"""What a client of the older generation gets that never set a level; the server may choose (MCP 2025-11-25, logging)."""

MOST_DEPTH = 64
LEVEL_KEY = "bridgehead.log_level"
ROOTS_KEY = "bridgehead.roots_changed"


class FrontChannel:
    """Implements `core.Channel` over the SDK's request context."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._capabilities: Mapping[str, Any] | None = None
        self.era = Era.MODERN if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else Era.LEGACY

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The client's capabilities, as it declared them."""
        if self._capabilities is None:
            declared = self._ctx.session.client_capabilities
            self._capabilities = (
                declared.model_dump(by_alias=True, mode="json", exclude_none=True) if declared is not None else {}
            )
        return self._capabilities

    @property
    def session(self) -> Hashable | None:
        """The client's session, in the older generation."""
        return id(connection_of(self._ctx)) if self.era is Era.LEGACY else None

    @property
    def wants_progress(self) -> bool:
        """Whether the request has a progress token."""
        return self._ctx.meta is not None and "progress_token" in self._ctx.meta

    @property
    def log_level(self) -> str | None:
        """Per request in the modern generation, per session in the older one."""
        if self.era is Era.MODERN:
            level = (self._ctx.meta or {}).get(types.LOG_LEVEL_META_KEY)
            return level if isinstance(level, str) else None
        return connection_of(self._ctx).state.get(LEVEL_KEY, DEFAULT_LOG_LEVEL)

    @property
    def can_ask(self) -> bool:
        """Only the older generation has requests from server to client."""
        return self._ctx.session.can_send_request

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Send `notifications/progress` with the client's own token."""
        await self._ctx.session.report_progress(progress, total, message)

    async def log(self, params: Mapping[str, Any]) -> None:
        """Send `notifications/message`."""
        await notify(self._ctx, "notifications/message", params)

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Send a request to the client and wait for its answer."""
        try:
            answer = await ask(self._ctx, method, params)
        except MCPError as error:
            raise ProtocolFailure(error.message, rpc_code=error.code, data=error.data) from error
        if nested_deeper_than(answer, MOST_DEPTH):
            raise ProtocolFailure(f"the answer is nested deeper than {MOST_DEPTH}", rpc_code=types.INVALID_PARAMS)
        return answer

    def on_close(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Run `callback` when the session ends."""
        connection_of(self._ctx).exit_stack.push_async_callback(callback)

    def on_roots_changed(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Run `callback` whenever the client says so in its session."""
        connection_of(self._ctx).state.setdefault(ROOTS_KEY, []).append(callback)
