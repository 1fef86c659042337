"""A session over Streamable HTTP (MCP 2025-03-26 to 2026-07-28), and the lane beside it.

Each request is a POST, answered with JSON or with a stream of events; what a request meets on its way is that request's alone.
A session that the server has forgotten is begun anew once, by sending again what it was begun with, and the request that found
out is repeated, since a server that does not know the session has run nothing of it.

Above it sits the SDK's session, which knows only a pair of message streams; the lane goes past it, with ids of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bridgehead.backends.mcp.http.answers import Answer, RequestId, as_rpc
from bridgehead.backends.mcp.http.causes import Causes
from bridgehead.backends.mcp.http.following import Ended, Following
from bridgehead.backends.mcp.http.posting import AT_THE_DOOR, Posting, SessionLost, Way
from bridgehead.backends.mcp.http.wire import Reply, Wire, rendered
from bridgehead.core import as_mapping
from bridgehead.core.errors import BackendUnavailable, BridgeError
from bridgehead.core.json import dumps

log = structlog.get_logger(__name__)

Incoming = MemoryObjectSendStream[SessionMessage | Exception]

_SESSION_HEADER = "mcp-session-id"
_POST_HEAD = rendered((("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")))
_STREAM_HEAD = rendered((("Accept", "text/event-stream"),))
_REDIRECTS = range(300, 400)
_TELL_S = 10.0
_GOODBYE_S = 2.0
_LAST_WORDS_S = 0.1
_HEARD = ("notifications/progress", "notifications/message")
_LISTS = ("tools", "resources", "prompts")


@dataclass(eq=False, slots=True)
class _Post:
    """A request of the SDK's session on its way."""

    is_modern: bool
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class StreamableSession:
    """One session with one server."""

    def __init__(
        self, wire: Wire, causes: Causes, incoming: Incoming, *, limit: int, tasks: anyio.abc.TaskGroup
    ) -> None:
        """Prepare a session; `serve` runs it.

        Args:
            wire: The way to the server.
            causes: Words what fails.
            incoming: Where messages from the server go.
            limit: The most bytes of one message.
            tasks: Where the session's own work runs; ending it ends the session.
        """
        self._wire = wire
        self._causes = causes
        self._incoming = incoming
        self._limit = limit
        self._tasks = tasks
        self._posts: dict[RequestId, _Post] = {}
        self._beginning: Mapping[str, Any] | None = None
        """The `initialize` request that the session was begun with, in the older generation."""
        self._session_id = ""
        self._version = ""
        self._head = _POST_HEAD
        self._way = Way(in_session=False, resume=None)
        self._posting = Posting(wire, causes, limit=limit, tasks=tasks, hand_over=self.hand_over)
        self._epoch = 0
        """How many times the session was begun anew."""
        self._renewing = anyio.Lock()
        self._begun = False
        self._answered = False
        self._busy = 0
        self._closed = False
        self._ending: BridgeError | None = None
        """Why the session should end, once nobody is being answered."""
        self._watched: set[str] = set()
        """Resources that the server was asked to watch, in the older generation."""
        self._numbers = count(1)
        self.heard: Callable[[str, Mapping[str, Any]], bool] | None = None
        """Takes progress and log messages as they come, and says whether that was all they need."""

    @property
    def is_modern(self) -> bool:
        """Whether it speaks the 2026-07-28 generation."""
        return self._version in MODERN_PROTOCOL_VERSIONS

    # --- the SDK's session

    async def serve(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Send what the SDK's session writes, until it writes no more."""
        async for item in outgoing:
            message, metadata = item.message, item.metadata
            headers = (metadata.headers if isinstance(metadata, ClientMessageMetadata) else None) or {}
            if isinstance(message, types.JSONRPCRequest):
                self._stamp(message, headers)
                if (earlier := self._posts.get(message.id)) is not None:
                    # The id stands for the later one now; what comes for the earlier one must not answer it.
                    earlier.scope.cancel()
                post = self._posts[message.id] = _Post(self.is_modern)
                self._tasks.start_soon(self._relay, message, headers, post)
            elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
                self._tasks.start_soon(self._cancel, message)
            elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/initialized":
                # Nothing of the session may overtake it.
                await self._tell(message)
                self._begun = True
                self._tasks.start_soon(self._follow, self._epoch)
            else:
                self._tasks.start_soon(self._tell, message)

    def _stamp(self, message: types.JSONRPCRequest, headers: Mapping[str, str]) -> None:
        """Learn from a request what all that follow carry."""
        if message.method == "initialize":
            self._beginning = message.model_dump(by_alias=True, exclude_unset=True)
            self._set(session_id="", version="")
        elif headers.get(MCP_PROTOCOL_VERSION_HEADER, self._version) != self._version:
            self._set(session_id=self._session_id, version=headers[MCP_PROTOCOL_VERSION_HEADER])
        elif message.method == "resources/subscribe":
            self._watched.add(str((message.params or {}).get("uri")))
        elif message.method == "resources/unsubscribe":
            self._watched.discard(str((message.params or {}).get("uri")))

    def _set(self, *, session_id: str, version: str) -> None:
        self._session_id, self._version = session_id, version
        own = [(_SESSION_HEADER, session_id)] if session_id else []
        own += [(MCP_PROTOCOL_VERSION_HEADER, version)] if version else []
        self._head = _POST_HEAD + rendered(own)
        self._way = Way(bool(session_id), None if self.is_modern else self.open_stream)

    async def _relay(self, message: types.JSONRPCRequest, headers: Mapping[str, str], post: _Post) -> None:
        """Send a request and give its answer to the SDK's session, whatever comes of it."""
        try:
            with post.scope:
                await self._give(await self._answered_by_server(message, headers))
        finally:
            if self._posts.get(message.id) is post:
                del self._posts[message.id]

    async def _answered_by_server(
        self, message: types.JSONRPCRequest, headers: Mapping[str, str]
    ) -> types.JSONRPCMessage:
        more = [(name, value) for name, value in headers.items() if name != MCP_PROTOCOL_VERSION_HEADER]
        try:
            body = dumps(message.model_dump(by_alias=True, exclude_unset=True))
            answer = await self._ask(body, message.id, rendered(more), begins=message.method == "initialize")
            return as_rpc(answer.message, message.id)
        except BridgeError as error:
            if not self._answered and _is_final(error):
                raise
            # In `data`, so that it is told from anything that a server can write.
            fault = types.ErrorData(code=types.INTERNAL_ERROR, message=error.message, data=error)
        except ValueError as error:
            log.info("a request or its answer could not be used", method=message.method, cause=str(error)[:200])
            fault = types.ErrorData(
                code=types.INTERNAL_ERROR, message="The request cannot be written, or its answer is no JSON-RPC answer."
            )
        return types.JSONRPCError(jsonrpc="2.0", id=message.id, error=fault)

    async def _cancel(self, message: types.JSONRPCNotification) -> None:
        """Stop a request: by hanging up in the modern generation, else by saying so (MCP transports, cancellation)."""
        request_id = (message.params or {}).get("requestId")
        post = self._posts.get(request_id) if isinstance(request_id, int | str) else None
        if not (post.is_modern if post is not None else self.is_modern):
            await self._tell(message)
        if post is not None:
            post.scope.cancel()

    async def _tell(self, message: types.JSONRPCMessage) -> None:
        """Send a message that has no answer."""
        try:
            body = dumps(message.model_dump(by_alias=True, exclude_unset=True))
            await self._post_unanswered(body, self._head)
        except (BridgeError, ValueError) as error:
            log.info("a notification could not be sent", cause=str(error))

    async def _post_unanswered(self, body: bytes, head: bytes) -> None:
        with anyio.move_on_after(_TELL_S):
            reply = await self._wire.send(b"POST", head, body)
            try:
                await reply.some()
            finally:
                reply.end()

    async def _give(self, message: types.JSONRPCMessage) -> None:
        """Give a message to the SDK's session; one that has ended wants none."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._incoming.send(SessionMessage(message))

    async def hand_over(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Give what the server said by itself to the SDK's session."""
        for message in messages:
            method = message.get("method")
            if (
                isinstance(method, str)
                and method in _HEARD
                and self.heard is not None
                and self.heard(method, as_mapping(message.get("params")))
            ):
                # In the order in which they came, and before the answer that comes after them.
                continue
            try:
                rpc = as_rpc(message)
            except ValueError:
                log.warning("a message from the server is no JSON-RPC and was skipped")
                continue
            await self._give(rpc)

    # --- the lane

    async def request(
        self, method: str, params: bytes, *, headers: Sequence[tuple[str, str]] = (), timeout_s: float | None
    ) -> bytes | None:
        """Implements `Lane`."""
        modern = self.is_modern
        if self._closed or not (modern or self._begun):
            return None
        # A string, which no id of the SDK's session is.
        request_id = f"b{next(self._numbers)}"
        body = b'{"jsonrpc":"2.0","id":"%b","method":"%b","params":%b}' % (request_id.encode(), method.encode(), params)
        more = rendered(headers) if headers else b""
        if modern:
            more += b"%b: %b\r\n" % (MCP_METHOD_HEADER.encode(), method.encode())
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._ask(body, request_id, more)
        except TimeoutError:
            self._abandon(request_id, modern=modern)
            raise self._causes.timed_out(method, timeout_s or 0) from None
        except asyncio.CancelledError:
            self._abandon(request_id, modern=modern)
            raise
        return answer.raw

    def _abandon(self, request_id: str, *, modern: bool) -> None:
        """Tell the server to stop; in the modern generation the connection that was closed has done so."""
        if not modern and not self._closed:
            params = {"requestId": request_id, "reason": "nobody waits for it any more"}
            notification = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)
            self._tasks.start_soon(self._tell, notification)

    # --- one request

    async def _ask(self, body: bytes, request_id: RequestId, head: bytes, *, begins: bool = False) -> Answer:
        """Send a request and wait for its answer, beginning the session anew where the server has forgotten it.

        Raises:
            BridgeError: There is no answer.
        """
        epoch = self._epoch
        self._busy += 1
        try:
            try:
                way = replace(self._way, in_session=False, begun=self._begin) if begins else self._way
                answer = await self._posting.post(body, request_id, self._head + head, way)
            except SessionLost:
                await self.renew(epoch)
                answer = await self._again(body, request_id, head)
        except BackendUnavailable as error:
            if error.details.get("reached") is False:
                self._ending = error
            raise
        else:
            self._answered = True
            self._ending = None
            return answer
        finally:
            self._busy -= 1
            self._rest()

    async def _again(self, body: bytes, request_id: RequestId, head: bytes) -> Answer:
        """The repetition of a request in the session that was begun for it."""
        try:
            return await self._posting.post(body, request_id, self._head + head, self._way)
        except SessionLost as lost:
            if lost.answer is not None:
                # In a session that has just begun it is the request that the server does not know.
                return lost.answer
            self._ending = self._causes.lost_session()
            raise self._ending from lost

    # --- the session's beginning and end

    def _begin(self, reply: Reply, answer: Answer) -> None:
        """Take note of the session that the answer to `initialize` names, if it is one."""
        session_id = reply.headers.get(_SESSION_HEADER, "")
        if "result" in answer.message and session_id.isascii() and session_id.isprintable():
            self._set(session_id=session_id, version=self._version)

    async def renew(self, epoch: int) -> None:
        """Begin the session anew, unless that was done since `epoch`.

        Raises:
            BackendUnavailable: It cannot be begun.
        """
        async with self._renewing:
            if self._epoch != epoch:
                return
            log.info("the server has forgotten the session; it is begun anew")
            try:
                capabilities = await self._begin_anew()
            except (BridgeError, SessionLost) as error:
                # Whatever befell the beginning, the request that it was for has not run.
                cause = error if isinstance(error, BridgeError) else self._causes.lost_session()
                self._ending = BackendUnavailable(
                    cause.message, hint=cause.hint, details={**cause.details, "sent": False}
                )
                raise self._ending from error
            self._epoch += 1
            self._tasks.start_soon(self._follow, self._epoch)
        # It may be another server than before, and nobody announced that.
        changed = [f"notifications/{part}/list_changed" for part in _LISTS if part in capabilities]
        await self.hand_over([{"jsonrpc": "2.0", "method": method} for method in changed])

    async def _begin_anew(self) -> Mapping[str, Any]:
        """Initialise as before; the capabilities of the server."""
        if self._beginning is None:
            raise self._causes.lost_session()
        request_id = f"b{next(self._numbers)}"
        body = dumps({**self._beginning, "id": request_id})
        way = replace(self._way, in_session=False, begun=self._begin)
        answer = await self._posting.post(body, request_id, _POST_HEAD, way)
        result = as_mapping(answer.message.get("result"))
        if result.get("protocolVersion") != self._version:
            raise self._causes.lost_session()
        await self._post_unanswered(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', self._head)
        for uri in sorted(self._watched):
            request_id = f"b{next(self._numbers)}"
            asked = {"jsonrpc": "2.0", "id": request_id, "method": "resources/subscribe", "params": {"uri": uri}}
            await self._posting.post(dumps(asked), request_id, self._head, self._way)
        return as_mapping(result.get("capabilities"))

    async def open_stream(self, last_id: str) -> Reply:
        """Ask for the stream of what the server says by itself, or of what followed an event.

        Raises:
            BridgeError: Nothing came.
        """
        head = self._head.replace(_POST_HEAD, _STREAM_HEAD, 1)
        if last_id:
            head += rendered((("Last-Event-ID", last_id),))
        return await self._wire.send(b"GET", head)

    async def _follow(self, epoch: int) -> None:
        """Hear what the server says by itself, for as long as this session lasts."""
        outcome = await Following(self, limit=self._limit, is_current=lambda: self._epoch == epoch).run()
        try:
            if outcome is Ended.SESSION_LOST:
                await self.renew(epoch)
        except BridgeError as error:
            self._ending = error
        if outcome is Ended.UNREACHABLE and self._ending is None:
            self._ending = self._causes.unreachable("nothing listens there any more")
        self._rest()

    def _rest(self) -> None:
        """Let the session end, if there is a reason to and nobody is being answered."""
        if self._ending is not None and not self._busy and not self._closed:
            self._tasks.start_soon(self._end, self._ending)

    async def _end(self, error: BridgeError) -> None:
        """End the session, once what was said last has been read and unless things have turned to the better since."""
        await anyio.sleep(_LAST_WORDS_S)
        if self._ending is error and not self._busy:
            raise error

    async def close(self) -> None:
        """Send nothing more, and tell the server that the session is over."""
        self._closed = True
        if not self._session_id or self._ending is not None:
            return
        with anyio.move_on_after(_GOODBYE_S, shield=True), suppress(BridgeError):
            reply = await self._wire.send(b"DELETE", self._head.replace(_POST_HEAD, _STREAM_HEAD, 1))
            try:
                await reply.some()
            finally:
                reply.end()


def _is_final(error: BridgeError) -> bool:
    """Whether an error at the start would befall any other way of beginning too."""
    status = error.details.get("status")
    return (
        error.details.get("reached") is False or status in AT_THE_DOOR or (status is not None and status in _REDIRECTS)
    )


@asynccontextmanager
async def open_streamable(
    wire: Wire, causes: Causes, limit: int
) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[Any], MemoryObjectSendStream[SessionMessage], StreamableSession]]:
    """A session: what the server says, where to write, and the session itself, which is also the lane.

    Raises:
        BridgeError: The session ended, and why; from within the context, as part of a group.
    """
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](64)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with incoming, read, write, outgoing, anyio.create_task_group() as tasks:
        session = StreamableSession(wire, causes, incoming, limit=limit, tasks=tasks)
        tasks.start_soon(session.serve, outgoing)
        try:
            yield read, write, session
        finally:
            await session.close()
            tasks.cancel_scope.cancel()
