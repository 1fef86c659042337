"""A small real server over HTTP that misbehaves as it is told: `server.py PORT` for one in a process of its own.

Whatever a test puts under a tool's name (or a method's) answers it; everything else is answered as a good server would.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

META_VERSION = "io.modelcontextprotocol/protocolVersion"


@dataclass
class Request:
    """What came."""

    verb: str
    path: str
    headers: dict[str, str]
    message: dict[str, Any]
    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader

    @property
    def name(self) -> str:
        """The tool that is called, else the method."""
        return str(self.message.get("params", {}).get("name") or self.message.get("method"))

    def result(self, text: str = "fine") -> bytes:
        """A good answer to it."""
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "resultType": "complete"}
        return json.dumps({"jsonrpc": "2.0", "id": self.message.get("id"), "result": result}).encode()

    async def write(self, *parts: bytes, pause_s: float = 0) -> None:
        """Send bytes as they are."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(pause_s)

    async def answer(self, body: bytes, status: str = "200 OK", *extra: str, kind: str = "application/json") -> None:
        """Send a whole answer."""
        lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *extra]
        await self.write(("\r\n".join(lines) + "\r\n\r\n").encode() + body)

    async def stream(self, *chunks: bytes, pause_s: float = 0, end: bool = True) -> None:
        """Send an event stream in these chunks, and end it if that is wanted."""
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        framed = [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks]
        await self.write(head, *framed, *([b"0\r\n\r\n"] if end else []), pause_s=pause_s)

    async def hang(self) -> None:
        """Wait until the other end hangs up."""
        with suppress(ConnectionError):
            await self.reader.read()


Behaviour = Callable[[Request], Awaitable[None]]


@dataclass
class Server:
    """A server of one generation."""

    modern: bool = False
    port: int = 0
    on: dict[str, Behaviour] = field(default_factory=dict[str, Behaviour])
    requests: list[Request] = field(default_factory=list[Request])
    sessions: set[str] = field(default_factory=set[str])
    begun: int = 0
    _writers: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def seen(self, name: str) -> list[Request]:
        """The requests of that tool, method or verb so far."""
        return [request for request in self.requests if name in {request.name, request.verb}]

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Server]:
        """Serve until the context ends, on the same port each time."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**26)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.drop_all()

    def drop_all(self) -> None:
        """Hang up on everybody."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                verb, path, _ = first.split(" ", 2)
                headers = {key.lower(): value for key, _, value in (line.partition(": ") for line in lines if line)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                request = Request(verb, path, headers, json.loads(body or b"{}"), writer, reader)
                self.requests.append(request)
                await self._answer(request)
        self.hung_up.set()
        writer.close()

    async def _answer(self, request: Request) -> None:
        behaviour = self.on.get(request.verb) or self.on.get(request.name)
        method = request.message.get("method")
        if behaviour is not None:
            await behaviour(request)
        elif request.verb != "POST":
            await request.answer(b"", "405 Method Not Allowed")
        elif method == "initialize":
            await self.begin(request)
        elif method == "server/discover" and not self.modern:
            await request.answer(b"", "400 Bad Request")
        elif not self.modern and request.headers.get("mcp-session-id") not in self.sessions:
            await request.answer(b"", "404 Not Found")
        elif "id" not in request.message:
            await request.answer(b"", "202 Accepted")
        else:
            await request.answer(self._good(request))

    async def begin(self, request: Request) -> None:
        """Answer `initialize`."""
        self.begun += 1
        session = f"session-{self.begun}"
        self.sessions.add(session)
        result: dict[str, Any] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "hostile", "version": "1"},
        }
        answer = {"jsonrpc": "2.0", "id": request.message["id"], "result": result}
        await request.answer(json.dumps(answer).encode(), "200 OK", f"Mcp-Session-Id: {session}")

    def _good(self, request: Request) -> bytes:
        match request.message.get("method"):
            case "server/discover":
                result: dict[str, Any] = {
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "hostile", "version": "1"},
                    "ttlMs": 0,
                    "cacheScope": "private",
                }
            case "tools/list":
                schema = {"type": "object"}
                result = {"tools": [{"name": "headers", "inputSchema": schema}, {"name": "ok", "inputSchema": schema}]}
                result |= {"ttlMs": 0, "cacheScope": "private"} if self.modern else {}
            case _:
                text = json.dumps(request.headers) if request.name == "headers" else "fine"
                return request.result(text)
        return json.dumps(
            {"jsonrpc": "2.0", "id": request.message["id"], "result": {**result, "resultType": "complete"}}
        ).encode()


def event(data: bytes, *lines: bytes) -> bytes:
    """An event of one data line."""
    return b"".join(line + b"\r\n" for line in (*lines, b"data: " + data)) + b"\r\n"


async def main() -> None:
    """Serve until ended."""
    async with Server(modern="modern" in sys.argv, port=int(sys.argv[1])).listening():
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
