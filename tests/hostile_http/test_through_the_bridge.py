"""Servers over HTTP behind a real bridge: restarts, causes, and whose headers go where."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.spine.bridge import MODERN, Bridge, plain, running_bridge, wait_until

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def serving(port: int, *more: str) -> Generator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-m", "tests.hostile_http.server", str(port), *more]) as process:
        try:
            yield process
        finally:
            process.kill()


def answering(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def headers_seen(bridge: Bridge, tool: str, **headers: str) -> dict[str, str]:
    """The headers with which a call with these headers arrived at the server."""
    sent = {**bridge.auth, "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool, **headers}
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": {}, "_meta": META},
    }
    answer = httpx2.post(f"{bridge.url}/mcp", json=body, headers=sent, timeout=20).json()
    return json.loads(answer["result"]["content"][0]["text"])


def test_a_server_that_is_restarted_is_called_again_at_once_in_a_session_of_its_own(tmp_path: Path) -> None:
    port = free_port()
    with running_bridge(
        tmp_path, f'[backends.b]\nurl = "http://127.0.0.1:{port}/mcp"\n[backends.good]\n{plain()}'
    ) as bridge:
        with serving(port):
            bridge.wait_ready("b", "good")
            assert bridge.call("b__ok")["result"]["content"][0]["text"] == "fine"
        with serving(port):
            wait_until(lambda: answering(port))
            wait_until(lambda: bridge.call("b__ok", {"at": time.time()})["result"].get("isError") is not True)
        wait_until(lambda: "error" in bridge.call("b__ok") or bridge.call("b__ok")["result"].get("isError") is True)
        wait_until(lambda: bridge.backend("b")["state"] == "down")
        assert "nothing listens there" in bridge.backend("b")["cause"]
        assert bridge.call("good__echo", {"text": "on"})["result"]["content"][0]["text"] == "on"


def test_only_what_is_named_goes_upstream_and_never_the_bridges_bearer(tmp_path: Path) -> None:
    modern, legacy = free_port(), free_port()
    config = "".join(
        f'[backends.{name}]\nurl = "http://127.0.0.1:{port}/mcp"\nheaders = {{ X-Own = "owner" }}\n'
        f'forward_headers = ["X-Tenant"]\n'
        for name, port in (("modern", modern), ("legacy", legacy))
    )
    config += f'[backends.closed]\nurl = "http://127.0.0.1:{modern}/mcp"\n'
    with serving(modern, "modern"), serving(legacy), running_bridge(tmp_path, config) as bridge:
        bridge.wait_ready("modern", "legacy", "closed")
        extra = {"X-Own": "caller", "X-Other": "private", "Cookie": "a=b"}
        tenants = [f"tenant-{number}" for number in range(6)] * 2
        for backend in ("modern", "legacy"):
            with ThreadPoolExecutor(6) as threads:
                calls = [
                    threads.submit(headers_seen, bridge, f"{backend}__headers", **extra, **{"X-Tenant": tenant})
                    for tenant in tenants
                ]
                seen = [call.result() for call in calls]
            assert [sent["x-tenant"] for sent in seen] == tenants
            for sent in seen:
                assert sent["x-own"] == "owner"
                assert not {"x-other", "cookie", "authorization"} & sent.keys()
                assert bridge.token not in json.dumps(sent)
            sessions = {(sent["x-tenant"], sent.get("mcp-session-id")) for sent in seen}
            assert len({session for _, session in sessions}) == (6 if backend == "legacy" else 1)
            assert len(sessions) == 6
            assert "x-tenant" not in headers_seen(bridge, f"{backend}__headers", **{"X-Tenant": f"x {bridge.token}"})
            assert "x-tenant" not in headers_seen(bridge, f"{backend}__headers")
        assert "x-tenant" not in headers_seen(bridge, "closed__headers", **{"X-Tenant": "t"})


def test_event_streams_to_clients_are_never_silent_for_long(tmp_path: Path) -> None:
    """What stands between a client and the bridge may hang up on silence; each kind of stream says something in time."""
    with running_bridge(tmp_path, f"[server]\nshutdown_grace_s = 0.1\n[backends.b]\n{plain()}") as bridge:
        bridge.wait_ready("b")
        listen = {"notifications": {"toolsListChanged": True}, "_meta": META}
        hang = {"name": "b__hang", "arguments": {}, "_meta": {**META, "progressToken": 1}}
        modern = {**bridge.auth, "MCP-Protocol-Version": MODERN, "Accept": "application/json, text/event-stream"}
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        begun = httpx2.post(
            f"{bridge.url}/mcp",
            json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info},
            headers=bridge.auth,
        )
        session = {**bridge.auth, "Mcp-Session-Id": begun.headers["mcp-session-id"], "Accept": "text/event-stream"}

        def first_comment(verb: str, headers: dict[str, str], method: str, params: dict[str, Any]) -> bool:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            named = {"Mcp-Method": method, **({"Mcp-Name": params["name"]} if "name" in params else {})}
            sent: Any = {"headers": headers} if verb == "GET" else {"headers": {**headers, **named}, "json": body}
            with httpx2.stream(verb, f"{bridge.url}/mcp", timeout=17, **sent) as response:
                return any(line.startswith(":") for line in response.iter_lines())

        with ThreadPoolExecutor() as threads:
            both = {**session, "Accept": "application/json, text/event-stream"}
            streams = [
                threads.submit(first_comment, "GET", session, "", {}),
                threads.submit(first_comment, "POST", modern, "subscriptions/listen", listen),
                threads.submit(first_comment, "POST", modern, "tools/call", hang),
                threads.submit(first_comment, "POST", both, "tools/call", {"name": "b__hang", "arguments": {}}),
            ]
            assert all(stream.result() for stream in streams)


def test_without_a_server_over_http_nothing_of_it_is_loaded() -> None:
    script = "import sys, bridgehead.app; print(sorted({'aiohttp', 'yarl'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_a_wait_that_a_server_asks_for_is_kept(tmp_path: Path) -> None:
    port = free_port()
    with (
        subprocess.Popen([sys.executable, "-c", OVERLOADED, str(port)]) as server,
        running_bridge(tmp_path, f'[backends.b]\nurl = "http://127.0.0.1:{port}/mcp"\n') as bridge,
    ):
        try:
            wait_until(lambda: "503" in str(bridge.backend("b")["cause"]))
            assert "wants to be left alone for 3 s" in bridge.backend("b")["cause"]
            tries = bridge.backend("b")["restarts"]
            time.sleep(2)
            assert bridge.backend("b")["restarts"] == tries
            wait_until(lambda: bridge.backend("b")["restarts"] > tries, within_s=5)
        finally:
            server.kill()


OVERLOADED = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Overloaded(BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(503)
        self.send_header("Retry-After", "3")
        self.end_headers()

    def log_message(self, *args):
        pass

HTTPServer(("127.0.0.1", int(sys.argv[1])), Overloaded).serve_forever()
"""
