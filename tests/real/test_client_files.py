"""`connect` and `import` held to the clients themselves: what one writes, the other reads."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client

from tests.real.servers import BIN, node_program
from tests.real.test_clients import run
from tests.spine.bridge import SERVERS, Bridge, plain, running_bridge

TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    with running_bridge(tmp_path_factory.mktemp("files"), f"[backends.b]\n{plain()}") as running:
        running.wait_ready("b")
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a project in it."""
    (tmp_path / "home" / "project").mkdir(parents=True)
    return tmp_path / "home"


def bridgehead(home: Path, bridge: Bridge, *arguments: str) -> dict[str, Any]:
    own = {"BRIDGEHEAD_STATE_DIR": str(bridge.state_dir), "CODEX_HOME": str(home / ".codex")}
    config = ["--config", str(home / "bridgehead.toml")] if arguments[0] == "import" else []
    return json.loads(run(home, str(BIN / "bridgehead"), *arguments, *config, "--yes", "--json", environ=own))


def test_claude_code_connects_to_what_was_written_and_forgets_what_was_undone(bridge: Bridge, home: Path) -> None:
    claude, file = node_program("claude"), home / ".claude.json"
    run(home, claude, "mcp", "add", "--scope", "user", "other", "--", "true")
    before = file.read_bytes()

    done = bridgehead(home, bridge, "connect", "claude-code")

    assert (done["written"], done["file"], done["form"]) == (True, str(file), "token")
    listed = run(home, claude, "mcp", "list")
    assert f"bridgehead: {bridge.url}/mcp (HTTP)" in listed
    assert "Connected" in next(line for line in listed.splitlines() if line.startswith("bridgehead"))
    assert "User config" in run(home, claude, "mcp", "get", "bridgehead")

    bridgehead(home, bridge, "connect", "claude-code", "--undo")
    assert "bridgehead" not in run(home, claude, "mcp", "list")
    after = json.loads(file.read_bytes())
    assert after["mcpServers"] == json.loads(before)["mcpServers"]


def test_claude_code_starts_the_bridge_that_was_written(bridge: Bridge, home: Path) -> None:
    (home / ".config" / "bridgehead").mkdir(parents=True)
    (home / ".config" / "bridgehead" / "bridgehead.toml").write_text(f"[backends.b]\n{plain()}")

    done = bridgehead(home, bridge, "connect", "claude-code", "--stdio", "--state-dir", str(home / "state"))

    assert done["form"] == "stdio"
    assert "Connected" in run(home, node_program("claude"), "mcp", "list")
    bridgehead(home, bridge, "connect", "claude-code", "--undo", "--state-dir", str(home / "state"))


def test_claude_code_reads_the_projects_file(bridge: Bridge, home: Path) -> None:
    done = bridgehead(home, bridge, "connect", "claude-code", "--scope", "project")

    assert done["form"] == "variable"
    assert bridge.token not in (home / ".mcp.json").read_text()
    got = run(home, node_program("claude"), "mcp", "get", "bridgehead", environ={"BRIDGEHEAD_TOKEN": bridge.token})
    assert f"{bridge.url}/mcp" in got
    assert "Project config" in got
    bridgehead(home, bridge, "connect", "claude-code", "--scope", "project", "--undo")
    assert not (home / ".mcp.json").exists()


def test_what_claude_code_was_given_is_taken_over(bridge: Bridge, home: Path) -> None:
    claude = node_program("claude")
    add = (claude, "mcp", "add")
    header = f"Authorization: Bearer {TOKEN}"
    run(home, *add, "--scope", "user", "--transport", "http", "web", "https://x.example/mcp", "--header", header)
    run(home, *add, "--scope", "local", "here", "-e", "A=b", "--", "true", "--flag")
    run(home, *add, "--scope", "project", "--transport", "sse", "events", "https://y.example/sse")
    run(home, *add, "--scope", "user", "--transport", "http", "itself", f"{bridge.url}/mcp")

    done = bridgehead(home, bridge, "import", "claude-code")

    assert {server["server"]: server["verdict"] for server in done["servers"]} == {
        "web": "take",
        "here": "take",
        "events": "take",
        "itself": "itself",
    }
    assert tomllib.loads((home / "bridgehead.toml").read_text())["backends"] == {
        "web": {
            "url": "https://x.example/mcp",
            "headers": {"Authorization": "Bearer ${secret:WEB_AUTHORIZATION}"},
            "transport": "http",
        },
        "here": {"command": "true", "args": ["--flag"], "env": {"A": "b"}, "cwd": str(home)},
        "events": {"url": "https://y.example/sse", "transport": "sse"},
    }


@pytest.mark.parametrize("form", ["token", "variable", "stdio"])
def test_codex_takes_what_was_written(bridge: Bridge, home: Path, form: str) -> None:
    codex, file = node_program("codex"), home / ".codex" / "config.toml"
    file.parent.mkdir()
    (home / ".config" / "bridgehead").mkdir(parents=True)
    (home / ".config" / "bridgehead" / "bridgehead.toml").write_text(f"[backends.b]\n{plain()}")
    before = '# mine\nmodel = "x" # best\n\n[mcp_servers.other]\ncommand = "true"\n'
    file.write_text(before)
    file.chmod(0o644 if form == "variable" else 0o600)
    more = {"token": [], "variable": ["--http"], "stdio": ["--stdio"]}[form]

    done = bridgehead(home, bridge, "connect", "codex", *more)

    assert (done["written"], done["form"]) == (True, form)
    environ = {"CODEX_HOME": str(file.parent), "BRIDGEHEAD_TOKEN": bridge.token}
    listed = {one["name"]: one for one in json.loads(run(home, codex, "mcp", "list", "--json", environ=environ))}
    assert set(listed) == {"bridgehead", "other"}
    transport = listed["bridgehead"]["transport"]
    if form == "stdio":
        assert transport["args"][:3] == ["mcp", "stdio", "--config"]
    else:
        assert transport["url"] == f"{bridge.url}/mcp"
        headers = {"Authorization": f"Bearer {bridge.token}"}
        assert transport["http_headers"] == (headers if form == "token" else None)
        assert transport["bearer_token_env_var"] == (None if form == "token" else "BRIDGEHEAD_TOKEN")

    run(home, codex, "mcp", "add", "later", "--", "true", environ=environ)
    bridgehead(home, bridge, "connect", "codex", "--undo")
    after = file.read_text()
    assert after.startswith(before)
    assert set(tomllib.loads(after)["mcp_servers"]) == {"other", "later"}


def test_what_codex_was_given_is_taken_over(bridge: Bridge, home: Path) -> None:
    codex, environ = node_program("codex"), {"CODEX_HOME": str(home / ".codex")}
    (home / ".codex").mkdir()
    run(home, codex, "mcp", "add", "here", "--env", f"TOKEN={TOKEN}", "--", "true", "$HOME", environ=environ)
    web = ["--url", "https://x.example/mcp", "--bearer-token-env-var", "X_TOKEN"]
    run(home, codex, "mcp", "add", "web", *web, environ=environ)

    done = bridgehead(home, bridge, "import", "codex")

    assert [server["verdict"] for server in done["servers"]] == ["take", "take"]
    assert tomllib.loads((home / "bridgehead.toml").read_text())["backends"] == {
        "here": {"command": "true", "args": ["$HOME"], "env": {"TOKEN": "${secret:HERE_TOKEN}"}},
        "web": {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${X_TOKEN}"}},
    }


def test_a_server_that_was_taken_over_gets_its_secret_from_the_store(bridge: Bridge, home: Path) -> None:
    script = f'test "$API_TOKEN" = hunter-two && exec "$0" {SERVERS / "plain.py"} plain'
    server = {"command": "sh", "args": ["-c", script, sys.executable], "env": {"API_TOKEN": "hunter-two"}}
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"kept": server}}))
    (home / "bridgehead.toml").write_text('[server]\nsecret_store = "file"\n')

    bridgehead(home, bridge, "import", "cursor")

    text = (home / "bridgehead.toml").read_text()
    assert 'env = { API_TOKEN = "${secret:KEPT_API_TOKEN}" }' in text
    program, environ = str(BIN / "bridgehead"), {"BRIDGEHEAD_STATE_DIR": str(bridge.state_dir)}
    tried = run(home, program, "backend", "test", "kept", "--config", "bridgehead.toml", "--json", environ=environ)
    assert "echo" in json.loads(tried)["tools"]


async def test_a_client_that_starts_the_bridge_can_have_one_group(bridge: Bridge, home: Path) -> None:
    config = home / "bridgehead.toml"
    group = "[groups.few]\nmembers = [{ backend = 'b', names = ['echo'] }]\n"
    config.write_text(f"[backends.b]\n{plain()}\n{group}")
    bridgehead(home, bridge, "connect", "claude-desktop", "--group", "few", "--config", str(config))
    file = home / ".config" / "Claude" / "claude_desktop_config.json"
    entry = json.loads(file.read_text())["mcpServers"]["bridgehead"]

    server = StdioServerParameters(command=entry["command"], args=[*entry["args"], "--state-dir", str(home / "state")])
    async with Client(server, mode="legacy", cache=None) as client:
        while "b__echo" not in (names := {tool.name for tool in (await client.list_tools()).tools}):
            pass

    assert {name for name in names if name.startswith("b__")} == {"b__echo"}
