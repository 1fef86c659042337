"""The HTTP side of the MCP endpoints: who may come in, what is well-formed, and the lists.

Everything that reaches the SDK has been let in and can be read: the host and origin are ours, the caller is known, the body is
one JSON-RPC message of bearable size. Whatever is not gets a JSON-RPC error, never HTML and never a stack. List requests are
answered here, from ready bytes; anything about them that is unusual falls through to the SDK.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import mcp_types as types
import orjson
import structlog
from mcp.shared.inbound import InboundModernRoute, classify_inbound_request, find_duplicated_routing_header
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from bridgehead.core import BridgeError, Caller, Era, as_mapping, new_id
from bridgehead.core.addresses import is_loopback
from bridgehead.core.errors import GroupNotFound, Unauthenticated
from bridgehead.core.json import loads, nested_deeper_than
from bridgehead.surfaces.mcp.calls import Inside
from bridgehead.surfaces.mcp.doors import Doors
from bridgehead.surfaces.mcp.endpoints import Endpoint, Endpoints
from bridgehead.surfaces.mcp.full import CALLER_KEY, RELAYED_METHODS
from bridgehead.surfaces.mcp.lane import Arrived, FastLane
from bridgehead.surfaces.mcp.lists import LIST_METHODS
from bridgehead.surfaces.mcp.ports import Authenticator
from bridgehead.surfaces.mcp.sdk import has_session
from bridgehead.surfaces.mcp.transport import BODY_KEY, MESSAGE_KEY, AdaptiveSessions

log = structlog.get_logger(__name__)

MOST_DEPTH = 64
_BOUNDED = ("_meta", "inputResponses", "context", "ref", "argument")
"""Parts of the params that are relayed; arguments are bounded by the gate, whose answer a model can read."""

_JSON = b"application/json"
_MOST_RECOGNISED = 1_000
_IDS = (int, str)
_NOTHING: Mapping[str, Any] = {}
_BOTH_ACCEPTED = b"application/json, text/event-stream"


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """A request that is answered with a JSON-RPC error before it reaches anything."""

    status: int
    code: int
    message: str
    request_id: int | str | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    data: Any = None


class McpEndpoints:
    """`/mcp` and `/mcp/{group}` as one ASGI application."""

    def __init__(
        self, inside: Inside, authenticator: Authenticator, doors: Doors, *, max_body_bytes: int, fast_lane: bool = True
    ) -> None:
        """Serve what is inside to whom `authenticator` knows; without `fast_lane` all calls go the SDK's way."""
        self._authenticator = authenticator
        self._doors = doors
        self._max_body_bytes = max_body_bytes
        self._epoch = authenticator.epoch
        self._recognised: dict[tuple[bytes, bytes, bytes, str | None], Caller] = {}
        self._endpoints = Endpoints(inside, fast_lane=fast_lane)

    def adjust(self, *, max_body_bytes: int) -> None:
        """Take bodies of that size from now on, and ask the doors again about everyone: they may have changed."""
        self._max_body_bytes = max_body_bytes
        self._recognised.clear()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serve sessions for as long as the context lasts, then end them."""
        async with self._endpoints.running():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        began = False

        async def watched(event: Message) -> None:
            nonlocal began
            began = True
            await send(event)

        try:
            await self._answer(scope, receive, watched)
        except Refused as refusal:
            await _send_refusal(refusal, send)
        except Exception as error:
            incident = new_id("incident")
            log.exception("a request broke the surface", incident=incident)
            if began:
                raise
            request_id = as_mapping(scope.get(MESSAGE_KEY)).get("id")
            sentence = f"The request could not be answered ({incident}). hint: the log of the bridge has the cause."
            broken = Refused(500, types.INTERNAL_ERROR, sentence, request_id, data={"cause": type(error).__name__})
            await _send_refusal(broken, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = scope[CALLER_KEY] = self._let_in(scope)
        group: str | None = scope.get("path_params", {}).get("group")
        endpoint = self._endpoints.get(group)
        if endpoint is None:
            raise _refusal_of(
                GroupNotFound(f"No group {group!r} is switched on.", hint="GET /groups lists them."), status=404
            )
        if not endpoint.is_ready:
            await endpoint.wait_ready()
        method: str = scope["method"]
        if method == "POST":
            endpoint.enter()
            try:
                await self._post(endpoint, caller, (scope, receive, send))
            finally:
                endpoint.exit()
        elif method in ("GET", "DELETE") and "mcp-session-id" in _headers(scope):
            await endpoint.sessions.handle_request(scope, receive, send)
        else:
            # Without a session there is nothing to stream or to end; clients that try a GET first go on with POST.
            raise Refused(
                405,
                types.INVALID_REQUEST,
                f"{method} needs a session here; POST is the way in.",
                headers=((b"allow", b"POST"),),
            )

    async def _post(self, endpoint: Endpoint, caller: Caller, connection: tuple[Scope, Receive, Send]) -> None:
        scope, receive, send = connection
        raw = dict[bytes, bytes](scope["headers"])
        content_type = raw.get(b"content-type", b"")
        if content_type != _JSON and content_type.partition(b";")[0].strip().lower() != _JSON:
            raise Refused(415, types.INVALID_REQUEST, "The Content-Type has to be application/json.")
        body, trailing = await self._read(raw, receive)
        message = scope[MESSAGE_KEY] = _parse(body)
        manager, lane = endpoint.sessions, endpoint.lane
        # A header that came twice is for the SDK to judge.
        if lane is not None and trailing is None and len(raw) == len(scope["headers"]):
            if message.get("method") == "tools/call" and "id" in message:
                if await lane.answer(Arrived(message, raw, caller, receive, send)):
                    return
            elif await _was_noted(lane, message, raw.get(b"mcp-session-id", b""), send):
                return
        headers = _headers(scope)
        if not _is_legacy(headers) and not _takes_json(headers):
            raise Refused(
                406, types.INVALID_REQUEST, "The Accept header has to take application/json.", message.get("id")
            )
        if message.get("method") in LIST_METHODS and self._answer_list_is_ours(manager, message, headers, scope):
            era = Era.LEGACY if _is_legacy(headers) else Era.MODERN
            result = endpoint.surface.lists.result_bytes(message["method"], era)
            answer = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (orjson.dumps(message["id"]), result)
            extra = ((b"mcp-session-id", headers["mcp-session-id"].encode()),) if era is Era.LEGACY else ()
            await _send_json(send, 200, answer, extra)
            return
        if _is_legacy(headers) and message.get("method") != "initialize":
            _check_session(manager, message, headers)
        scope = _accepting_both(scope, headers)
        if _is_quiet(message, headers) and trailing is None:
            scope[BODY_KEY] = body
            await manager.handle_quiet(scope, receive, send)
        else:
            await manager.handle_read(scope, _replay(body, trailing, receive), send)

    def _answer_list_is_ours(
        self, manager: AdaptiveSessions, message: Mapping[str, Any], headers: Mapping[str, str], scope: Scope
    ) -> bool:
        """Whether a list request is an ordinary one: well-formed, of a known session or a valid modern envelope."""
        if "id" not in message or as_mapping(message.get("params")).get("cursor"):
            return False
        if _is_legacy(headers):
            return has_session(manager, headers.get("mcp-session-id", ""))
        if find_duplicated_routing_header(Headers(scope=scope).items()) is not None:
            return False
        return isinstance(classify_inbound_request(dict(message), headers=headers), InboundModernRoute)

    def _let_in(self, scope: Scope) -> Caller:
        """Who is calling, once host, origin and credential are in order.

        What was in order stays so until a credential is revoked, and is recognised by its bytes.

        Raises:
            Refused: They are not.
        """
        host = origin = credential = b""
        for name, value in scope["headers"]:
            if name == b"host":
                host += b"\n" + value
            elif name == b"origin":
                origin += b"\n" + value
            elif name == b"authorization":
                credential += b"\n" + value
        peer = scope.get("client")
        key = (host, origin, credential, peer[0] if peer is not None else None)
        if self._epoch != self._authenticator.epoch:
            self._epoch = self._authenticator.epoch
            self._recognised.clear()
        known = self._recognised.get(key)
        if known is None:
            headers = _headers(scope)
            self._check_doors(headers)
            known = self._authenticate(scope, headers)
            if len(self._recognised) >= _MOST_RECOGNISED:
                self._recognised.clear()
            self._recognised[key] = known
        return known

    def _check_doors(self, headers: Mapping[str, str]) -> None:
        problem = self._doors.problem(headers.get("host"), headers.get("origin"))
        if problem is not None:
            status, sentence = problem
            raise Refused(status, types.INVALID_REQUEST, sentence)

    def _authenticate(self, scope: Scope, headers: Mapping[str, str]) -> Caller:
        peer = scope.get("client")
        try:
            return self._authenticator.caller(
                headers.get("authorization"), peer_is_loopback=peer is not None and is_loopback(peer[0])
            )
        except Unauthenticated as error:
            raise _refusal_of(
                error, status=401, headers=((b"www-authenticate", b'Bearer realm="bridgehead"'),)
            ) from error

    async def _read(self, headers: Mapping[bytes, bytes], receive: Receive) -> tuple[bytes, Message | None]:
        """The whole body, and the message that came after it, if any."""
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > self._max_body_bytes:
            raise self._too_large()
        chunks = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return bytes(chunks), message
            chunks += message.get("body", b"")
            if len(chunks) > self._max_body_bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(chunks), None

    def _too_large(self) -> Refused:
        return Refused(
            413,
            types.INVALID_REQUEST,
            f"The body is larger than {self._max_body_bytes} bytes. hint: `max_body_bytes` under [server] raises the limit.",
        )


def _parse(body: bytes) -> dict[str, Any]:
    """The one JSON-RPC message of a body.

    Raises:
        Refused: It is not one (JSON-RPC 2.0, sections 4 and 5.1).
    """
    try:
        message: Any = loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, types.PARSE_ERROR, f"The body is not JSON: {str(error)[:100]}.") from error
    if isinstance(message, list):
        raise Refused(400, types.INVALID_REQUEST, "Batches are not supported; send one message a request.")
    parsed: dict[str, Any] = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
    if not _is_plain_request(parsed):
        _judge(parsed)
    _bound_depth(body, parsed)
    return parsed


def _judge(parsed: Mapping[str, Any]) -> None:
    """Refuse what is no JSON-RPC message.

    Raises:
        Refused: It is none.
    """
    if not parsed:
        raise Refused(400, types.INVALID_REQUEST, "The body has to be one JSON-RPC message object.")
    request_id = parsed.get("id")
    if "id" in parsed and (isinstance(request_id, bool) or not isinstance(request_id, int | str)):
        raise Refused(400, types.INVALID_REQUEST, "The id has to be a string or an integer.")
    if parsed.get("jsonrpc") != "2.0":
        raise Refused(400, types.INVALID_REQUEST, 'The member "jsonrpc" has to be "2.0".', request_id)
    if "method" in parsed:
        if not isinstance(parsed["method"], str):
            raise Refused(400, types.INVALID_REQUEST, "The method has to be a string.", request_id)
        if not isinstance(parsed.get("params", {}), dict):
            raise Refused(400, types.INVALID_PARAMS, "The params have to be an object.", request_id)
    elif "result" not in parsed and "error" not in parsed:
        raise Refused(400, types.INVALID_REQUEST, "The message has no method.", request_id)


def _is_plain_request(message: Mapping[str, Any]) -> bool:
    """Whether it is a request in which all is as it should be, as nearly all are."""
    return (
        message.get("jsonrpc") == "2.0"
        and type(message.get("method")) is str
        and type(message.get("id")) in _IDS
        and type(message.get("params", _NOTHING)) is dict
    )


def _bound_depth(body: bytes, message: Mapping[str, Any]) -> None:
    """Refuse params that are nested too deep to be relayed."""
    if body.count(b"{") + body.count(b"[") <= MOST_DEPTH:
        # It takes as many brackets at the least.
        return
    params = as_mapping(message.get("params"))
    if any(nested_deeper_than(params.get(part), MOST_DEPTH) for part in _BOUNDED):
        sentence = f"The params are nested deeper than {MOST_DEPTH} levels. hint: send them flatter."
        raise Refused(400, types.INVALID_PARAMS, sentence, message.get("id"))


def _is_legacy(headers: Mapping[str, str]) -> bool:
    version = headers.get("mcp-protocol-version")
    return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS


def _headers(scope: Scope) -> dict[str, str]:
    """The headers by name, the first where one came twice; those of the scope are put in order for the SDK as well.

    Blanks around a value are no part of it (RFC 9110, section 5.5), but not every HTTP parser takes them off.
    """
    headers: dict[str, str] = {}
    raw = scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
    for name, value in raw:
        headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    return headers


async def _was_noted(lane: FastLane, message: Mapping[str, Any], session_id: bytes, send: Send) -> bool:
    """Whether a message that is no call was for the lane alone; it is acknowledged then."""
    if ("id" in message and "method" in message) or not lane.take_note(session_id, message):
        return False
    await _send_json(send, 202, b"", ((b"mcp-session-id", session_id),))
    return True


def _check_session(manager: AdaptiveSessions, message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Refuse what belongs to no session, under its own id (MCP 2025-11-25, transports, session management).

    Raises:
        Refused: It names no session, or one that is over.
    """
    session_id = headers.get("mcp-session-id")
    if session_id is None:
        raise Refused(
            400,
            types.INVALID_REQUEST,
            "The request belongs to no session. hint: begin with initialize and send the Mcp-Session-Id it answers with, "
            "or speak 2026-07-28 with the MCP-Protocol-Version header.",
            message.get("id"),
        )
    if not has_session(manager, session_id):
        raise Refused(
            404, types.INVALID_REQUEST, "That session is over. hint: begin another with initialize.", message.get("id")
        )


def _takes_json(headers: Mapping[str, str]) -> bool:
    """Whether the client takes answers in JSON, by a wildcard or without a word too (RFC 9110, section 12.5.1)."""
    accepted = [kind.partition(";")[0].strip().lower() for kind in headers.get("accept", "*/*").split(",")]
    return any(kind in ("", "*/*", "application/*", "application/json") for kind in accepted)


def _is_quiet(message: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
    """Whether a modern request asks for nothing to be said while it runs."""
    if _is_legacy(headers) or "id" not in message or message.get("method") not in RELAYED_METHODS:
        return False
    meta = as_mapping(as_mapping(message.get("params")).get("_meta"))
    return "progressToken" not in meta and types.LOG_LEVEL_META_KEY not in meta


def _accepting_both(scope: Scope, headers: Mapping[str, str]) -> Scope:
    """The scope with an Accept header that the SDK takes, where the client's own is a wildcard or missing.

    The specification has clients list both types; the field's scripts and older clients do not, and mean no harm.
    """
    accept = headers.get("accept", "*/*")
    if accept.strip() not in ("*/*", "", "application/json"):
        return scope
    others = [(key, value) for key, value in scope["headers"] if key != b"accept"]
    return {**scope, "headers": [*others, (b"accept", _BOTH_ACCEPTED)]}


def _replay(body: bytes, trailing: Message | None, receive: Receive) -> Receive:
    """A `receive` that gives the body again, then whatever came after."""
    queue: deque[Message] = deque([{"type": "http.request", "body": body, "more_body": False}])
    if trailing is not None:
        queue.append(trailing)

    async def replay() -> Message:
        return queue.popleft() if queue else await receive()

    return replay


def _refusal_of(error: BridgeError, *, status: int, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Refused:
    return Refused(status, types.INVALID_REQUEST, error.sentence(), headers=headers, data=error.as_dict())


async def _send_refusal(refusal: Refused, send: Send) -> None:
    error: dict[str, Any] = {"code": refusal.code, "message": refusal.message}
    if refusal.data is not None:
        error["data"] = refusal.data
    body = orjson.dumps({"jsonrpc": "2.0", "id": refusal.request_id, "error": error})
    await _send_json(send, refusal.status, body, refusal.headers)


async def _send_json(send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    fixed = ((b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": body})
