"""Real MCP clients in front of the bridge, each with a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

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


def test_claude_code_starts_the_bridge_by_itself(tmp_path: Path) -> None:
    claude = node_program("claude")
    config = tmp_path / "bridgehead.toml"
    config.write_text(f"[backends.b]\n{plain()}")
    bridge = [str(BIN / "bridgehead"), "mcp", "stdio", "--config", str(config), "--state-dir", str(tmp_path / "state")]
    run(tmp_path, claude, "mcp", "add", "bridgehead", "--", *bridge)
    assert "Connected" in run(tmp_path, claude, "mcp", "list")


def test_codex_takes_the_bridge_and_lists_it(bridge: Bridge, tmp_path: Path) -> None:
    codex, environ = node_program("codex"), {"CODEX_HOME": str(tmp_path), "BRIDGEHEAD_TOKEN": bridge.token}
    url = f"{bridge.url}/mcp"
    add = ["mcp", "add", "bridgehead", "--url", url, "--bearer-token-env-var", "BRIDGEHEAD_TOKEN"]
    run(tmp_path, codex, *add, environ=environ)
    listed = json.loads(run(tmp_path, codex, "mcp", "list", "--json", environ=environ))
    assert [(server["name"], server["transport"]["url"]) for server in listed] == [("bridgehead", url)]


def test_the_inspector_lists_and_calls(bridge: Bridge, tmp_path: Path) -> None:
    header = f"Authorization: Bearer {bridge.token}"
    reach = ["--cli", f"{bridge.url}/mcp", "--transport", "http", "--header", header]
    inspector = node_program("mcp-inspector")
    listed = run(tmp_path, inspector, *reach, "--method", "tools/list")
    assert "b__echo" in listed
    call = ["--method", "tools/call", "--tool-name", "b__echo", "--tool-arg", "text=hello"]
    assert "hello" in run(tmp_path, inspector, *reach, *call)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdks_client_starts_the_bridge_by_itself(tmp_path: Path, mode: str) -> None:
    config = tmp_path / "bridgehead.toml"
    config.write_text(f"[backends.b]\n{plain()}")
    args = ["mcp", "stdio", "--config", str(config), "--state-dir", str(tmp_path / "state")]
    server = StdioServerParameters(command=str(BIN / "bridgehead"), args=args)
    async with Client(server, mode=mode, cache=None) as client:  # pyright: ignore[reportArgumentType]
        while "b__echo" not in {tool.name for tool in (await client.list_tools()).tools}:
            pass
        result = await client.call_tool("b__echo", {"text": "over stdio"})
    assert result.content[0].model_dump()["text"] == "over stdio"
