"""Servers and clients that do ordinary things at the wrong moment."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.spine.bridge import MODERN, Bridge, running_bridge, wait_until

LATE = str(Path(__file__).parent / "servers" / "late.py")
LEGACY = "2025-11-25"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bridge")


@pytest.fixture(scope="module")
def bridge(folder: Path) -> Iterator[Bridge]:
    config = "[limits]\nidentical_failures = 0\n" + "".join(
        f"[backends.{name}]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps([LATE, str(folder / name)])}\n"
        for name in ("one", "other")
    )
    with running_bridge(folder, config) as running:
        running.wait_ready("one", "other")
        yield running


class Session:
    """A session of the older generation that can be asked."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self.headers = {**bridge.auth, "Accept": "application/json, text/event-stream"}
        client = {"protocolVersion": LEGACY, "clientInfo": {"name": "t", "version": "1"}}
        opened = self.post("initialize", {**client, "capabilities": {"elicitation": {}}}, request_id=0)
        self.headers |= {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": LEGACY}
        self.post("notifications/initialized", {})

    def post(self, method: str, params: Mapping[str, Any], request_id: Any = None) -> httpx2.Response:
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": dict(params)}
        if request_id is not None:
            body["id"] = request_id
        return httpx2.post(f"{self._bridge.url}/mcp", json=body, headers=self.headers, timeout=60)

    def call(self, request_id: Any, name: str) -> list[dict[str, Any]]:
        """All that is said on the answer's stream."""
        response = self.post("tools/call", {"name": name, "arguments": {}}, request_id)
        if response.headers["content-type"] == "application/json":
            return [response.json()]
        return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]

    def behind(self, request_id: Any, name: str, said: list[dict[str, Any]]) -> threading.Thread:
        """Call, in a thread."""
        thread = threading.Thread(target=lambda: said.extend(self.call(request_id, name)))
        thread.start()
        return thread

    def cancel(self, request_id: Any) -> None:
        """Say that nobody waits for that call any more."""
        self.post("notifications/cancelled", {"requestId": request_id})


def test_the_question_of_a_call_that_was_given_up_is_put_to_nobody_else(bridge: Bridge) -> None:
    alice, bob = Session(bridge), Session(bridge)
    said_to_alice, said_to_bob = list[dict[str, Any]](), list[dict[str, Any]]()
    calling = alice.behind(1, "one__wait_then_ask", said_to_alice)
    time.sleep(0.5)
    alice.cancel(1)
    waiting = bob.behind(2, "one__wait_then_ask", said_to_bob)
    calling.join(10)
    time.sleep(1.0)
    bob.cancel(2)
    waiting.join(10)

    assert "of another" not in json.dumps(said_to_bob)
    assert said_to_alice[-1]["error"]["code"] == -32800


def test_every_call_of_a_session_that_ends_is_answered_though_they_share_an_id(bridge: Bridge) -> None:
    session = Session(bridge)
    said = list[dict[str, Any]]()
    calls = [session.behind(1, "one__wait_then_ask", said) for _ in range(3)]
    time.sleep(1.5)
    httpx2.delete(f"{bridge.url}/mcp", headers=session.headers, timeout=10)
    for call in calls:
        call.join(10)

    assert not any(call.is_alive() for call in calls)
    assert len(said) == 3


def test_nonsense_beside_an_answer_is_the_nonsense_of_one_line(bridge: Bridge) -> None:
    began = time.monotonic()

    assert bridge.call("one__pair")["result"]["content"][0]["text"] == "beside nonsense"
    assert time.monotonic() - began < 10


def test_an_answer_that_cannot_be_read_fails_its_call_at_once(bridge: Bridge) -> None:
    began = time.monotonic()

    assert "no valid JSON" in json.dumps(bridge.call("one__unreadable"))
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("number", [2**64, 2**70, -(2**80)])
def test_whole_numbers_of_any_size_arrive_as_they_were_sent(bridge: Bridge, folder: Path, number: int) -> None:
    bridge.call("one__take", {"n": number})
    Session(bridge).post("tools/call", {"name": "one__take", "arguments": {"n": number}}, 1)

    received = [json.loads(line) for line in (folder / "one").read_text().splitlines()]
    calls = [each["params"]["arguments"] for each in received if each.get("method") == "tools/call"]
    assert calls[-2:] == [{"n": number}] * 2


def test_a_log_level_that_is_no_text_is_refused(bridge: Bridge) -> None:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": [],
    }
    routing = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "one__take"}
    headers = {**bridge.auth, "Accept": "application/json, text/event-stream", **routing}
    params: dict[str, Any] = {"name": "one__take", "arguments": {}, "_meta": meta}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    assert httpx2.post(f"{bridge.url}/mcp", json=body, headers=headers, timeout=10).status_code == 400


def test_a_server_that_dies_of_a_signal_without_a_name_is_one_server(bridge: Bridge) -> None:
    answer = bridge.call("one__signal")

    assert "signal 40" in json.dumps(answer)
    assert bridge.call("other__take")["result"]["content"][0]["text"] == "taken"
    wait_until(lambda: bridge.backend("one")["state"] == "ready")
