"""Everything we use of the MCP SDK's client that is private to it, in one place.

Written against mcp 2.3 (pinned `<2.4`). A relay needs three things the SDK's session does not offer in public: requests and
results as plain objects, so that nothing is policed, re-listed or dropped on the way; client capabilities that differ from one
request to the next; and what the peer asks and announces, unparsed.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import mcp_types as types
from mcp.client._probe import negotiate_auto
from mcp.client.session import ClientSession
from mcp.client.subscriptions import Subscription, listen
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    encode_header_value,
    find_invalid_x_mcp_header,
    x_mcp_header_map,
)
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bridgehead import __version__

__all__ = ["MODERN_PROTOCOL_VERSIONS", "MCPError", "Peer", "RelaySession", "Subscription"]

OWN_META_KEYS = frozenset(
    {
        types.PROTOCOL_VERSION_META_KEY,
        types.CLIENT_INFO_META_KEY,
        types.CLIENT_CAPABILITIES_META_KEY,
        types.SERVER_INFO_META_KEY,
        types.LOG_LEVEL_META_KEY,
        "io.modelcontextprotocol/subscriptionId",
        "progressToken",
    }
)
"""`_meta` keys that belong to one connection and are never relayed (MCP 2026-07-28, basic, `_meta`)."""


_SAME_FOR_ALL = frozenset({MCP_PROTOCOL_VERSION_HEADER, MCP_METHOD_HEADER})


class Peer(Protocol):
    """Whoever answers what the server asks, and hears what it announces."""

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a server-to-client request (legacy generation only)."""
        ...

    def heard(self, method: str, params: Mapping[str, Any]) -> bool:
        """Take note of a notification in the order of arrival, without waiting; whether that was all it needs."""
        ...

    async def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Take note of any other notification."""
        ...


class RelaySession(ClientSession):
    """A client session that relays plain objects."""

    def __init__(
        self,
        streams: tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]],
        peer: Peer,
        *,
        capabilities: Mapping[str, Any],
        timeout_s: float,
    ) -> None:
        super().__init__(
            *streams,
            read_timeout_seconds=timeout_s,
            client_info=types.Implementation(name="bridgehead", version=__version__),
        )
        self._peer = peer
        self._own_meta: Mapping[str, Any] = {}
        self._stamped_by: object = None
        self._named: dict[str, Sequence[tuple[str, str]]] = {}
        self._declared = types.ClientCapabilities.model_validate(capabilities)

    @property
    def is_modern(self) -> bool:
        """Whether the 2026-07-28 generation was agreed on."""
        return self._negotiated_version in MODERN_PROTOCOL_VERSIONS

    @property
    def is_closed(self) -> bool:
        """Whether the transport has ended. A server may send the code that the SDK uses for it, so the code tells nothing."""
        return bool(getattr(self._dispatcher, "_closed", False))

    async def negotiate(self) -> None:
        """Find out which generation the server speaks and agree on a version."""
        await negotiate_auto(self)

    def learn_headers(self, tools: tuple[Mapping[str, Any], ...]) -> None:
        """Learn which arguments travel as `Mcp-Param-*` headers too (MCP 2026-07-28, `x-mcp-header`)."""
        self._x_mcp_header_maps = {
            tool["name"]: x_mcp_header_map(tool["inputSchema"])
            for tool in tools
            if find_invalid_x_mcp_header(tool.get("inputSchema") or {}) is None
        }

    def share_headers(self, other: RelaySession) -> None:
        """Use what another session with the same server has learned."""
        self._x_mcp_header_maps = other._x_mcp_header_maps

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send a request and return its result as the server wrote it: an object, if the server is any good.

        Args:
            method: The JSON-RPC method.
            params: Its parameters, without `_meta`.
            meta: `_meta` keys; in the modern generation they override what the session itself declares.

        Raises:
            MCPError: The server answered with an error, or the connection closed.
        """
        data: dict[str, Any] = {"method": method, "params": dict(params)}
        opts: CallOptions = {}
        self._stamp(data, opts)
        if meta:
            data["params"]["_meta"] = {**data["params"].get("_meta", {}), **meta}
        return await self._dispatcher.send_raw_request(method, data["params"], opts)

    def stamped(self, params: Mapping[str, Any], meta: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters as they are sent, with all that this session puts into `_meta`."""
        if self._stamp is not self._stamped_by:
            # The same for every request until another version is agreed on.
            data: dict[str, Any] = {"method": "ping", "params": {}}
            self._stamp(data, {})
            self._own_meta, self._stamped_by = data["params"].get("_meta", {}), self._stamp
        return {**params, "_meta": {**self._own_meta, **meta}} if meta or self._own_meta else params

    def headers_of(self, method: str, params: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        """The headers that a request of the 2026-07-28 generation carries besides those that are the same for all."""
        if not self.is_modern:
            return ()
        name = params.get("name")
        if method == "tools/call" and isinstance(name, str) and not self._x_mcp_header_maps.get(name):
            known = self._named.get(name)
            if known is None:
                # As many as the server has tools; a name that it does not list is not sent to it.
                known = self._named[name] = ((MCP_NAME_HEADER, encode_header_value(name)),)
            return known
        data: dict[str, Any] = {"method": method, "params": dict(params)}
        opts: CallOptions = {}
        self._stamp(data, opts)
        return [(name, value) for name, value in opts.get("headers", {}).items() if name not in _SAME_FOR_ALL]

    def spawn(self, task: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `task` for as long as the session lasts."""
        if self._task_group is not None:
            self._task_group.start_soon(task)

    def listen_for_changes(self, uris: tuple[str, ...]) -> AbstractAsyncContextManager[Subscription]:
        """Open a `subscriptions/listen` stream for all list changes and these resources."""
        return listen(
            self,
            tools_list_changed=True,
            prompts_list_changed=True,
            resources_list_changed=True,
            resource_subscriptions=uris,
        )

    async def announce_roots_changed(self) -> None:
        """Tell a legacy server that the caller's roots changed."""
        await self._dispatcher.notify("notifications/roots/list_changed", None)

    def _build_capabilities(self, version: str) -> types.ClientCapabilities:
        return self._declared

    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        """Results are the caller's to judge; the SDK would list all tools first."""

    async def _on_request(
        self, dctx: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        if method == "ping":
            return {}
        return dict(await self._peer.asked(method, params or {}))

    def _intercept_notification(self, method: str, params: Mapping[str, Any] | None) -> bool:
        return super()._intercept_notification(method, params) or self._peer.heard(method, params or {})

    async def _on_notify(
        self, dctx: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
    ) -> None:
        await self._peer.told(method, params or {})
