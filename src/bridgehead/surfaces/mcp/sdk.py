"""Everything we use of the MCP SDK's server that is private to it, in one place. Written against mcp 2.3 (pinned `<2.4`)."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

Context = ServerRequestContext[Any, Any]


class ViewServer(Server[Any]):
    """A low-level server whose instructions are written anew for each client."""

    def __init__(self, name: str, *, write_instructions: Callable[[], str], **handlers: Any) -> None:
        self._write_instructions = write_instructions
        super().__init__(name, **handlers)

    @property
    def instructions(self) -> str | None:
        """What a client is told now."""
        return self._write_instructions()

    @instructions.setter
    def instructions(self, value: str | None) -> None:
        """The SDK's constructor sets it once; what is written anew wins."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """The SDK's options, with the promise to announce every kind of list change."""
        announced = notification_options or NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        return super().create_initialization_options(announced, experimental_capabilities, extensions)


def connection_of(ctx: Context) -> Connection:
    """The client's connection: in the older generation its session, else only this request."""
    return ctx.session._connection


async def notify(ctx: Context, method: str, params: Mapping[str, Any]) -> None:
    """Send a notification on the stream that carries this request's answer, as it is."""
    await ctx.session._request_outbound.notify(method, params)


async def ask(ctx: Context, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Send the client a request on that stream and return its result as it is."""
    return await ctx.session._request_outbound.send_raw_request(method, params)


def session_of(manager: StreamableHTTPSessionManager, session_id: str) -> StreamableHTTPServerTransport | None:
    """The session of the older generation that is open under that id."""
    transport = manager._server_instances.get(session_id)
    return transport if transport is not None and not transport.is_terminated else None


def has_session(manager: StreamableHTTPSessionManager, session_id: str) -> bool:
    """Whether a session of the older generation is open under that id."""
    return session_of(manager, session_id) is not None
