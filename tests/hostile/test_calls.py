"""Time-outs, progress, and sessions of a caller's own."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from tests.hostile.bench import ROUGH, code, noted, rough, said, tree
from tests.spine.bridge import _META, MODERN, Bridge, running_bridge, wait_until


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journal") / "journal"


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory, journal: Path) -> Iterator[Bridge]:
    config = (
        rough("patient", "threads", more="timeout_s = 1\nmax_timeout_s = 3")
        + rough("strict", "threads", more="timeout_s = 1\nmax_timeout_s = 0")
        + rough("own", more='sharing = "per-caller"\nidle_limit_s = 1.5')
        + "[backends.filled]\ncommand = '${PYTHON}'\ncwd = '${env:FOLDER}'\n"
        + f"args = ['-S', '${{SCRIPT}}', '${{MISSING:-plain}}', {json.dumps(str(journal))}]\n"
        + "env = { ASKED_FOR = 'Bearer ${TOKEN}' }\n"
        + "[backends.lacking]\nurl = 'http://127.0.0.1:9/${NOT_SET_AT_ALL}'\n"
    )
    environ = {"PYTHON": sys.executable, "FOLDER": "/", "SCRIPT": str(ROUGH), "TOKEN": "s3cret"}
    with running_bridge(tmp_path_factory.mktemp("bridge"), config, environ=environ) as running:
        running.wait_ready("patient", "strict", "own", "filled")
        yield running


def test_placeholders_are_filled_in_everywhere_and_a_missing_one_is_one_backends_own_trouble(
    bridge: Bridge, journal: Path
) -> None:
    assert noted(journal)[0]["environment"] == "Bearer s3cret"
    assert bridge.backend("lacking")["state"] == "broken"
    assert "backends.lacking.url" in bridge.backend("lacking")["cause"]
    assert "NOT_SET_AT_ALL" in bridge.backend("lacking")["cause"]
    assert "s3cret" not in bridge.log.read_text() + bridge.get("/health").text


def with_progress(bridge: Bridge, name: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Call, asking for progress; everything that came."""
    meta = {**_META, "progressToken": "p"}
    body: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments, "_meta": meta},
    }
    headers = {
        **bridge.auth,
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }
    answer = httpx2.post(f"{bridge.url}/mcp", json=body, headers=headers, timeout=30)
    if answer.headers["content-type"].startswith("application/json"):
        return [answer.json()]
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def test_progress_gives_a_call_more_time_and_comes_before_its_result(bridge: Bridge) -> None:
    *news, result = with_progress(bridge, "patient__progress", {"steps": 4, "every_s": 0.5})

    assert said(result) == "done"
    assert [one["params"]["progress"] for one in news] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("backend", "steps", "least_s"), [("patient", 20, 2.5), ("strict", 20, 0.5)], ids=["up to the most", "none"]
)
def test_progress_gives_no_more_time_than_is_configured(
    bridge: Bridge, backend: str, steps: int, least_s: float
) -> None:
    began = time.monotonic()
    result = with_progress(bridge, f"{backend}__progress", {"steps": steps, "every_s": 0.5})[-1]

    assert code(result) == "backend_timeout"
    assert least_s < time.monotonic() - began < 9


def session(bridge: Bridge) -> dict[str, str]:
    """The headers of a new session of the older generation."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    headers = {**bridge.auth, "Accept": "application/json, text/event-stream"}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    opened = httpx2.post(f"{bridge.url}/mcp", json=body, headers=headers, timeout=20)
    return {**headers, "Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}


def pid_for(bridge: Bridge, headers: dict[str, str]) -> int:
    """The server process that a session's call goes to."""
    body: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "own__pid", "arguments": {}},
    }
    answer = httpx2.post(f"{bridge.url}/mcp", json=body, headers=headers, timeout=20)
    if answer.headers["content-type"].startswith("application/json"):
        return int(said(answer.json()))
    return int(said(json.loads([line[6:] for line in answer.text.splitlines() if line.startswith("data: ")][-1])))


def test_callers_have_processes_of_their_own_which_end_with_them_or_when_idle(bridge: Bridge) -> None:
    one, other = session(bridge), session(bridge)
    first, second, nobodys = pid_for(bridge, one), pid_for(bridge, other), int(said(bridge.call("own__pid")))

    assert len({first, second, nobodys}) == 3
    assert pid_for(bridge, one) == first
    httpx2.delete(f"{bridge.url}/mcp", headers=one, timeout=20)
    wait_until(lambda: not psutil.pid_exists(first))
    wait_until(lambda: not psutil.pid_exists(second) and not psutil.pid_exists(nobodys), within_s=10)
    assert pid_for(bridge, other) not in (first, second, nobodys)
    # The shared session, over which it is listed, stays.
    assert bridge.backend("own")["restarts"] == 0
    assert len(tree(bridge)) >= 4
