"""One HTTP request and its answer, over connections that all backends share. The only module that knows aiohttp.

Most of what a client session of aiohttp does for each request (cookies, redirects, proxies, tracing, timers, a payload writer)
is either forbidden here or not needed, and costs more than the rest of a call. So its connector and its response parser are
used without it: a request is written as bytes, and redirects, cookies and repeats cannot happen. Written against aiohttp 3.14.

Deadlines are the callers', but for connecting, which has its own.
"""

from __future__ import annotations

import asyncio
import base64
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
from yarl import URL

from bridgehead import __version__
from bridgehead.backends.mcp.http.causes import Causes
from bridgehead.backends.mcp.http.guard import Refusal, check_addresses, check_host

Lookup = Callable[[str, int], Awaitable[Sequence[tuple[int, str]]]]
"""Resolves a name: from host and port to address families and addresses."""

_CONNECT_S = 10.0
_IDLE_S = 4.5
"""Shorter than the five seconds after which common servers hang up: nobody knows whether a request sent into that has run."""
_READ_BYTES = 256 * 1024
_DRAIN_BYTES = 64 * 1024
_INFORMATIONAL = range(100, 200)
_UNSAFE = re.compile(r"[\r\n\0]")
_PROBES = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
"""After how many seconds of silence a connection is probed, how often, and how many times without an answer."""
_OURS = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "transfer-encoding",
    }
)
"""Headers that the transport sets and nobody else."""


_FAILURES = (aiohttp.ClientError, HttpProcessingError, OSError)


class TooLarge(Exception):
    """A body has more bytes than are let in."""


class BrokeOff(Exception):
    """A body ended before it was complete."""


async def system_lookup(host: str, port: int) -> Sequence[tuple[int, str]]:
    """What the system's resolver says.

    Raises:
        OSError: It says nothing.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(family, str(address[0])) for family, _, _, _, address in found]


class GuardedResolver(AbstractResolver):
    """Resolves names to addresses that may be connected to; the connection is then made to just these."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of `host`.

        Raises:
            Refusal: They may not be connected to.
        """
        found = [(kind, text) for kind, text in await self._lookup(host, port) if family in (socket.AF_UNSPEC, kind)]
        good = set(check_addresses(host, [text for _, text in found]))
        flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        return [
            ResolveResult(hostname=host, host=text, port=port, family=kind, proto=0, flags=flags)
            for kind, text in found
            if text in good
        ]

    async def close(self) -> None:
        """It holds nothing."""


class Connections:
    """The open connections of a bridge."""

    def __init__(self, lookup: Lookup = system_lookup) -> None:
        self.connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(lookup), limit=0, keepalive_timeout=_IDLE_S, socket_factory=_probing_socket
        )

    async def close(self) -> None:
        """Close all of them."""
        await self.connector.close()


class Reply:
    """The head of an answer, and its body as it comes.

    It has to be ended, in whichever way: `end` keeps the connection if the body has been read, `drop` never does.
    """

    __slots__ = ("_connection", "body", "headers", "status")

    def __init__(self, status: int, headers: Mapping[str, str], body: StreamReader, connection: Connection) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self._connection = connection

    @property
    def content_type(self) -> str:
        """Without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_read(self) -> bool:
        """Whether the whole body has come."""
        return self.body.at_eof()

    async def more(self) -> bytes:
        """The next piece of the body, decompressed; empty at its end.

        Raises:
            BrokeOff: It ended before it was complete.
        """
        try:
            return await self.body.readany()
        except _FAILURES as error:
            raise BrokeOff from error

    async def read(self, limit: int) -> bytes:
        """The whole body, decompressed.

        Raises:
            TooLarge: It has more than `limit` bytes.
            BrokeOff: It ended before it was complete.
        """
        declared = self.headers.get("content-length", "")
        if declared.isdigit() and int(declared) > limit:
            raise TooLarge
        part = await self.more()
        if self.body.at_eof() and len(part) <= limit:
            return part
        parts, size = list[bytes](), 0
        while part:
            parts.append(part)
            size += len(part)
            if size > limit:
                raise TooLarge
            part = await self.more()
        return b"".join(parts)

    async def some(self, most: int = _DRAIN_BYTES) -> bytes:
        """The body's beginning, or what there was before it broke off; for causes, not for answers."""
        parts, size = list[bytes](), 0
        with suppress(BrokeOff):
            while size < most and (part := await self.more()):
                parts.append(part)
                size += len(part)
        return b"".join(parts)

    def end(self) -> None:
        """Give the connection back if the whole body was read, else close it."""
        if self.is_read:
            self._connection.release()
        else:
            self._connection.close()

    def drop(self) -> None:
        """Close the connection, which tells the server that nobody waits for its answer."""
        self._connection.close()


class Wire:
    """Requests to one URL."""

    def __init__(self, connections: Connections, url: str, headers: Mapping[str, str], causes: Causes) -> None:
        """Prepare requests to `url`.

        Args:
            connections: Where connections come from.
            url: Absolute, http or https.
            headers: Headers of every request.
            causes: Words what fails.

        Raises:
            BackendUnavailable: The host is an address that may not be connected to.
        """
        self._connector = connections.connector
        self._causes = causes
        target = URL(url)
        try:
            check_host(target.raw_host or "")
        except Refusal as refusal:
            raise causes.unreachable(str(refusal), refusal.hint) from refusal
        self._timeout = aiohttp.ClientTimeout(total=None, connect=_CONNECT_S, sock_connect=_CONNECT_S)
        # Only what identifies the connection is taken of it; it is never sent.
        self._target = ClientRequest("GET", target.with_user(None), loop=asyncio.get_running_loop())
        sent = {name.lower(): value for name, value in headers.items() if name.lower() not in _OURS}
        sent.setdefault("host", _authority(target))
        sent.setdefault("user-agent", f"bridgehead/{__version__}")
        sent.setdefault("accept-encoding", "gzip, deflate")
        if target.user is not None:
            pair = f"{target.user}:{target.password or ''}"
            sent.setdefault("authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
        self._head = f"{target.raw_path_qs} HTTP/1.1\r\n".encode() + rendered(tuple(sent.items()))

    async def send(self, method: bytes, head: bytes, body: bytes | None = None) -> Reply:
        """Send a request; return when the head of its answer is there.

        Args:
            method: The HTTP method.
            head: Further headers, rendered.
            body: The body, or None for none.

        Raises:
            BackendUnavailable: There was no connection, or it was lost; `details["sent"]` tells which.
            BackendFaulty: What came is not HTTP.
        """
        try:
            connection = await self._connector.connect(self._target, traces=[], timeout=self._timeout)
        except Refusal as refusal:
            raise self._causes.unreachable(str(refusal), refusal.hint) from refusal
        except (aiohttp.ClientError, OSError) as error:
            raise self._causes.unreachable(_why(error)) from error
        try:
            return await self._exchange(connection, method, head, body)
        except HttpProcessingError as error:
            connection.close()
            raise self._causes.no_answer("answered with something that is not HTTP") from error
        except (aiohttp.ClientError, OSError) as error:
            connection.close()
            raise self._causes.broke_off("it hung up before it answered") from error
        except BaseException:
            connection.close()
            raise

    async def _exchange(self, connection: Connection, method: bytes, head: bytes, body: bytes | None) -> Reply:
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None:
            raise aiohttp.ServerDisconnectedError
        protocol.set_response_params(
            read_until_eof=True,
            auto_decompress=True,
            read_bufsize=_READ_BYTES,
            max_line_size=65_536,
            max_field_size=65_536,
        )
        if body is None:
            request = b"%b %b%b\r\n" % (method, self._head, head)
        else:
            request = b"%b %b%bContent-Length: %d\r\n\r\n%b" % (method, self._head, head, len(body), body)
        transport.write(request)
        while True:
            message, content = await protocol.read()
            if message.code not in _INFORMATIONAL:
                return Reply(message.code, cast("Mapping[str, str]", message.headers), content, connection)


def rendered(headers: Sequence[tuple[str, str]]) -> bytes:
    """Headers as they are sent.

    Raises:
        ValueError: A name or value would end its line.
    """
    lines: list[str] = []
    for name, value in headers:
        if _UNSAFE.search(name) or _UNSAFE.search(value):
            raise ValueError(f"the header {name!r} holds a line break or a NUL character")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


def _authority(url: URL) -> str:
    host = url.host_subcomponent or ""
    return host if url.is_default_port() else f"{host}:{url.port}"


def _why(error: Exception) -> str:
    """Why no connection came about, without the address."""
    if isinstance(error, TimeoutError):
        return f"there was no connection within {_CONNECT_S:g} s"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not valid: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return "the TLS handshake failed"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name cannot be resolved"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    text = cause.strerror if isinstance(cause, OSError) else None
    if isinstance(cause, ConnectionRefusedError):
        text = "nothing listens there (connection refused)"
    return text or type(error).__name__


def _probing_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket that notices when the other end is gone without a word, on streams that are silent for long."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES:
        option: int | None = getattr(socket, name, None)
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
