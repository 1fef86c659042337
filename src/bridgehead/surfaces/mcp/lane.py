"""The fast lane: `tools/call` of both generations without the SDK's server in between.

A general protocol stack costs many times what a relayed call is worth. The lane knows exactly what it understands: a call of a
known tool, in a session that has been initialized or with a complete 2026-07-28 envelope. It says so by taking the request;
everything else goes the SDK's way. Both ways end in the same gate and give the same answer, which a test compares.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import mcp_types as types
import orjson
import structlog
from mcp.server.connection import Connection
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS, find_invalid_x_mcp_header, x_mcp_header_map
from mcp_types.methods import validate_client_request
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.types import Receive, Send

from bridgehead.catalog import View
from bridgehead.core import Caller, Era, Method, as_mapping
from bridgehead.core.json import dumps
from bridgehead.surfaces.mcp.calls import Calls, enveloped
from bridgehead.surfaces.mcp.reply import KEEP_ALIVE_S, Reply
from bridgehead.surfaces.mcp.running import Client, Running
from bridgehead.surfaces.mcp.transport import AdaptiveTransport, hung_up

log = structlog.get_logger(__name__)

REQUEST_CANCELLED = -32800
"""What the SDK answers a cancelled request with in the older generation."""

_MODERN = {version.encode(): version for version in MODERN_PROTOCOL_VERSIONS}
_UNDERSTOOD = frozenset({"name", "arguments", "_meta"})
_NOTHING: Mapping[str, Any] = {}
_BOTH = (b"*/*", b"", b"application/json")
_TICK_S = 0.1
"""How often the calls that run are looked at: for callers that have hung up, and for long silences."""
_TOUCH_S = 10.0
_REMEMBERED = 256
_LEVELS = frozenset({"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"})


@dataclass(slots=True)
class Arrived:
    """A request that has been let in and read.

    Attributes:
        headers: By lower-case name, as they came; none of them more than once.
    """

    message: Mapping[str, Any]
    headers: Mapping[bytes, bytes]
    caller: Caller
    receive: Receive
    send: Send


class FastLane:
    """The lane of one view."""

    def __init__(self, calls: Calls, view: Callable[[], View | None]) -> None:
        self._calls = calls
        self._view = view
        self._loop = asyncio.get_running_loop()
        self._clients: dict[bytes, Client] = {}
        self._running: set[Running] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._envelopes: dict[bytes, Mapping[str, Any]] = {}
        self._unmirrored: dict[int, tuple[Mapping[str, Any], bool]] = {}

    # --- sessions of the older generation

    def add(self, connection: Connection, transport: AdaptiveTransport) -> None:
        """Serve calls of this session, which has been initialized, until it ends."""
        session_id = (transport.mcp_session_id or "").encode()
        declared = connection.client_capabilities
        capabilities = (
            declared.model_dump(by_alias=True, mode="json", exclude_none=True) if declared is not None else {}
        )
        header = (b"mcp-session-id", session_id)
        client = self._clients[session_id] = Client(session_id, connection, transport, capabilities, header)
        connection.exit_stack.callback(self._forget, client)

    def _forget(self, client: Client) -> None:
        self._clients.pop(client.session_id, None)
        for running in tuple(client.all_running):
            running.cancel("The session ended before the request did.")

    def take_note(self, session_id: bytes, message: Mapping[str, Any]) -> bool:
        """Take in what a client sends besides requests; whether it was for this lane alone."""
        client = self._clients.get(session_id)
        if client is None:
            return False
        if "method" not in message:
            answer = client.questions.get(str(message.get("id")))
            if answer is None or answer.done():
                return False
            answer.set_result(message)
            return True
        if message["method"] != "notifications/cancelled":
            return False
        cancelled = as_mapping(message.get("params")).get("requestId")
        running = client.running.get(cancelled) if isinstance(cancelled, int | str) else None
        if running is None:
            return False
        running.cancel("Request cancelled")
        return True

    # --- calls

    async def answer(self, arrived: Arrived) -> bool:
        """Answer the request if the lane understands all of it; else it is untouched."""
        raw = _understood(arrived.message)
        view = self._view()
        entry = view.tools.get(raw["name"]) if raw is not None and view is not None else None
        if raw is None or entry is None:
            return False
        meta: Mapping[str, Any] = raw.get("_meta", _NOTHING)
        token: int | str | None = meta.get("progressToken")
        version = _MODERN.get(arrived.headers.get(b"mcp-protocol-version", b""))
        now = self._loop.time()
        if version is not None:
            capabilities = self._envelope(arrived, raw, version)
            if capabilities is None or not self._is_unmirrored(entry.original):
                return False
            running = Running(None, Reply(arrived.send, (), now), token, arrived.receive, self._loop)
            running.caps = capabilities
            running.level = meta.get(types.LOG_LEVEL_META_KEY)
            if not _takes_streams(arrived.headers):
                return False
            await self._run(running, arrived, raw, None)
            return True
        client = self._clients.get(arrived.headers.get(b"mcp-session-id", b""))
        if client is None or not _takes_streams(arrived.headers):
            return False
        if now - client.touched > _TOUCH_S:
            client.touched = now
            client.transport.touch()
        running = Running(client, Reply(arrived.send, (client.header,), now), token, arrived.receive, self._loop)
        await self._run(running, arrived, raw, client)
        return True

    async def _run(self, running: Running, arrived: Arrived, raw: dict[str, Any], client: Client | None) -> None:
        request_id: int | str = arrived.message["id"]
        self._running.add(running)
        if self._timer is None:
            self._timer = self._loop.call_later(_TICK_S, self._tick)
        if client is not None:
            client.begin(request_id, running)
        status = 200
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        try:
            result = await self._calls.call_tool(raw, arrived.caller, running, self._forwarded(arrived.headers))
            body["result"] = enveloped(result, Method.TOOL, running.era)
        except MCPError as error:
            body["error"] = error.error.model_dump(by_alias=True, exclude_unset=True)
            if client is None:
                status = ERROR_CODE_HTTP_STATUS.get(error.code, 200)
        except asyncio.CancelledError:
            if running.cancelled is None or running.task is None:
                raise
            running.task.uncancel()
            if client is None:
                # Nobody listens any more.
                return
            body["error"] = {"code": REQUEST_CANCELLED, "message": running.cancelled}
        finally:
            self._running.discard(running)
            if running.watcher is not None:
                running.watcher.cancel()
            if client is not None:
                client.end(request_id, running)
        await running.reply.finish(dumps(body), status)

    def _forwarded(self, headers: Mapping[bytes, bytes]) -> Mapping[str, str]:
        if not self._calls.forwards:
            return _NOTHING
        decoded = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
        return self._calls.forwarded(decoded)

    def _tick(self) -> None:
        """Look at the calls that run. One timer serves all of them: most have ended before it comes."""
        now = self._loop.time()
        for running in self._running:
            if running.era is Era.MODERN and running.watcher is None:
                running.watcher = asyncio.ensure_future(hung_up(running.receive))
                running.watcher.add_done_callback(
                    lambda done, running=running: None if done.cancelled() else running.cancel("The caller hung up.")
                )
            if now - running.reply.silent_since >= KEEP_ALIVE_S:
                running.reply.silent_since = now
                kept = asyncio.ensure_future(running.reply.keep_alive())
                kept.add_done_callback(_note_failure)
        self._timer = self._loop.call_later(_TICK_S, self._tick) if self._running else None

    # --- 2026-07-28

    def _envelope(self, arrived: Arrived, raw: Mapping[str, Any], version: str) -> Mapping[str, Any] | None:
        """The capabilities that a complete and consistent envelope declares, else None.

        MCP 2026-07-28, basic (per-request fields) and transports (request headers).
        """
        headers, meta = arrived.headers, raw.get("_meta", {})
        if (
            headers.get(b"mcp-method") != b"tools/call"
            or headers.get(b"mcp-name") != raw["name"].encode(errors="replace")
            or meta.get(types.PROTOCOL_VERSION_META_KEY) != version
            or not _is_level(meta.get(types.LOG_LEVEL_META_KEY, "info"))
        ):
            return None
        declared = (meta.get(types.CLIENT_INFO_META_KEY), meta.get(types.CLIENT_CAPABILITIES_META_KEY))
        try:
            key = orjson.dumps(declared)
        except TypeError:
            return None
        known = self._envelopes.get(key)
        if known is None:
            try:
                validate_client_request("tools/call", version, dict(raw))
                model = types.ClientCapabilities.model_validate(declared[1], by_name=False)
            except ValidationError:
                return None
            known = model.model_dump(by_alias=True, mode="json", exclude_none=True)
            if len(self._envelopes) >= _REMEMBERED:
                self._envelopes.clear()
            self._envelopes[key] = known
        return known

    def _is_unmirrored(self, definition: Mapping[str, Any]) -> bool:
        """Whether no argument of the tool travels in a header too, whose agreement would have to be checked."""
        known = self._unmirrored.get(id(definition))
        if known is None:
            schema: Mapping[str, Any] = as_mapping(definition.get("inputSchema"))
            plain = find_invalid_x_mcp_header(schema) is not None or not x_mcp_header_map(schema)
            if len(self._unmirrored) >= 64 * _REMEMBERED:
                self._unmirrored.clear()
            # The definition is held, so that its identity stays its own.
            known = self._unmirrored[id(definition)] = definition, plain
        return known[1]


def _understood(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """The parameters of a plain call, or None where there is anything in them that the lane does not know."""
    params = message.get("params")
    if not isinstance(params, dict):
        return None
    raw = cast("dict[str, Any]", params)
    if not _UNDERSTOOD.issuperset(raw) or not isinstance(raw.get("name"), str):
        return None
    if not isinstance(raw.get("arguments", _NOTHING), dict) or not isinstance(raw.get("_meta", _NOTHING), dict):
        return None
    token = raw.get("_meta", _NOTHING).get("progressToken", 0)
    return raw if isinstance(token, str) or type(token) is int else None


def _is_level(level: object) -> bool:
    return isinstance(level, str) and level in _LEVELS


def _takes_streams(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the client takes both kinds of answer; a wildcard, or nothing, is taken for both."""
    accept = headers.get(b"accept", b"*/*")
    return accept in _BOTH or (b"text/event-stream" in accept and b"application/json" in accept)


def _note_failure(done: asyncio.Future[None]) -> None:
    if not done.cancelled() and done.exception() is not None:
        log.info("a keep-alive could not be sent", cause=str(done.exception()))
