"""What the full surface gives and refuses, over plain HTTP."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.spine.bridge import MODERN, Bridge, plain, running_bridge, wait_until
from tests.spine.servers import rich

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journal") / "journal"


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory, journal: Path) -> Iterator[Bridge]:
    config = (
        f"[backends.one]\ntimeout_s = 5\n{plain('plain', journal)}\n[backends.two]\n{plain()}\n"
        "[groups.first]\nmembers = [{ backend = 'one' }]\n"
        "[groups.dark]\nenabled = false\nmembers = [{ backend = 'two', names = ['rich'] }]\n"
    )
    with running_bridge(tmp_path_factory.mktemp("bridge"), config) as running:
        running.wait_ready("one", "two")
        yield running


def post(bridge: Bridge, body: bytes | str, **headers: str) -> httpx2.Response:
    return httpx2.post(f"{bridge.url}/mcp", content=body, headers={**bridge.auth, **JSON, **headers}, timeout=20)


def test_results_come_through_unchanged(bridge: Bridge) -> None:
    result = bridge.call("one__rich")["result"]
    meta = result.pop("_meta")
    assert meta.pop("io.modelcontextprotocol/serverInfo")["name"] == "bridgehead"
    assert result.pop("resultType") == "complete"
    assert {**result, "_meta": meta} == rich()


def test_a_group_confines_calls_and_not_only_lists(bridge: Bridge) -> None:
    assert "two__echo" in bridge.tools()
    assert "two__echo" not in bridge.tools("/first")
    assert bridge.call("two__echo", {"text": "x"}, group="/first")["error"]["code"] == -32602
    assert bridge.call("one__echo", {"text": "x"}, group="/first")["result"]["content"][0]["text"] == "x"


def test_a_tool_that_is_hidden_and_one_that_does_not_exist_look_alike(bridge: Bridge) -> None:
    hidden, absent = bridge.call("two__rich")["error"], bridge.call("two__rixh")["error"]
    assert hidden["code"] == absent["code"]
    assert hidden["data"]["code"] == absent["data"]["code"] == "unknown_tool"
    assert "two__rich" not in json.dumps(absent)


def test_a_group_that_is_off_or_unknown_is_not_there(bridge: Bridge) -> None:
    for group in ("/dark", "/nonesuch"):
        response = bridge.modern("tools/list", group=group)
        assert response.status_code == 404
        assert response.json()["error"]["data"]["code"] == "unknown_group"


def test_bad_arguments_are_told_where_and_never_reach_the_server(bridge: Bridge, journal: Path) -> None:
    before = journal.read_text().count("tools/call")
    result = bridge.call("one__echo", {"text": 5, "more": 1})["result"]
    assert result["isError"] is True
    assert "text" in result["content"][0]["text"]
    assert result["_meta"]["bridgehead/error"]["code"] == "invalid_arguments"
    assert journal.read_text().count("tools/call") == before


def test_the_third_identical_failure_is_stopped(bridge: Bridge, journal: Path) -> None:
    for _ in range(2):
        assert bridge.call("one__fail", {"loop": 1})["result"]["content"][0]["text"] == "it did not work"
    before = journal.read_text().count('"fail"')
    result = bridge.call("one__fail", {"loop": 1})["result"]
    assert result["_meta"]["bridgehead/error"]["code"] == "loop_stopped"
    assert journal.read_text().count('"fail"') == before


def test_a_result_over_the_cap_comes_in_parts_that_can_be_read_on(bridge: Bridge) -> None:
    size = 9_000_000
    result = bridge.call("one__big", {"bytes": size})["result"]
    text = "".join(block["text"] for block in result["content"])
    assert len(text) < 200_000
    assert str(size) in text.replace(",", "").replace("_", "")
    found = re.search(r'"handle": "([^"]+)"', text)
    assert found is not None
    handle = found[1]
    more = bridge.call("read_result", {"handle": handle, "offset": size - 10, "length": 100})["result"]
    assert "xxxxxxxxxx" in more["content"][0]["text"]


def test_a_cancelled_call_is_cancelled_at_its_server_under_the_servers_own_id(bridge: Bridge, journal: Path) -> None:
    with pytest.raises(httpx2.ReadTimeout):
        bridge.modern("tools/call", {"name": "one__hang", "arguments": {}}, timeout_s=0.5)
    left = time.time()
    wait_until(lambda: "notifications/cancelled" in journal.read_text(), within_s=5)
    messages = [json.loads(line) for line in journal.read_text().splitlines()]
    call = next(message for message in messages if message.get("params", {}).get("name") == "hang")
    cancel = next(message for message in messages if message.get("method") == "notifications/cancelled")
    assert cancel["params"]["requestId"] == call["id"]
    assert cancel["at"] - left < 0.2


def test_a_call_that_takes_too_long_ends_with_what_to_do(bridge: Bridge) -> None:
    result = bridge.call("one__hang")["result"]
    assert result["_meta"]["bridgehead/error"]["code"] == "backend_timeout"
    assert "timeout_s" in result["content"][0]["text"]


def test_a_tool_that_appears_and_announces_itself_is_listed(bridge: Bridge) -> None:
    bridge.call("two__grow")
    wait_until(lambda: any(name.startswith("two__grown") for name in bridge.tools()), within_s=5)


@pytest.mark.parametrize(
    ("body", "status", "code", "request_id"),
    [
        ("{", 400, -32700, None),
        ("", 400, -32700, None),
        ("[]", 400, -32600, None),
        ('"x"', 400, -32600, None),
        ('{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600, None),
        ('{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600, None),
        ('{"jsonrpc":"2.0","id":true,"method":"ping"}', 400, -32600, None),
        ('{"jsonrpc":"2.0","id":7}', 400, -32600, 7),
        ('{"id":7,"method":"ping"}', 400, -32600, 7),
        ('{"jsonrpc":"2.0","id":7,"method":3}', 400, -32600, 7),
        ('{"jsonrpc":"2.0","id":"a","method":"tools/call","params":[]}', 400, -32602, "a"),
        ('{"jsonrpc":"2.0","id":7,"method":"tools/call"}', 400, -32602, 7),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), 400, -32700, None),
        ('{"a":' * 2000 + "1" + "}" * 2000, 400, None, None),
    ],
)
def test_malformed_input_gets_a_json_rpc_error_with_the_right_id(
    bridge: Bridge, body: str, status: int, code: int | None, request_id: object
) -> None:
    response = post(bridge, body, **{"MCP-Protocol-Version": MODERN})
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    answer = response.json()
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == request_id
    assert code is None or answer["error"]["code"] == code
    assert "Traceback" not in response.text


def test_a_body_over_the_limit_is_refused_and_other_requests_go_on(bridge: Bridge) -> None:
    response = post(bridge, b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"' + b"x" * 20_000_000 + b'"}}')
    assert response.status_code == 413
    assert response.json()["error"]["code"] == -32600
    assert bridge.call("one__echo", {"text": "still here"})["result"]["content"][0]["text"] == "still here"


@pytest.mark.parametrize("accept", ["text/html", "text/event-stream", "image/*, text/plain"])
def test_a_client_that_takes_no_json_is_told_so_under_its_id(bridge: Bridge, accept: str) -> None:
    body = '{"jsonrpc":"2.0","id":"mine","method":"tools/list","params":{}}'
    response = post(bridge, body, **{"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list", "Accept": accept})

    assert response.status_code == 406
    assert response.json()["id"] == "mine"
    assert "application/json" in response.json()["error"]["message"]


def test_a_wrong_content_type_is_refused(bridge: Bridge) -> None:
    response = post(bridge, "{}", **{"Content-Type": "text/plain"})
    assert response.status_code == 415
    assert response.json()["error"]["code"] == -32600


def test_headers_that_contradict_the_body_are_refused(bridge: Bridge) -> None:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 9,
        "method": "tools/call",
        "params": {"name": "one__echo", "_meta": meta},
    }
    for wrong in ({"Mcp-Method": "tools/list"}, {"Mcp-Method": "tools/call", "Mcp-Name": "two__echo"}):
        response = post(bridge, json.dumps(body), **{"MCP-Protocol-Version": MODERN, **wrong})
        assert response.status_code == 400
        assert response.json()["error"]["code"] == -32020
        assert response.json()["id"] == 9


def test_notifications_are_accepted_without_a_body(bridge: Bridge) -> None:
    response = post(bridge, '{"jsonrpc":"2.0","method":"notifications/x"}', **{"MCP-Protocol-Version": MODERN})
    assert response.status_code == 202
    assert response.content == b""


def test_nobody_comes_in_without_the_token(bridge: Bridge) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}):
        response = httpx2.post(f"{bridge.url}/mcp", content="{}", headers={**JSON, **headers})
        assert response.status_code == 401
        assert "bearer" in response.headers["www-authenticate"].lower()
        assert httpx2.get(f"{bridge.url}/groups", headers=headers).status_code == 401
    assert httpx2.get(f"{bridge.url}/health").status_code == 200


def test_foreign_hosts_and_origins_are_kept_out(bridge: Bridge) -> None:
    assert post(bridge, "{}", Host="evil.example").status_code == 421
    assert post(bridge, "{}", Origin="https://evil.example").status_code == 403
    assert bridge.get("/health", Host="evil.example").status_code == 421


def test_a_get_without_a_session_is_405_and_an_unknown_session_404(bridge: Bridge) -> None:
    assert bridge.get("/mcp", Accept="text/event-stream").status_code == 405
    gone = post(bridge, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', **{"Mcp-Session-Id": "nonesuch"})
    assert gone.status_code == 404
    assert gone.json()["error"]


def test_other_paths_answer_in_json(bridge: Bridge) -> None:
    response = bridge.get("/nonesuch")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "not_found"


def legacy_session(bridge: Bridge, version: str = "2025-11-25") -> dict[str, str]:
    """The headers of a session of the older generation."""
    info = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    opened = post(bridge, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info}))
    headers = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": version}
    assert opened.json()["result"]["protocolVersion"] == version
    assert post(bridge, '{"jsonrpc":"2.0","method":"notifications/initialized"}', **headers).status_code == 202
    return headers


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_older_version_is_spoken(bridge: Bridge, version: str) -> None:
    headers = legacy_session(bridge, version)
    params = {"name": "one__echo", "arguments": {"text": version}}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    assert post(bridge, json.dumps(body), **headers).json()["result"]["content"][0]["text"] == version


def test_two_requests_under_one_id_at_once_get_each_their_own_answer(bridge: Bridge) -> None:
    """Clients do that: one pools a session across its conversations and numbers each from one."""
    headers = legacy_session(bridge)

    def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        return post(bridge, json.dumps(body), **headers).json()

    with ThreadPoolExecutor() as threads:
        slow = threads.submit(call, "two__slow", {"seconds": 1})
        time.sleep(0.2)
        quick = threads.submit(call, "one__echo", {"text": "quick"})
        assert quick.result()["result"]["content"][0]["text"] == "quick"
        assert slow.result()["result"]["content"][0]["text"] == "at last"
        assert quick.result()["id"] == slow.result()["id"] == 1


def test_a_session_cancels_by_the_id_it_knows(bridge: Bridge, journal: Path) -> None:
    headers = legacy_session(bridge)
    body: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 77,
        "method": "tools/call",
        "params": {"name": "one__hang", "arguments": {}},
    }
    before = journal.read_text().count("notifications/cancelled")
    with ThreadPoolExecutor() as threads:
        hanging = threads.submit(post, bridge, json.dumps(body), **headers)
        time.sleep(0.3)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}
        assert post(bridge, json.dumps(cancel), **headers).status_code == 202
        wait_until(lambda: journal.read_text().count("notifications/cancelled") > before, within_s=3)
        assert hanging.result().json()["error"]


def test_a_session_of_one_url_is_not_one_of_another(bridge: Bridge) -> None:
    headers = legacy_session(bridge)
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    sent = {**bridge.auth, **JSON, **headers}
    assert httpx2.post(f"{bridge.url}/mcp", content=body, headers=sent).status_code == 200
    assert httpx2.post(f"{bridge.url}/mcp/first", content=body, headers=sent).status_code == 404


def test_a_session_that_was_ended_is_gone(bridge: Bridge) -> None:
    headers = legacy_session(bridge)
    sent = {**bridge.auth, **JSON, **headers}
    assert httpx2.delete(f"{bridge.url}/mcp", headers=sent).status_code == 200
    assert post(bridge, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', **headers).status_code == 404


@pytest.mark.parametrize(("headers", "status"), [({}, 400), ({"Mcp-Session-Id": "over"}, 404)])
def test_a_request_of_no_session_is_refused_under_its_own_id(
    bridge: Bridge, headers: dict[str, str], status: int
) -> None:
    refused = post(bridge, '{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{}}', **headers)
    assert refused.status_code == status
    assert refused.json()["id"] == "mine"
    assert "initialize" in refused.json()["error"]["message"]


@pytest.mark.parametrize("kind", ["list", "string", "null"])
def test_a_result_that_is_none_is_the_servers_mistake_and_nobody_elses(bridge: Bridge, kind: str) -> None:
    result = bridge.call("two__nonsense", {"kind": kind})["result"]
    assert result["_meta"]["bridgehead/error"]["code"] == "backend_faulty"
    assert "Traceback" not in bridge.log.read_text()
