"""After much coming, going and dying, the bridge has as many processes, files and bytes as before, and every call on record.

Short by default; `BRIDGEHEAD_SOAK=full` runs the whole of it, some minutes, and prints what it saw.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import psutil
import pytest

from tests.hostile.bench import noted, rough, tree
from tests.spine.bridge import _META, MODERN, Bridge, running_bridge, wait_until

FULL = os.environ.get("BRIDGEHEAD_SOAK") == "full"
ROUNDS, CALLS = (1_000, 10_000) if FULL else (40, 600)
AT_ONCE = 16
MOST_GROWTH = 24 << 20
"""Bytes that caches and the allocator may keep; what leaks a call or a process leaks more than that in the full run."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass(frozen=True)
class Size:
    """What the bridge holds."""

    processes: int
    files: int
    memory: int

    @classmethod
    def of(cls, bridge: Bridge) -> Size:
        process = psutil.Process(bridge.process.pid)
        return cls(len(tree(bridge)), process.num_fds(), process.memory_info().rss)


async def settled(bridge: Bridge, before: Size) -> Size:
    """What it holds once everything that is under way has come to an end."""
    now = Size.of(bridge)
    for _ in range(150):
        if now.processes <= before.processes and now.files <= before.files:
            break
        await anyio.sleep(0.2)
        now = Size.of(bridge)
    return now


def hold_to(before: Size, after: Size, what: str) -> None:
    print(f"{what}: before {before}, after {after}")  # noqa: T201 – the figures are what the full run is for
    assert after.processes == before.processes
    assert after.files <= before.files + 2
    assert after.memory <= before.memory + MOST_GROWTH


async def modern(http: httpx2.AsyncClient, bridge: Bridge, name: str) -> dict[str, Any]:
    """Call a tool in the newer generation; the message that answers."""
    params: dict[str, Any] = {"name": name, "arguments": {}, "_meta": _META}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name}
    return message_of(await http.post(f"{bridge.url}/mcp", json=body, headers=headers))


def message_of(answer: httpx2.Response) -> dict[str, Any]:
    if answer.headers["content-type"].startswith("application/json"):
        return answer.json()
    return json.loads([line[6:] for line in answer.text.splitlines() if line.startswith("data: ")][-1])


async def one_round(http: httpx2.AsyncClient, bridge: Bridge, name: str, *, leaves: bool) -> str:
    """Connect, list, call and go, politely or not; what the call said."""

    async def post(body: dict[str, Any], **headers: str) -> httpx2.Response:
        return await http.post(f"{bridge.url}/mcp", json={"jsonrpc": "2.0", **body}, headers=headers)

    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
    opened = await post({"id": 0, "method": "initialize", "params": hello})
    headers = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    await post({"method": "notifications/initialized"}, **headers)
    tools = message_of(await post({"id": 1, "method": "tools/list"}, **headers))["result"]["tools"]
    assert any(tool["name"] == name for tool in tools)
    called = message_of(await post({"id": 1, "method": "tools/call", "params": {"name": name}}, **headers))
    if leaves:
        await http.delete(f"{bridge.url}/mcp", headers=headers)
    return called["result"]["content"][0]["text"]


def client(bridge: Bridge) -> httpx2.AsyncClient:
    headers = {**bridge.auth, "Accept": "application/json, text/event-stream"}
    return httpx2.AsyncClient(timeout=60, headers=headers, limits=httpx2.Limits(max_connections=AT_ONCE))


async def share_out(jobs: int, job: Any) -> None:
    """Run `job(number)` for each number, so many at once."""
    numbers = iter(range(jobs))

    async def worker() -> None:
        for number in numbers:
            await job(number)

    async with anyio.create_task_group() as workers:
        for _ in range(AT_ONCE):
            workers.start_soon(worker)


def audited(bridge: Bridge) -> int:
    """How many tool calls of ours are on record."""
    with closing(sqlite3.connect(bridge.state_dir / "bridgehead.db")) as database:
        return database.execute("SELECT count(*) FROM audit").fetchone()[0]


@pytest.mark.timeout(3_000)
async def test_connecting_and_going_leaves_nothing_behind(tmp_path: Path) -> None:
    config = rough("shared") + rough("own", more='sharing = "per-caller"\nidle_limit_s = 5')
    with running_bridge(tmp_path, config) as bridge:
        bridge.wait_ready("shared", "own")
        async with client(bridge) as http:

            async def job(number: int) -> None:
                name = "own__read" if number % 4 == 0 else "shared__read"
                assert await one_round(http, bridge, name, leaves=True) == "read"

            await share_out(max(ROUNDS // 10, AT_ONCE), job)
            await anyio.sleep(1)
            before = await settled(bridge, Size(2, sys.maxsize, 0))
            await share_out(ROUNDS, job)
            after = await settled(bridge, before)
        hold_to(before, after, f"{ROUNDS} rounds of connect, list, call and go")
    assert audited(bridge) == ROUNDS + max(ROUNDS // 10, AT_ONCE)


@pytest.mark.timeout(3_000)
async def test_calls_over_dying_backends_are_all_answered_and_on_record(tmp_path: Path) -> None:
    names = [f"b{number}" for number in range(4)]
    rng, outcomes, kills = random.Random(7), Counter[str](), 0  # noqa: S311 – the same kills on every run
    with running_bridge(tmp_path, "".join(rough(name) for name in names)) as bridge:
        bridge.wait_ready(*names)
        async with client(bridge) as http:

            async def job(number: int) -> None:
                kind = ("read", "again", "write")[number % 3]
                message = await modern(http, bridge, f"{names[number % 4]}__{kind}")
                assert "result" in message, message
                answer = message["result"]
                error = answer.get("_meta", {}).get("bridgehead/error")
                assert error is not None or answer["content"][0]["text"] == kind
                outcomes[error["code"] if error else "answered"] += 1
                # Not as fast as it goes, so that there is always a server to kill.
                await anyio.sleep(0.02)

            async def kill_at_random() -> None:
                nonlocal kills
                while True:
                    await anyio.sleep(rng.uniform(0.2, 0.8))
                    victims = psutil.Process(bridge.process.pid).children()
                    with suppress(psutil.NoSuchProcess):
                        if victims:
                            rng.choice(victims).kill()
                            kills += 1

            await share_out(CALLS // 10, job)
            before = Size.of(bridge)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(kill_at_random)
                await share_out(CALLS, job)
                tasks.cancel_scope.cancel()
            with anyio.fail_after(120):
                while any(bridge.backend(name)["state"] != "ready" for name in names):
                    # A call has a server tried that would be left alone for long.
                    for name in names:
                        await modern(http, bridge, f"{name}__read")
                        outcomes["afterwards"] += 1
                    await anyio.sleep(0.2)
            after = await settled(bridge, before)
        print(f"{kills} kills, {dict(outcomes)}")  # noqa: T201 – as above
        hold_to(before, after, f"{CALLS} calls")
    assert kills > 0
    assert set(outcomes) <= {"answered", "backend_unavailable", "backend_busy", "afterwards"}
    assert audited(bridge) == outcomes.total()


@pytest.mark.timeout(600)
def test_a_hundred_backends_come_up_a_few_at_a_time_around_those_that_do_not(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    good = [f"good-{number}" for number in range(92)]
    dead = "".join(f'[backends.dead-{number}]\ncommand = "no-such-program-{number}"\n' for number in range(5))
    hanging = "".join(rough(f"hanging-{number}", "mute", journal) for number in range(3))
    config = dead + hanging + "".join(rough(name, journal=journal) for name in good)
    began = time.monotonic()
    with running_bridge(tmp_path, config) as bridge:
        listening = time.monotonic() - began
        assert bridge.health()["backends"]["total"] == 100
        wait_until(lambda: len({name.partition("__")[0] for name in bridge.tools()} & set(good)) == 92, within_s=60)
        took = time.monotonic() - began
        assert "good-91__read" in bridge.tools()
        # Each is tried again and again, and is starting for a moment each time.
        for number in range(5):
            wait_until(lambda number=number: bridge.backend(f"dead-{number}")["state"] == "down")
        most = _most_starting(journal)
    print(f"listening after {listening:.1f} s, all listed after {took:.1f} s, at most {most} starting")  # noqa: T201
    assert listening < 30
    assert most <= 8


def _most_starting(journal: Path) -> int:
    """The most server processes that had begun and not yet listed at one time."""
    began = {line["pid"]: line["at"] for line in noted(journal) if "began" in line}
    ready = {line["pid"]: line["at"] for line in noted(journal) if "ready" in line}
    first = min(began.values())
    # Those that hang give their place up after a while; until then they count.
    moments = sorted(at for at in began.values() if at < first + 19)
    return max(sum(1 for pid, at in began.items() if at <= moment < ready.get(pid, first + 20)) for moment in moments)
