"""The fast lane and the SDK's way give the same answers, the same records and the same refusals.

Two bridges with the same backends, one of them with the lane switched off, get the same requests, byte for byte.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.spine.bridge import MODERN, SERVERS, Bridge, plain, running_bridge, wait_until

PROTOCOL = "io.modelcontextprotocol/"
LEGACY_VERSION = "2025-11-25"
_OURS = re.compile(r"(call|ask|incident|elicitation|result)_[0-9a-f]{24}")
_HANDLE = re.compile(r'(handle\\": \\")[\w-]+')
_SEALED = re.compile(r'("requestState": )"[^"]+"')


@dataclass(frozen=True)
class Pair:
    """Two bridges, and a session of the older generation with each."""

    fast: Bridge
    slow: Bridge
    sessions: Mapping[str, str]

    def both(self) -> tuple[Bridge, Bridge]:
        return self.fast, self.slow


def config(*, lane: bool) -> str:
    asking = {mode: [str(SERVERS / "asking.py"), mode] for mode in ("legacy", "modern")}
    parts = [f"[server]\nfast_lane = {str(lane).lower()}\n", "[limits]\nidentical_failures = 0\n"]
    parts += [f"[backends.plain]\n{plain()}tool_timeouts_s = {{ hang = 0.3 }}\nresult_bytes = 50000\n"]
    parts += [
        f"[backends.{mode}]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(args)}\n"
        for mode, args in asking.items()
    ]
    parts += ["[backends.gone]\ncommand = 'there-is-no-such-program'\n"]
    return "\n".join(parts)


def opened(bridge: Bridge, capabilities: Mapping[str, Any]) -> str:
    """The id of an initialized session."""
    params = {
        "protocolVersion": LEGACY_VERSION,
        "capabilities": dict(capabilities),
        "clientInfo": {"name": "t", "version": "1"},
    }
    first = post(bridge, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    session = first.headers["mcp-session-id"]
    headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY_VERSION}
    assert post(bridge, {"jsonrpc": "2.0", "method": "notifications/initialized"}, headers).status_code == 202
    return session


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    fast_dir, slow_dir = tmp_path_factory.mktemp("fast"), tmp_path_factory.mktemp("slow")
    with running_bridge(fast_dir, config(lane=True)) as fast, running_bridge(slow_dir, config(lane=False)) as slow:
        for bridge in (fast, slow):
            bridge.wait_ready("plain", "legacy", "modern")
        yield Pair(
            fast, slow, {bridge.url: opened(bridge, {"elicitation": {}, "sampling": {}}) for bridge in (fast, slow)}
        )


def post(bridge: Bridge, body: Any, headers: Mapping[str, str] | None = None) -> httpx2.Response:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    fixed = {**bridge.auth, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    return httpx2.post(f"{bridge.url}/mcp", content=sent, headers={**fixed, **(headers or {})}, timeout=30)


def modern(params: Mapping[str, Any], *, meta: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    envelope = {
        f"{PROTOCOL}protocolVersion": MODERN,
        f"{PROTOCOL}clientInfo": {"name": "t", "version": "1"},
        f"{PROTOCOL}clientCapabilities": {},
        **(meta or {}),
    }
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {**params, "_meta": {key: value for key, value in envelope.items() if value is not None}},
        **more,
    }


def routed(name: str, **more: str) -> dict[str, str]:
    return {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name, **more}


def seen(response: httpx2.Response) -> tuple[int, str, list[Any]]:
    """What a client sees of an answer, without what is different each time."""
    kind = response.headers.get("content-type", "").partition(";")[0]
    if kind == "text/event-stream":
        said = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
    elif response.content:
        said = [response.json()]
    else:
        said = []
    return response.status_code, kind, same(said)


def same(said: list[Any]) -> list[Any]:
    """Messages without what is made anew for each."""
    text = _OURS.sub(r"\1_…", json.dumps(said))
    return json.loads(_SEALED.sub(r'\1"sealed"', _HANDLE.sub(r"\1…", text)))


CALLS: dict[str, dict[str, Any]] = {
    "plain": {"name": "plain__echo", "arguments": {"text": "héllo"}},
    "annotated": {"name": "plain__rich", "arguments": {}},
    "its own failure": {"name": "plain__fail", "arguments": {}},
    "no arguments": {"name": "plain__rich"},
    "null arguments": {"name": "plain__rich", "arguments": None},
    "arguments that are no object": {"name": "plain__echo", "arguments": [1]},
    "missing argument": {"name": "plain__echo", "arguments": {}},
    "argument of the wrong type": {"name": "plain__echo", "arguments": {"text": 5}},
    "argument too many": {"name": "plain__echo", "arguments": {"text": "x", "more": 1}},
    "huge number": {"name": "plain__rich", "arguments": {"n": 2**70}},
    "lone surrogate": {"name": "plain__echo", "arguments": {"text": "\ud800"}},
    "deep arguments": {"name": "plain__rich", "arguments": {"a": json.loads("[" * 80 + "]" * 80)}},
    "no name": {"arguments": {}},
    "name that is no text": {"name": 5, "arguments": {}},
    "unknown tool": {"name": "plain__ecko", "arguments": {}},
    "empty name": {"name": "", "arguments": {}},
    "tool of a backend that is down": {"name": "gone__anything", "arguments": {}},
    "built-in tool": {"name": "guidance", "arguments": {"topic": "groups"}},
    "large result": {"name": "plain__big", "arguments": {"bytes": 60_000}},
    "no answer in time": {"name": "plain__hang", "arguments": {}},
    "result that is a list": {"name": "plain__nonsense", "arguments": {"kind": "list"}},
    "result that is null": {"name": "plain__nonsense", "arguments": {"kind": "null"}},
    "further parameter": {"name": "plain__echo", "arguments": {"text": "x"}, "task": {"ttl": 5}},
    "forged state": {"name": "plain__echo", "arguments": {"text": "x"}, "requestState": "forged"},
    "question to a caller": {"name": "legacy__ask_form", "arguments": {}},
    "question of a modern server": {"name": "modern__ask_form", "arguments": {}},
}
METAS: dict[str, dict[str, Any]] = {
    "nothing more": {},
    "progress wanted": {"progressToken": "mine"},
    "progress by number": {"progressToken": 7},
    "token that is none": {"progressToken": True},
    "token that is null": {"progressToken": None},
    "key of a vendor": {"vendor.example/key": {"kept": True}},
    "deep": {"x": json.loads("[" * 70 + "]" * 70)},
}


@pytest.mark.parametrize("name", CALLS)
def test_a_modern_call_is_answered_alike(pair: Pair, name: str) -> None:
    params = CALLS[name]
    target = params.get("name")
    headers = routed(target if isinstance(target, str) else "")
    fast, slow = (seen(post(bridge, modern(params), headers)) for bridge in pair.both())

    assert fast == slow


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"question to a caller", "question of a modern server"}))
def test_a_call_of_a_session_is_answered_alike(pair: Pair, name: str) -> None:
    fast, slow = (in_session(pair, bridge, CALLS[name]) for bridge in pair.both())

    assert fast == slow


def in_session(pair: Pair, bridge: Bridge, params: Mapping[str, Any], **more: Any) -> tuple[int, str, list[Any]]:
    headers = {"Mcp-Session-Id": pair.sessions[bridge.url], "MCP-Protocol-Version": LEGACY_VERSION}
    body = {"jsonrpc": "2.0", "id": "one", "method": "tools/call", "params": params, **more}
    response = post(bridge, body, headers)
    assert response.headers.get("mcp-session-id", pair.sessions[bridge.url]) == pair.sessions[bridge.url]
    return seen(response)


@pytest.mark.parametrize("name", METAS)
@pytest.mark.parametrize("tool", ["plain__echo", "legacy__progress", "modern__progress", "legacy__logs"])
def test_meta_is_taken_alike(pair: Pair, name: str, tool: str) -> None:
    params: dict[str, Any] = {"name": tool, "arguments": {"text": "x"} if tool == "plain__echo" else {}}
    as_modern = [seen(post(bridge, modern(params, meta=METAS[name]), routed(tool))) for bridge in pair.both()]
    as_legacy = [in_session(pair, bridge, {**params, "_meta": METAS[name]}) for bridge in pair.both()]

    assert as_modern[0] == as_modern[1]
    assert as_legacy[0] == as_legacy[1]


@pytest.mark.parametrize("level", ["debug", "error", "loud", 5])
def test_log_levels_are_taken_alike(pair: Pair, level: Any) -> None:
    params: dict[str, Any] = {"name": "modern__logs", "arguments": {}}
    meta = {f"{PROTOCOL}logLevel": level}
    fast, slow = (seen(post(bridge, modern(params, meta=meta), routed("modern__logs"))) for bridge in pair.both())

    assert fast == slow


@pytest.mark.parametrize(
    "headers",
    [
        {"Mcp-Name": "another"},
        {"Mcp-Name": "=?base64?cGxhaW5fX2VjaG8=?="},
        {"Mcp-Method": "tools/list"},
        {"MCP-Protocol-Version": "2031-01-01"},
        {"MCP-Protocol-Version": "2025-11-25"},
        {"Mcp-Param-Text": "x"},
        {"Accept": "application/json"},
        {"Accept": "text/event-stream"},
        {"Accept": "text/html"},
        {"Accept": "*/*"},
        {"Content-Type": "application/json; charset=utf-8"},
        {"Content-Type": "text/plain"},
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Authorization": "Bearer wrong"},
        {"Mcp-Session-Id": "none"},
    ],
    ids=str,
)
def test_headers_are_judged_alike(pair: Pair, headers: dict[str, str]) -> None:
    body = modern({"name": "plain__echo", "arguments": {"text": "x"}})
    fast, slow = (seen(post(bridge, body, {**routed("plain__echo"), **headers})) for bridge in pair.both())

    assert fast == slow


@pytest.mark.parametrize(
    "meta",
    [
        {f"{PROTOCOL}protocolVersion": None},
        {f"{PROTOCOL}protocolVersion": "2025-11-25"},
        {f"{PROTOCOL}clientInfo": None},
        {f"{PROTOCOL}clientInfo": {"name": 5}},
        {f"{PROTOCOL}clientCapabilities": None},
        {f"{PROTOCOL}clientCapabilities": []},
        {f"{PROTOCOL}clientCapabilities": {"elicitation": {}, "unknown": {"x": 1}}},
    ],
    ids=str,
)
def test_envelopes_are_judged_alike(pair: Pair, meta: dict[str, Any]) -> None:
    body = modern({"name": "plain__echo", "arguments": {"text": "x"}}, meta=meta)
    fast, slow = (seen(post(bridge, body, routed("plain__echo"))) for bridge in pair.both())

    assert fast == slow


@pytest.mark.parametrize("request_id", [0, -5, "", "a", 2**60, 1.5, None, True, [1]])
def test_ids_are_taken_alike(pair: Pair, request_id: Any) -> None:
    params = {"name": "plain__echo", "arguments": {"text": "x"}}
    as_modern = [seen(post(bridge, modern(params, id=request_id), routed("plain__echo"))) for bridge in pair.both()]
    as_legacy = [in_session(pair, bridge, params, id=request_id) for bridge in pair.both()]

    assert as_modern[0] == as_modern[1]
    assert as_legacy[0] == as_legacy[1]


@pytest.mark.parametrize("session", [None, "unknown"])
def test_sessions_are_judged_alike(pair: Pair, session: str | None) -> None:
    headers = {"MCP-Protocol-Version": LEGACY_VERSION, **({"Mcp-Session-Id": session} if session else {})}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALLS["plain"]}
    fast, slow = (seen(post(bridge, body, headers)) for bridge in pair.both())

    assert fast == slow


@pytest.mark.parametrize(
    "answer", [{"result": {"action": "decline"}}, {"error": {"code": -1, "message": "no"}}], ids=str
)
@pytest.mark.parametrize("tool", ["legacy__ask_form", "modern__ask_form", "legacy__sample"])
def test_a_caller_is_asked_alike(pair: Pair, tool: str, answer: dict[str, Any]) -> None:
    fast, slow = (asked(pair, bridge, tool, answer) for bridge in pair.both())

    assert fast == slow


def asked(pair: Pair, bridge: Bridge, tool: str, answer: Mapping[str, Any]) -> list[Any]:
    """All that is said on the stream of a call that asks its caller, who answers."""
    headers = {
        **bridge.auth,
        "Accept": "application/json, text/event-stream",
        "Mcp-Session-Id": pair.sessions[bridge.url],
        "MCP-Protocol-Version": LEGACY_VERSION,
    }
    body: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 9,
        "method": "tools/call",
        "params": {"name": tool, "arguments": {}},
    }
    said: list[Any] = []
    with httpx2.stream("POST", f"{bridge.url}/mcp", json=body, headers=headers, timeout=30) as stream:
        for line in stream.iter_lines():
            if not line.startswith("data: "):
                continue
            message = json.loads(line[6:])
            if "method" in message and "id" in message:
                reply = {"jsonrpc": "2.0", "id": message.pop("id"), **answer}
                assert httpx2.post(f"{bridge.url}/mcp", json=reply, headers=headers).status_code == 202
            said.append(message)
    return same(said)


@pytest.mark.parametrize("request_id", ["to cancel", 77])
def test_a_call_is_cancelled_alike(pair: Pair, request_id: Any) -> None:
    answers = [cancelled(pair, bridge, request_id) for bridge in pair.both()]

    assert answers[0] == answers[1]
    assert answers[0][2][0]["error"]["code"] == -32800


def cancelled(pair: Pair, bridge: Bridge, request_id: Any) -> tuple[int, str, list[Any]]:
    headers = {"Mcp-Session-Id": pair.sessions[bridge.url], "MCP-Protocol-Version": LEGACY_VERSION}
    answers: list[tuple[int, str, list[Any]]] = []
    params = {"name": "plain__slow", "arguments": {"seconds": 1}}
    calling = threading.Thread(target=lambda: answers.append(in_session(pair, bridge, params, id=request_id)))
    calling.start()
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
    time.sleep(0.4)
    while calling.is_alive():
        assert post(bridge, note, headers).status_code == 202
        calling.join(0.1)
    return answers[0]


def test_both_ways_leave_the_same_records(pair: Pair) -> None:
    """Everything above was recorded alike: which call, of what, with which arguments, and what came of it."""
    records: list[list[tuple[Any, ...]]] = []
    for bridge in pair.both():
        bridge.call("plain__echo", {"text": "the last"})
        wait_until(lambda bridge=bridge: "the last" in str(recorded(bridge)[-1:]))
        records.append(recorded(bridge))

    assert len(records[0]) > 1
    assert records[0] == records[1]


def recorded(bridge: Bridge) -> list[tuple[Any, ...]]:
    """What the audit log says of every call, but for its id and its times."""
    columns = "caller, surface, method, target, group_name, backend, arguments, verdict, code"
    with sqlite3.connect(bridge.state_dir / "bridgehead.db") as database:
        return database.execute(f"SELECT {columns} FROM audit ORDER BY id").fetchall()  # noqa: S608 – columns of ours
