"""Calls over plain keep-alive HTTP/1.1, in both generations, every answer checked by its id and its text.

Written by hand, since a general client costs more than what it would measure.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson

from benchmarks.backend import MODERN

Generation = Literal["2025-11-25", "2026-07-28"]
LEGACY: Generation = "2025-11-25"
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class WrongAnswer(Exception):
    """An answer that is not the one to its question."""


@dataclass
class Measured:
    """What one workload took: seconds of each call, and of all of them together."""

    latencies_s: list[float] = field(default_factory=list[float])
    wall_s: float = 0.0

    def percentile_ms(self, share: float) -> float:
        """The latency that this share of the calls did not exceed, in milliseconds."""
        ordered = sorted(self.latencies_s)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1_000


@dataclass(frozen=True)
class Door:
    """Where calls go in, and how."""

    url: str
    generation: Generation
    token: str | None


class Caller:
    """One connection, used for one call at a time."""

    def __init__(self, door: Door) -> None:
        self._parts = urlsplit(door.url)
        self._generation = door.generation
        self._token = door.token
        self.session: str | None = None
        self._number = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self, session: str | None = None) -> None:
        """Connect, and begin a session where the generation has them, or share the one that is given."""
        self._streams = await asyncio.open_connection(self._parts.hostname, self._parts.port, limit=64 * 1024 * 1024)
        self.session = session
        if self._generation == LEGACY and session is None:
            info = {"name": "bench", "version": "1"}
            await self.ask("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info})
            await self._exchange(
                {"jsonrpc": "2.0", "method": "notifications/initialized"}, "notifications/initialized", ""
            )

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request and return its result.

        Raises:
            WrongAnswer: It is an error, or the answer to something else.
        """
        self._number += 1
        number = f"{id(self)}-{self._number}"
        if self._generation != LEGACY:
            params = {**params, "_meta": _META}
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        answer = orjson.loads(await self._exchange(message, method, str(params.get("name", ""))))
        if answer.get("id") != number or "result" not in answer:
            raise WrongAnswer(f"{method}: {str(answer)[:300]}")
        return answer["result"]

    async def echo(self, tool: str, text: str) -> None:
        """Call the echo tool and check what comes back."""
        result = await self.ask("tools/call", {"name": tool, "arguments": {"text": text}})
        if result["content"][0]["text"] != text:
            raise WrongAnswer(f"{text!r} came back as {str(result)[:300]}")

    async def _exchange(self, message: dict[str, Any], method: str, name: str) -> bytes:
        if self._streams is None:
            raise RuntimeError("open the connection first")
        reader, writer = self._streams
        body = orjson.dumps(message)
        headers = [
            f"POST {self._parts.path} HTTP/1.1",
            f"Host: {self._parts.netloc}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(body)}",
        ]
        if self._token is not None:
            headers.append(f"Authorization: Bearer {self._token}")
        if self._generation != LEGACY:
            headers += [f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}"]
            if name:
                headers.append(f"Mcp-Name: {name}")
        elif self.session is not None:
            headers += [f"MCP-Protocol-Version: {LEGACY}", f"Mcp-Session-Id: {self.session}"]
        writer.write("\r\n".join([*headers, "", ""]).encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        if "mcp-session-id" in fields:
            self.session = fields["mcp-session-id"]
        if "chunked" in fields.get("transfer-encoding", ""):
            content = await self._chunks(reader)
        else:
            content = await reader.readexactly(int(fields.get("content-length", "0")))
        if fields.get("content-type", "").startswith("text/event-stream"):
            content = [line[5:] for line in content.splitlines() if line.startswith(b"data:")][-1]
        return content

    async def _chunks(self, reader: asyncio.StreamReader) -> bytes:
        content = b""
        while size := int(await reader.readline(), 16):
            content += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        return content


async def run_echo(door: Door, tool: str, *, callers: int, seconds: float, most: int) -> Measured:
    """Echo from `callers` connections at once, in one session, for this many seconds or calls."""
    measured = Measured()
    first = Caller(door)
    await first.open()
    everyone = [first]
    for _ in range(callers - 1):
        caller = Caller(door)
        await caller.open(first.session)
        everyone.append(caller)
    for caller in everyone:
        await caller.echo(tool, "warm")
    began = time.perf_counter()

    async def work(caller: Caller, number: int) -> None:
        turn = 0
        while time.perf_counter() - began < seconds and len(measured.latencies_s) < most:
            turn += 1
            start = time.perf_counter()
            await caller.echo(tool, f"text {number}-{turn} ✓")
            measured.latencies_s.append(time.perf_counter() - start)

    await asyncio.gather(*(work(caller, number) for number, caller in enumerate(everyone)))
    measured.wall_s = time.perf_counter() - began
    for caller in everyone:
        caller.close()
    return measured


async def run_one_by_one(door: Door, method: str, params: dict[str, Any], *, times: int) -> tuple[Measured, Any]:
    """Send the same request again and again on one connection; what it took, and the last result."""
    measured = Measured()
    caller = Caller(door)
    await caller.open()
    result = await caller.ask(method, params)
    began = time.perf_counter()
    for _ in range(times):
        start = time.perf_counter()
        result = await caller.ask(method, params)
        measured.latencies_s.append(time.perf_counter() - start)
    measured.wall_s = time.perf_counter() - began
    caller.close()
    return measured, result
