"""Arguments that travel as headers too, lists from ready bytes, and the desktop client that asks before it greets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bridgehead.catalog import BUILTIN, Catalog, Listing, Rules
from bridgehead.core import Era
from bridgehead.surfaces.mcp.lists import Lists
from tests.conformance.fixture_process import FIXTURE
from tests.spine.bridge import BIN, plain, running_bridge


def test_a_tool_that_wants_arguments_as_headers_can_be_called_from_the_command_line(tmp_path: Path) -> None:
    args = json.dumps([str(FIXTURE), "--stdio", "--generation", "modern"])
    config = f"[backends.f]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n"
    with running_bridge(tmp_path, config) as bridge:
        bridge.wait_ready("f")
        tools = bridge.modern("tools/list").json()["result"]["tools"]
        annotated = [tool for tool in tools if "x-mcp-header" in json.dumps(tool["inputSchema"])]
        assert annotated, "the fixture has a tool with x-mcp-header"
        properties: dict[str, Any] = annotated[0]["inputSchema"]["properties"]
        arguments = {name: "zürich" if part["type"] == "string" else 1 for name, part in properties.items()}
        command = [str(BIN / "bridgehead"), "tools", "call", annotated[0]["name"], json.dumps(arguments)]
        called = subprocess.run(
            [*command, "--state-dir", str(bridge.state_dir)], capture_output=True, text=True, timeout=30, check=False
        )
    assert called.returncode == 0, called.stderr


def test_a_list_is_made_once_a_version_of_the_catalog() -> None:
    catalog = Catalog(Rules(order=(BUILTIN, "b"), unprefixed=frozenset(), groups={}, ungrouped=True))
    lists = Lists(lambda: catalog.snapshot.everything)
    catalog.publish("b", Listing(tools=({"name": "one", "inputSchema": {"type": "object"}},)))
    first = lists.result_bytes("tools/list", Era.MODERN)
    assert lists.result_bytes("tools/list", Era.MODERN) is first
    assert b"b__one" in first
    catalog.publish("b", Listing(tools=({"name": "two", "inputSchema": {"type": "object"}},)))
    second = lists.result_bytes("tools/list", Era.MODERN)
    assert b"b__two" in second
    assert b"b__one" not in second


def test_a_client_that_asks_for_the_generation_first_may_still_begin_in_the_older_one(tmp_path: Path) -> None:
    """Claude Code does so over standard input and output."""
    config = tmp_path / "bridgehead.toml"
    config.write_text(f"[backends.b]\n{plain()}")
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    handshake = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "server/discover", "params": {"_meta": meta}},
        {"id": 2, "method": "initialize", "params": handshake},
        {"method": "notifications/initialized"},
    ]
    call = {"method": "tools/call", "params": {"name": "b__echo", "arguments": {"text": "over stdio"}}}
    command = [str(BIN / "bridgehead"), "mcp", "stdio", "--config", str(config), "--state-dir", str(tmp_path / "state")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers: dict[int, dict[str, Any]] = {}

        def send(message: dict[str, Any]) -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()
            while "id" in message and message["id"] not in answers:
                answer = json.loads(process.stdout.readline())
                if "id" in answer:
                    answers[answer["id"]] = answer

        for message in messages:
            send(message)
        number = 3
        send({"id": number, **call})
        while "error" in answers[number]:
            # The backend is not up yet: the bridge answers at once, and its tools come as they come.
            number += 1
            send({"id": number, **call})
        process.stdin.close()
        assert process.wait(20) == 0
    assert "2026-07-28" in answers[1]["result"]["supportedVersions"]
    assert answers[2]["result"]["protocolVersion"] == "2025-11-25"
    assert answers[number]["result"]["content"][0]["text"] == "over stdio"


def first_tools(tmp_path: Path, config: str) -> list[str]:
    """The names in the first list that a client gets which asks at once, and the stop once it closes its end."""
    file = tmp_path / "bridgehead.toml"
    file.write_text(config)
    handshake = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": handshake},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "ping"},
    ]
    command = [str(BIN / "bridgehead"), "mcp", "stdio", "--config", str(file), "--state-dir", str(tmp_path / "state")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        answers: dict[Any, dict[str, Any]] = {}
        while not {1, 2, 3} <= answers.keys():
            answer = json.loads(process.stdout.readline())
            answers[answer.get("id")] = answer
        process.stdin.close()
        assert process.wait(20) == 0
    order = [number for number in answers if number in (2, 3)]
    assert order[0] == 3, "a list that waits holds nothing else up"
    return [tool["name"] for tool in answers[2]["result"]["tools"]]


def test_on_a_first_start_the_first_list_on_standard_input_waits_for_backends_that_nobody_knows(tmp_path: Path) -> None:
    # The sick one comes to nothing soon, and the list does not wait for it longer than that.
    config = f'[backends.b]\n{plain()}[backends.sick]\ncommand = "/no/such/program"\n'

    assert "b__echo" in first_tools(tmp_path, config)
