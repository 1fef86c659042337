"""Calls over plain keep-alive HTTP/1.1, in both generations, every answer checked by its id and its content.

Written by hand, since a general client costs more than what it would measure.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson

from benchmarks.backend import MODERN, block

Generation = Literal["2025-11-25", "2026-07-28"]
LEGACY: Generation = "2025-11-25"
MODERN_GENERATION: Generation = "2026-07-28"
GENERATIONS: tuple[Generation, ...] = (LEGACY, MODERN_GENERATION)
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_CLIENT = {"name": "bench", "version": "1"}
_BUFFER = 64 * 1024 * 1024
_IDS = 10_000_000
"""How far apart the ids of two callers in one session begin."""


class WrongAnswer(Exception):
    """An answer that is not the one to its question."""


@dataclass(frozen=True)
class Question:
    """A request, and whether a result is the answer to it."""

    method: str
    params: dict[str, Any]
    right: Callable[[Any], bool]


Questions = Callable[[int, int], Question]
"""The question that a caller asks at a turn."""


def echo(tool: str) -> Questions:
    """A short text that no other call of the run sends at the same time."""

    def at(caller: int, turn: int) -> Question:
        text = f"caller {caller}, turn {turn} ✓"
        params = {"name": tool, "arguments": {"text": text}}
        return Question("tools/call", params, lambda result: result["content"][0]["text"] == text)

    return at


def blob(tool: str, size: int) -> Questions:
    """A text of so many bytes to be sent back."""
    text = block(size)
    params = {"name": tool, "arguments": {"size": size}}
    return lambda _caller, _turn: Question("tools/call", params, lambda result: result["content"][0]["text"] == text)


def listing(prefix: str, tools: int) -> Questions:
    """The list of tools, in which so many names begin with the prefix."""

    def right(result: Any) -> bool:
        return sum(1 for tool in result["tools"] if tool["name"].startswith(prefix)) == tools

    return lambda _caller, _turn: Question("tools/list", {}, right)


@dataclass(frozen=True)
class Door:
    """Where calls go in, and how."""

    url: str
    generation: Generation
    token: str | None


@dataclass(frozen=True)
class Load:
    """How much is asked.

    Attributes:
        callers: Connections, each with one call in flight.
        seconds: When no more calls begin.
        times: How many calls each caller makes at most.
        shared: Whether all are in one session, where the generation has sessions. If not, callers use the same ids.
    """

    callers: int = 1
    seconds: float = 60.0
    times: int | None = None
    shared: bool = True


@dataclass
class Measured:
    """What came of it: seconds of each call, of all of them together, and of CPU; what the wrong answers were."""

    latencies_s: list[float] = field(default_factory=list[float])
    wrong: list[str] = field(default_factory=list[str])
    wall_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def calls(self) -> int:
        """Answers, the wrong ones included."""
        return len(self.latencies_s) + len(self.wrong)

    def percentile_ms(self, share: float) -> float:
        """The latency that this share of the right answers did not exceed, in milliseconds; 0 if there was none."""
        ordered = sorted(self.latencies_s)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1_000 if ordered else 0.0


class Caller:
    """One connection, used for one call at a time."""

    def __init__(self, door: Door, first_id: int = 0) -> None:
        self._parts = urlsplit(door.url)
        self._legacy = door.generation == LEGACY
        self._token = door.token
        self._ids = itertools.count(first_id)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.session: str | None = None

    async def open(self, session: str | None = None) -> None:
        """Connect, and begin a session where the generation has them, or enter the one that is given."""
        self._streams = await asyncio.open_connection(self._parts.hostname, self._parts.port, limit=_BUFFER)
        self.session = session
        if self._legacy and session is None:
            params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}
            await self.ask(Question("initialize", params, lambda result: result["protocolVersion"] == LEGACY))
            await self._exchange({"jsonrpc": "2.0", "method": "notifications/initialized"}, "")

    async def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            with contextlib.suppress(OSError):
                await self._streams[1].wait_closed()

    async def ask(self, question: Question) -> float:
        """Ask, and return the seconds from sending to having the whole answer; checking it is not among them.

        Raises:
            WrongAnswer: It is an error, or the answer to something else.
        """
        number = next(self._ids)
        params = question.params if self._legacy else {**question.params, "_meta": _META}
        message = {"jsonrpc": "2.0", "id": number, "method": question.method, "params": params}
        began = time.perf_counter()
        content = await self._exchange(message, str(params.get("name", "")))
        took = time.perf_counter() - began
        try:
            answer = orjson.loads(content)
            right = answer["id"] == number and question.right(answer["result"])
        except (ValueError, LookupError, TypeError):
            right = False
        if not right:
            asked = orjson.dumps(question.params).decode()[:200]
            raise WrongAnswer(f"{question.method} {number} {asked} was answered with {content[:300]!r}")
        return took

    async def _exchange(self, message: dict[str, Any], name: str) -> bytes:
        if self._streams is None:
            raise RuntimeError("open the connection first")
        reader, writer = self._streams
        body = orjson.dumps(message)
        writer.write(self._head(str(message["method"]), name, len(body)) + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        self.session = fields.get("mcp-session-id", self.session)
        if "chunked" in fields.get("transfer-encoding", ""):
            content = await _chunks(reader)
        else:
            content = await reader.readexactly(int(fields.get("content-length", "0")))
        if fields.get("content-type", "").startswith("text/event-stream"):
            content = [line[5:] for line in content.splitlines() if line.startswith(b"data:")][-1]
        return content

    def _head(self, method: str, name: str, length: int) -> bytes:
        headers = [
            f"POST {self._parts.path} HTTP/1.1",
            f"Host: {self._parts.netloc}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {length}",
        ]
        if self._token is not None:
            headers.append(f"Authorization: Bearer {self._token}")
        if not self._legacy:
            headers += [f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}"]
            if name:
                headers.append(f"Mcp-Name: {name}")
        elif self.session is not None:
            headers += [f"MCP-Protocol-Version: {LEGACY}", f"Mcp-Session-Id: {self.session}"]
        return "\r\n".join([*headers, "", ""]).encode()


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(parts)


async def run(door: Door, questions: Questions, load: Load, cpu_s: Callable[[], float]) -> Measured:
    """Ask from all callers at once; connecting and each caller's first call are not part of what is measured."""
    measured = Measured()
    callers: list[Caller] = []
    for number in range(load.callers):
        caller = Caller(door, number * _IDS if load.shared and door.generation == LEGACY else 0)
        await caller.open(callers[0].session if load.shared and callers else None)
        callers.append(caller)

    async def ask(number: int, turn: int, latencies_s: list[float]) -> None:
        try:
            latencies_s.append(await callers[number].ask(questions(number, turn)))
        except WrongAnswer as wrong:
            measured.wrong.append(str(wrong))

    async def work(number: int) -> None:
        for turn in itertools.count(1) if load.times is None else range(1, load.times + 1):
            if time.perf_counter() - began > load.seconds:
                return
            await ask(number, turn, measured.latencies_s)

    for number in range(load.callers):
        await ask(number, 0, [])

    cpu_before_s, began = cpu_s(), time.perf_counter()
    await asyncio.gather(*(work(number) for number in range(load.callers)))
    measured.wall_s = time.perf_counter() - began
    measured.cpu_s = cpu_s() - cpu_before_s
    for caller in callers:
        await caller.close()
    return measured
