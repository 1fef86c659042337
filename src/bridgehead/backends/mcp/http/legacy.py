"""A session over HTTP+SSE, the transport of MCP 2024-11-05: one stream for all answers, and POSTs to where it says.

A session is its stream, so it ends with it and cannot be begun anew behind the SDK's back.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import anyio
import mcp_types as types
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from bridgehead.backends.mcp.http.answers import as_rpc, decoded
from bridgehead.backends.mcp.http.causes import Causes
from bridgehead.backends.mcp.http.events import EventParser, EventTooLarge
from bridgehead.backends.mcp.http.wire import BrokeOff, Reply, Wire, rendered
from bridgehead.core import as_mapping
from bridgehead.core.errors import BridgeError
from bridgehead.core.json import dumps

log = structlog.get_logger(__name__)

Incoming = MemoryObjectSendStream[SessionMessage | Exception]

_STREAM_HEAD = rendered((("Accept", "text/event-stream"), ("Cache-Control", "no-store")))
_POST_HEAD = rendered((("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")))
_OK = range(200, 300)
_DEFAULT_PORTS = {"http": 80, "https": 443}


class LegacySession:
    """One session with one server."""

    def __init__(self, stream: Reply, causes: Causes, incoming: Incoming, *, limit: int) -> None:
        self._stream = stream
        self._causes = causes
        self._incoming = incoming
        self._limit = limit
        self._parser = EventParser(limit)
        self.endpoint = anyio.Event()
        self.address = ""
        """Where to POST, as the server said it."""

    async def read(self) -> None:
        """Read the stream until it ends.

        Raises:
            BridgeError: It ended.
        """
        try:
            while chunk := await self._stream.more():
                for event in self._parser.feed(chunk):
                    if event.kind == "endpoint" and not self.endpoint.is_set():
                        self.address = event.data.decode("utf-8", "replace").strip()
                        self.endpoint.set()
                    elif event.kind == "message":
                        await self._take(event.data)
        except EventTooLarge:
            raise self._causes.too_large(self._limit) from None
        except BrokeOff as error:
            raise self._causes.broke_off("its stream of events broke off") from error
        finally:
            self._stream.drop()
            self._incoming.close()
        raise self._causes.broke_off("it ended its stream of events")

    async def _take(self, data: bytes) -> None:
        try:
            message = as_mapping(decoded(data))
            own = message.get("id")
            rpc = as_rpc(message, own if isinstance(own, int | str) else None)
        except (ValueError, RecursionError):
            log.warning("an event that is no JSON-RPC was skipped")
            return
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._incoming.send(SessionMessage(rpc))

    async def write(self, wire: Wire, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Send what the SDK's session writes, in order; a message that cannot be sent fails alone."""
        async for item in outgoing:
            message = item.message
            try:
                await self._post(wire, dumps(message.model_dump(by_alias=True, exclude_unset=True)))
            except (BridgeError, ValueError) as error:
                if not isinstance(message, types.JSONRPCRequest):
                    log.info("a notification could not be sent", cause=str(error)[:200])
                    continue
                # In `data`, so that it is told from anything that a server can write.
                data = error if isinstance(error, BridgeError) else None
                fault = types.ErrorData(code=types.INTERNAL_ERROR, message=str(error)[:200], data=data)
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await self._incoming.send(
                        SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=message.id, error=fault))
                    )

    async def _post(self, wire: Wire, body: bytes) -> None:
        reply = await wire.send(b"POST", _POST_HEAD, body)
        try:
            said = await reply.some()
            if reply.status not in _OK:
                raise self._causes.status(reply.status, reply.headers, said)
        finally:
            reply.end()


def endpoint_url(url: str, said: str) -> str | None:
    """The URL to POST to, or None where it is not of the same origin: what is sent holds the configured headers."""
    try:
        there = urljoin(url, said)
        here, target = urlsplit(url), urlsplit(there)
        return there if _origin(here) == _origin(target) else None
    except ValueError:
        return None


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)


@asynccontextmanager
async def open_legacy(
    url: str, wire_to: Callable[[str], Wire], causes: Causes, limit: int
) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[Any], MemoryObjectSendStream[SessionMessage]]]:
    """A session: what the server says, and where to write.

    Args:
        url: Where its stream is.
        wire_to: Makes the way to a URL of the same origin.
        causes: Words what fails.
        limit: The most bytes of one message.

    Raises:
        BridgeError: It cannot be opened; from within the context, as part of a group, why it ended.
    """
    stream = await wire_to(url).send(b"GET", _STREAM_HEAD)
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](64)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        if stream.status not in _OK:
            raise causes.status(stream.status, stream.headers, await stream.some())
        if stream.content_type != "text/event-stream":
            raise causes.wrong_type(stream.content_type, await stream.some())
        async with incoming, read, write, outgoing, anyio.create_task_group() as tasks:
            session = LegacySession(stream, causes, incoming, limit=limit)
            tasks.start_soon(session.read)
            await session.endpoint.wait()
            address = endpoint_url(url, session.address)
            if address is None:
                raise causes.no_answer("wants its messages sent to another origin than its own, which is not done")
            tasks.start_soon(session.write, wire_to(address), outgoing)
            try:
                yield read, write
            finally:
                tasks.cancel_scope.cancel()
    finally:
        stream.drop()
