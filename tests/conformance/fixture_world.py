"""What the fixture's handlers share: which lists have changed, who is told, and what was sent on a stream that broke.

`World` is one server's state. The lists change only when the suite asks for it, through the tools
`test_trigger_tool_change` and `test_trigger_prompt_change`, and each change is announced to both generations at once:
on the bus behind `subscriptions/listen`, and on the standalone stream of every legacy connection.
"""

from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ToolsListChanged

LOG_LEVELS: tuple[types.LoggingLevel, ...] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)


@dataclass
class World:
    """The state of one fixture server."""

    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    has_extra_tool: bool = False
    has_extra_prompt: bool = False
    _legacy: set[Connection] = field(default_factory=set[Connection])

    async def remember(self, ctx: ServerRequestContext[Any, Any], _params: types.NotificationParams) -> None:
        """Tell this legacy connection of changes until it ends; the handler of `notifications/initialized`."""
        connection = connection_of(ctx)
        self._legacy.add(connection)
        connection.exit_stack.callback(self._legacy.discard, connection)

    async def toggle_tool(self) -> None:
        """Add the extra tool, or take it away again, and say so."""
        self.has_extra_tool = not self.has_extra_tool
        await self.bus.publish(ToolsListChanged())
        for connection in tuple(self._legacy):
            await connection.notify("notifications/tools/list_changed", None)

    async def toggle_prompt(self) -> None:
        """Add the extra prompt, or take it away again, and say so."""
        self.has_extra_prompt = not self.has_extra_prompt
        await self.bus.publish(PromptsListChanged())
        for connection in tuple(self._legacy):
            await connection.notify("notifications/prompts/list_changed", None)


class StreamLog(EventStore):
    """Everything sent on legacy streams, so that a client that reconnects with `Last-Event-ID` misses nothing."""

    def __init__(self) -> None:
        self._events: list[tuple[str, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        """Keep `message`; its id is its position."""
        self._events.append((stream_id, message))
        return str(len(self._events) - 1)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send again what came after `last_event_id` on the same stream; `None` for an id that was never given."""
        if not last_event_id.isdigit() or int(last_event_id) >= len(self._events):
            return None
        position = int(last_event_id)
        stream_id = self._events[position][0]
        for event_id, (stream, message) in enumerate(self._events[position + 1 :], position + 1):
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(event_id)))
        return stream_id


def connection_of(ctx: ServerRequestContext[Any, Any]) -> Connection:
    """The connection behind a request; it outlives the request only in the legacy generation."""
    return ctx.session._connection
