"""Real MCP clients in front of the bridge, each with a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client

from tests.real.servers import BIN, node_path, node_program
from tests.spine.bridge import Bridge, plain, running_bridge


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    with running_bridge(tmp_path_factory.mktemp("clients"), f"[backends.b]\n{plain()}") as running:
        running.wait_ready("b")
        yield running


def alone(home: Path) -> list[str]:
    """A command line for a bridge of the client's own."""
    config = home / "bridgehead.toml"
    config.write_text(f"[backends.b]\n{plain()}")
    return [str(BIN / "bridgehead"), "mcp", "stdio", "--config", str(config), "--state-dir", str(home / "state")]


def started(command: list[str], mode: Any) -> Client:
    """The SDK's client, which starts that bridge."""
    return Client(StdioServerParameters(command=command[0], args=command[1:]), mode=mode, cache=None)


async def wait_listed(client: Client, tool: str) -> None:
    """Return once the tool is listed: a bridge answers before its backends are up."""
    with anyio.fail_after(30):
        while tool not in {each.name for each in (await client.list_tools()).tools}:
            pass


def run(home: Path, *command: str, environ: Mapping[str, str] | None = None) -> str:
    """Run a command line with that home; what it printed."""
    base = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "TMPDIR")}
    done = subprocess.run(
        command,
        cwd=home,
        env={**base, "HOME": str(home), "PATH": node_path(), "NO_COLOR": "1", **(environ or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_claude_code_connects_over_http(bridge: Bridge, tmp_path: Path) -> None:
    claude, url = node_program("claude"), f"{bridge.url}/mcp"
    header = f"Authorization: Bearer {bridge.token}"
    run(tmp_path, claude, "mcp", "add", "--transport", "http", "bridgehead", url, "--header", header)
    listed = run(tmp_path, claude, "mcp", "list")
    assert "bridgehead" in listed
    assert "Connected" in listed


def test_claude_code_is_told_that_its_token_is_wrong(bridge: Bridge, tmp_path: Path) -> None:
    claude, header = node_program("claude"), "Authorization: Bearer wrong"
    run(tmp_path, claude, "mcp", "add", "--transport", "http", "bridgehead", f"{bridge.url}/mcp", "--header", header)
    listed = run(tmp_path, claude, "mcp", "list")
    assert "401" in listed
    assert "Connected" not in listed


def test_claude_code_starts_the_bridge_by_itself(tmp_path: Path) -> None:
    claude = node_program("claude")
    run(tmp_path, claude, "mcp", "add", "bridgehead", "--", *alone(tmp_path))
    assert "Connected" in run(tmp_path, claude, "mcp", "list")


def test_codex_takes_the_bridge_and_lists_it(bridge: Bridge, tmp_path: Path) -> None:
    codex, environ = node_program("codex"), {"CODEX_HOME": str(tmp_path), "BRIDGEHEAD_TOKEN": bridge.token}
    url = f"{bridge.url}/mcp"
    add = ["mcp", "add", "bridgehead", "--url", url, "--bearer-token-env-var", "BRIDGEHEAD_TOKEN"]
    run(tmp_path, codex, *add, environ=environ)
    shown = run(tmp_path, codex, "mcp", "list", environ=environ)
    assert url in shown
    assert bridge.token not in shown
    listed = json.loads(run(tmp_path, codex, "mcp", "list", "--json", environ=environ))
    assert [(server["name"], server["transport"]["url"]) for server in listed] == [("bridgehead", url)]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_lists_and_calls(bridge: Bridge, tmp_path: Path, era: str) -> None:
    header = f"Authorization: Bearer {bridge.token}"
    reach = [f"{bridge.url}/mcp", "--transport", "http", "--header", header]
    lists_and_calls(tmp_path, era, before=reach)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_starts_the_bridge_by_itself(tmp_path: Path, era: str) -> None:
    """In a state directory that has been used: the Inspector asks once, and the first bridge of all lists no backend yet."""
    bridge = alone(tmp_path)
    async with started(bridge, "auto") as client:
        await wait_listed(client, "b__echo")
    await anyio.to_thread.run_sync(lambda: lists_and_calls(tmp_path, era, after=["--", *bridge]))


def lists_and_calls(home: Path, era: str, *, before: Sequence[str] = (), after: Sequence[str] = ()) -> None:
    """Have the Inspector list the tools and call one."""
    inspector = [node_program("mcp-inspector"), "--cli", *before, "--protocol-era", era, "--format", "json", "--quiet"]
    listed = json.loads(run(home, *inspector, "--method", "tools/list", *after))
    assert "b__echo" in {tool["name"] for tool in listed["result"]["tools"]}
    call = ["--method", "tools/call", "--tool-name", "b__echo", "--tool-arg", "text=hello"]
    called = json.loads(run(home, *inspector, *call, *after))
    assert called["result"]["content"] == [{"type": "text", "text": "hello"}]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdks_client_starts_the_bridge_by_itself(tmp_path: Path, mode: str) -> None:
    async with started(alone(tmp_path), mode) as client:
        await wait_listed(client, "b__echo")
        result = await client.call_tool("b__echo", {"text": "over stdio"})
    assert result.content[0].model_dump()["text"] == "over stdio"
