"""Sessions of the older generation that answer in JSON where a JSON answer is all there is to say.

The SDK answers each request of a session with an event stream, or, for all of a session, with JSON alone, which silences
progress, logs and questions. Here a request that is answered before anything else was said about it gets plain JSON; the first
notification or question turns its answer into an event stream. An event stream costs about as much CPU as the call itself.

Uses what is private to the SDK's server transport; written against mcp 2.3 (pinned `<2.4`).
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count
from typing import Any
from uuid import uuid4

import anyio
import mcp_types as types
import orjson
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server._streamable_http_modern import handle_modern_request
from mcp.server.streamable_http import (
    REQUEST_STREAM_BUFFER_SIZE,
    EventMessage,
    StreamableHTTPServerTransport,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import SessionMessage
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from bridgehead.core import as_mapping
from bridgehead.core.json import dumps
from bridgehead.surfaces.mcp.reply import KEEP_ALIVE, KEEP_ALIVE_S, STREAM_HEADERS

MESSAGE_KEY = "bridgehead.message"
"""Where the wire leaves the message that it has parsed already."""

BODY_KEY = "bridgehead.body"
"""Where the wire leaves the body that it has read."""


class AdaptiveTransport(StreamableHTTPServerTransport):
    """One session, answering each request in the least that will do.

    Inside the session each request has an id of ours. Clients do use one id for two requests at once, and each answer has to
    find its own request.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._numbers = count(1)
        self._running: dict[int | str, str] = {}
        """Our id of the latest request that runs under a client's id."""

    async def _handle_post_request(self, scope: Scope, request: Request, receive: Receive, send: Send) -> None:
        message: dict[str, Any] | None = scope.get(MESSAGE_KEY)
        writer = self._read_stream_writer
        method = message.get("method") if message is not None else None
        if message is None or writer is None or method is None:
            await super()._handle_post_request(scope, request, receive, send)
            return
        # A session begins with `initialize`, which can name neither it nor its version yet.
        if method != "initialize" and not await self._validate_request_headers(request, send):
            return
        if "id" not in message:
            await _send_json(send, 202, b"", self._session)
            notification = types.JSONRPCNotification.model_validate(self._renumbered(message), by_name=False)
            await writer.send(SessionMessage(notification, metadata=self._message_metadata(request)))
            return
        client_id: int | str = message["id"]
        stream_id = f"r{next(self._numbers)}"
        rpc = types.JSONRPCRequest.model_validate({**message, "id": stream_id}, by_name=False)
        self._running[client_id] = stream_id
        streams = anyio.create_memory_object_stream[EventMessage](REQUEST_STREAM_BUFFER_SIZE)
        self._request_streams[stream_id] = streams
        metadata = self._message_metadata(
            request, on_request_unanswered=partial(self._terminate_unanswered_request, rpc.id)
        )
        try:
            await writer.send(SessionMessage(rpc, metadata=metadata))
            await self._send_answer(streams[1], send, client_id)
        finally:
            if self._running.get(client_id) == stream_id:
                del self._running[client_id]
            await self._clean_up_memory_streams(stream_id)

    def _renumbered(self, message: dict[str, Any]) -> dict[str, Any]:
        """A notification with the id of the request that it cancels, if it does, replaced by ours."""
        if message.get("method") != "notifications/cancelled":
            return message
        params = as_mapping(message.get("params"))
        cancelled = params.get("requestId")
        known = self._running.get(cancelled) if isinstance(cancelled, int | str) else None
        return {**message, "params": {**params, "requestId": known}} if known is not None else message

    async def _send_answer(
        self, stream: MemoryObjectReceiveStream[EventMessage], send: Send, client_id: int | str
    ) -> None:
        """Send JSON if the first thing said is the answer and comes soon, else a stream of all that is said."""
        streaming = False
        while True:
            said: EventMessage | None = None
            try:
                with anyio.move_on_after(KEEP_ALIVE_S):
                    said = await stream.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                if not streaming:
                    gone = {"code": types.INTERNAL_ERROR, "message": "The session ended before the request did."}
                    ended = orjson.dumps({"jsonrpc": "2.0", "id": client_id, "error": gone})
                    await _send_json(send, 500, ended, self._session)
                else:
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            is_answer = said is not None and isinstance(said.message, types.JSONRPCResponse | types.JSONRPCError)
            body = _dump(said.message, client_id) if said is not None else b""
            if is_answer and not streaming:
                await _send_json(send, 200, body, self._session)
                return
            if not streaming:
                streaming = True
                await send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, self._session]})
            event = b"event: message\r\ndata: %b\r\n\r\n" % body if said is not None else KEEP_ALIVE
            await send({"type": "http.response.body", "body": event, "more_body": not is_answer})
            if is_answer:
                return

    def touch(self) -> None:
        """Put off the end that the session comes to when nothing is asked in it."""
        if self.idle_scope is not None and self._idle_timeout is not None and not self._requests_in_flight:
            self.idle_scope.deadline = anyio.current_time() + self._idle_timeout

    @property
    def _session(self) -> tuple[bytes, bytes]:
        return b"mcp-session-id", (self.mcp_session_id or "").encode()


class AdaptiveSessions(StreamableHTTPSessionManager):
    """The SDK's manager, with sessions of the kind above, for requests whose body has been read and measured already."""

    async def handle_quiet(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a modern request about which nothing but its answer can be said: it wants neither progress nor logs.

        A caller that hangs up cancels its request, as on the SDK's way, which costs three tasks and a channel more.
        """
        with anyio.CancelScope() as patience:
            watcher = asyncio.ensure_future(hung_up(receive))
            watcher.add_done_callback(lambda _: patience.cancel())
            body = scope[BODY_KEY]
            try:
                await handle_modern_request(
                    self.app,
                    self.security_settings,
                    json_response=True,
                    lifespan_state=self._lifespan_state,
                    scope=scope,
                    receive=_once(body),
                    send=send,
                )
            finally:
                watcher.cancel()

    async def handle_read(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer any other request."""
        await self._handle_request(scope, receive, send)

    def _admit_session(self, requestor: Any) -> StreamableHTTPServerTransport | None:
        if self.max_sessions is not None and len(self._server_instances) >= self.max_sessions:
            return None
        transport = AdaptiveTransport(
            mcp_session_id=uuid4().hex, security_settings=self.security_settings, idle_timeout=self.session_idle_timeout
        )
        self._server_instances[transport.mcp_session_id or ""] = transport
        return transport


async def hung_up(receive: Receive) -> None:
    """Return once the caller has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _once(body: bytes) -> Receive:
    """A `receive` that gives the body."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _dump(message: types.JSONRPCMessage, client_id: int | str) -> bytes:
    """The message as JSON, an answer under the client's own id."""
    if isinstance(message, types.JSONRPCResponse):
        return dumps({"jsonrpc": "2.0", "id": client_id, "result": message.result})
    if isinstance(message, types.JSONRPCError):
        error = message.error.model_dump(by_alias=True, exclude_unset=True)
        return dumps({"jsonrpc": "2.0", "id": client_id, "error": error})
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


async def _send_json(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    fixed = ((b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": body, "more_body": False})
