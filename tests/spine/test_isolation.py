"""One caller, one call or one server breaks nothing for the others. Each test is a fault that was once there."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from bridgehead.backends.mcp.connection import Agreement, Connection, Link
from bridgehead.backends.mcp.facts import Facts
from bridgehead.backends.mcp.sessions import MOST_CALLERS_OWN, NOTHING_FORWARDED, Sessions
from bridgehead.core import Channel, Era, Silence
from tests.spine.bridge import BIN, MODERN, SERVERS, Bridge, plain, running_bridge, wait_until
from tests.spine.servers.hostile import SECRET

MODES = ["server", "no-list", "deep-tool", "huge-number", "last-words", "mute", "odd-handshake"]
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    config = f"[backends.good]\n{plain()}"
    for mode in MODES:
        args = json.dumps([str(SERVERS / "hostile.py"), mode])
        timeout = "start_timeout_s = 2\n" if mode == "mute" else ""
        config += f"[backends.{mode}]\n{timeout}command = {json.dumps(sys.executable)}\nargs = {args}\n"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config += f'[backends.flaky]\nurl = "http://127.0.0.1:{port}/mcp?key=in-the-address"\n'
    config += '[backends.nobody]\nurl = "http://127.0.0.1:9/mcp?key=in-the-address"\n'
    with subprocess.Popen([sys.executable, str(SERVERS / "flaky_http.py"), str(port)]) as server:
        try:
            with running_bridge(tmp_path_factory.mktemp("bridge"), config) as running:
                running.wait_ready("good", "server", "no-list", "deep-tool", "huge-number", "flaky")
                yield running
        finally:
            server.kill()


def raw(bridge: Bridge, body: str, **headers: str) -> httpx2.Response:
    sent = {"Content-Type": "application/json", "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", **headers}
    return httpx2.post(f"{bridge.url}/mcp", content=body, headers={**bridge.auth, **sent}, timeout=20)


def call_body(name: str, arguments: str = "{}", meta: str = "1") -> str:
    rest = json.dumps(META)[1:-1]
    params = f'{{"name":"{name}","arguments":{arguments},"_meta":{{"a/b":{meta},{rest}}}}}'
    return f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}'


def test_an_error_with_the_code_of_a_lost_connection_is_only_an_error(bridge: Bridge) -> None:
    with ThreadPoolExecutor() as threads:
        slow = threads.submit(bridge.call, "server__slow")
        time.sleep(0.3)
        error = bridge.call("server__server-error")["error"]
        assert (error["code"], error["message"]) == (-32000, "quota exceeded")
        bridge.call("server__ok", {"last": True})
        assert slow.result()["result"]["content"][0]["text"] == "fine"
    assert bridge.backend("server")["restarts"] == 0


@pytest.mark.parametrize(
    ("arguments", "meta"), [("{}", '{"x":' * 300 + "1" + "}" * 300), ("{}", str(10**40)), (f'{{"n":{10**40}}}', "1")]
)
def test_a_request_that_is_hard_to_write_harms_nobody(bridge: Bridge, arguments: str, meta: str) -> None:
    answer = raw(bridge, call_body("server__ok", arguments, meta), **{"Mcp-Name": "server__ok"})
    assert answer.json()["id"] == 7
    assert bridge.backend("server")["restarts"] == 0
    assert bridge.call("server__ok")["result"]["content"][0]["text"] == "fine"


def test_a_definition_that_is_hard_to_write_leaves_the_list_to_the_others(bridge: Bridge) -> None:
    names = bridge.tools()
    assert {"deep-tool__ok", "huge-number__ok", "good__echo"} <= set(names)


def test_a_listing_that_is_none_costs_no_process(bridge: Bridge) -> None:
    assert bridge.backend("no-list")["state"] == "ready"
    children = psutil.Process(bridge.process.pid).children()
    assert len([child for child in children if "no-list" in child.cmdline()]) == 1


def test_what_servers_write_and_addresses_hold_is_not_for_everyone(bridge: Bridge) -> None:
    wait_until(lambda: bridge.backend("last-words")["state"] == "down")
    wait_until(lambda: bridge.backend("nobody")["state"] == "down")
    assert SECRET not in json.dumps(bridge.health())
    assert "in-the-address" not in json.dumps(bridge.health())
    assert "in-the-address" not in bridge.log.read_text()
    assert "exited with code 5" in bridge.backend("last-words")["cause"]


def test_a_handshake_that_fails_is_not_blamed_on_how_the_bridge_ended_the_server(bridge: Bridge) -> None:
    wait_until(lambda: bridge.backend("mute")["cause"] is not None, within_s=20)
    assert "handshake" in bridge.backend("mute")["cause"]
    wait_until(lambda: bridge.backend("odd-handshake")["cause"] is not None)
    assert "exited" not in bridge.backend("odd-handshake")["cause"]


@pytest.mark.parametrize("tool", ["deep", "nan", "odd-error"])
def test_an_odd_answer_is_answered_with_its_id_and_at_once(bridge: Bridge, tool: str) -> None:
    began = time.monotonic()
    answer = raw(bridge, call_body(f"server__{tool}"), **{"Mcp-Name": f"server__{tool}"})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["id"] == 7
    assert time.monotonic() - began < 10
    assert bridge.call("server__ok")["result"]["content"][0]["text"] == "fine"


@pytest.mark.parametrize("path", ["/mcp", "/health"])
def test_an_origin_that_is_no_address_is_kept_out(bridge: Bridge, path: str) -> None:
    response = httpx2.request("POST" if path == "/mcp" else "GET", bridge.url + path, headers={"Origin": "http://["})
    assert response.status_code == 403


@pytest.mark.parametrize("tool", ["drop", "half"])
def test_a_request_that_fails_on_its_way_fails_alone(bridge: Bridge, tool: str) -> None:
    bridge.wait_ready("flaky")
    with ThreadPoolExecutor() as threads:
        slow = threads.submit(bridge.call, "flaky__slow")
        time.sleep(0.5)
        failed = bridge.call(f"flaky__{tool}")
        assert "error" in failed or failed["result"]["isError"]
        assert slow.result()["result"]["content"][0]["text"] == "fine"


def test_a_session_that_its_server_forgot_is_opened_again_whatever_it_says(bridge: Bridge) -> None:
    bridge.wait_ready("flaky")
    bridge.call("flaky__forget")
    bridge.call("flaky__ok", {"turn": 0})
    wait_until(lambda: bridge.call("flaky__ok", {"turn": time.time()})["result"].get("isError") is not True)


def test_headers_without_end_are_hung_up_on(bridge: Bridge) -> None:
    with socket.create_connection(("127.0.0.1", int(bridge.url.rpartition(":")[2])), timeout=20) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            connection.sendall(b"x" * 50_000_000)
    assert bridge.call("good__echo", {"text": "on"})["result"]["content"][0]["text"] == "on"


def test_no_fault_of_others_left_a_stack_in_the_log(bridge: Bridge) -> None:
    """Runs last in this module, over what all the others did."""
    assert "in _write_messages" not in bridge.log.read_text()
    assert "a call broke the gate" not in bridge.log.read_text()


def test_a_call_that_outlives_the_grace_is_answered_all_the_same(tmp_path: Path) -> None:
    config = f"[server]\nshutdown_grace_s = 1\n[backends.b]\n{plain()}"
    with running_bridge(tmp_path, config, expect_exit=True) as bridge, ThreadPoolExecutor() as threads:
        bridge.wait_ready("b")
        call = threads.submit(bridge.call, "b__hang")
        time.sleep(0.5)
        bridge.process.send_signal(signal.SIGTERM)
        assert call.result()["result"]["_meta"]["bridgehead/error"]["code"] == "backend_unavailable"
        assert bridge.process.wait(20) == 0
    assert "Traceback" not in bridge.log.read_text()


@pytest.mark.parametrize("damage", [b"", b"abc", None])
def test_a_damaged_key_is_replaced_or_named(tmp_path: Path, damage: bytes | None) -> None:
    (tmp_path / "state").mkdir()
    key = tmp_path / "state" / "request-state.key"
    if damage is not None:
        key.write_bytes(damage)
        with running_bridge(tmp_path, "") as bridge:
            assert bridge.health()["status"] == "ok"
        assert len(key.read_bytes()) == 32
        return
    key.mkdir()
    command = [str(BIN / "bridgehead"), "serve", "--port", "0", "--state-dir", str(key.parent)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert refused.returncode == 1
    assert "request-state.key" in refused.stderr


class Ready(Connection):
    """A session that is open without anybody behind it."""

    @property
    def is_open(self) -> bool:
        return not self._over.is_set()


class Source:
    """Opens such sessions."""

    facts = Facts(asks_roots=True)

    def __init__(self) -> None:
        self.opened: list[Ready] = []

    async def open(
        self,
        capabilities: Mapping[str, Any],
        *,
        legacy: bool,
        opened_for: Channel | None,
        forwarded: Mapping[str, str] = NOTHING_FORWARDED,
    ) -> Connection:
        @asynccontextmanager
        async def nothing() -> AsyncGenerator[Link]:
            yield Link(None)

        connection = Ready("b", nothing, agreement=Agreement(legacy=legacy), capabilities=capabilities)
        self.opened.append(connection)
        return connection

    async def learn(self, **facts: bool) -> None:
        """Nothing is new."""


class Caller(Silence):
    """A caller of the older generation with roots."""

    era = Era.LEGACY
    capabilities: Mapping[str, Any] = {"roots": {}}
    can_ask = True

    def __init__(self, session: int) -> None:
        self.session = session


async def test_callers_with_roots_hold_a_bounded_number_of_sessions() -> None:
    source = Source()
    sessions = Sessions(source)
    main = Ready("b", source.open, agreement=Agreement(), capabilities={})  # pyright: ignore[reportArgumentType]
    for number in range(MOST_CALLERS_OWN + 10):
        async with sessions.lease(main, Caller(number)):
            pass
    assert len([connection for connection in source.opened if connection.is_open]) == MOST_CALLERS_OWN
    assert source.opened[-1].is_open


def test_a_bridge_in_its_own_configuration_is_refused_as_a_backend(tmp_path: Path) -> None:
    """A client's configuration, taken over as it is, may hold the bridge; it would list its own tools without end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = f'[server]\n[backends.me]\nurl = "http://localhost:{port}/mcp"\n[backends.good]\n{plain()}'
    with running_bridge(tmp_path, config, port=port) as bridge:
        bridge.wait_ready("good")
        assert bridge.backend("me")["state"] == "broken"
        assert "itself" in bridge.backend("me")["cause"]


def test_a_tool_of_a_backend_that_is_still_starting_is_said_to_come(tmp_path: Path) -> None:
    args = json.dumps([str(SERVERS / "hostile.py"), "mute"])
    config = f"[backends.late]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n"
    with running_bridge(tmp_path, config) as bridge:
        assert "still starting" in bridge.call("late__anything")["error"]["message"]
