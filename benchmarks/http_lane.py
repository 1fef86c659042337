"""What one call to a server over HTTP costs the bridge's transport, beside a plain aiohttp session.

`python -m benchmarks.http_lane [--calls N]`: CPU milliseconds of this process a call at 1, 8 and 32 in flight. The server is a
process of its own. Each way is measured twice, in turn, and the lower figure shown, so that a neighbour's load falls on both.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp
import orjson
import uvloop

from benchmarks.backend import MODERN
from benchmarks.processes import Program, backend_command, free_port
from bridgehead.backends.mcp.http import HttpTarget, SharedPool, open_http
from bridgehead.backends.mcp.sdk import RelaySession
from bridgehead.config import HttpLaunch

IN_FLIGHT = (1, 8, 32)
_ROUNDS = 2
_PARAMS = orjson.dumps(
    {
        "name": "echo",
        "arguments": {"text": "hello"},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }
)
_HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": MODERN,
    "Mcp-Method": "tools/call",
    "Mcp-Name": "echo",
}
Way = Callable[[], Awaitable[bytes | None]]


class Nobody:
    """Hears nothing and is asked nothing."""

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Nothing is asked."""
        del method, params
        return {}

    def heard(self, method: str, params: Mapping[str, Any]) -> bool:
        """Nothing is said."""
        del method, params
        return True

    async def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Nothing is announced."""
        del method, params


async def measured(way: Way, in_flight: int, calls: int) -> float:
    """CPU milliseconds a call."""
    left = calls

    async def work() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            answer = await way()
            assert answer is not None
            assert b"hello" in answer

    began = time.process_time()
    await asyncio.gather(*(work() for _ in range(in_flight)))
    return (time.process_time() - began) / calls * 1_000


async def compare(url: str, calls: int) -> None:
    """Print the table."""
    pool = SharedPool()
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), headers=_HEADERS) as plain,
        open_http(HttpTarget("bench", HttpLaunch(url), 2**26, {}), pool) as http,
        RelaySession(http.streams, Nobody(), capabilities={}, timeout_s=30) as session,
    ):
        await session.negotiate()
        lane = http.lane
        assert lane is not None
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % _PARAMS

        async def by_lane() -> bytes | None:
            return await lane.request("tools/call", _PARAMS, headers=(("Mcp-Name", "echo"),), timeout_s=30)

        async def by_aiohttp() -> bytes:
            async with plain.post(url, data=body) as response:
                return await response.read()

        ways: dict[str, Way] = {"lane": by_lane, "aiohttp": by_aiohttp}
        lowest: dict[tuple[str, int], float] = {}
        for _ in range(_ROUNDS):
            for in_flight in IN_FLIGHT:
                for name, way in ways.items():
                    cost = await measured(way, in_flight, calls)
                    lowest[name, in_flight] = min(cost, lowest.get((name, in_flight), cost))
        print(f"{'in flight':10}", *(f"{in_flight:>7}" for in_flight in IN_FLIGHT))
        for name in ways:
            print(f"{name:10}", *(f"{lowest[name, in_flight]:7.3f}" for in_flight in IN_FLIGHT))
    await pool.shut()


async def main(calls: int) -> None:
    """Start the server and measure."""
    port = free_port()
    program = Program(backend_command(2, port), {})
    try:
        for _ in range(1_000):
            program.check()
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.01)
            else:
                writer.close()
                break
        await compare(f"http://127.0.0.1:{port}/mcp", calls)
    finally:
        program.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=3_000)
    uvloop.run(main(parser.parse_args(sys.argv[1:]).calls))
