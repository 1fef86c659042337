"""The JSON of MCP clients, as it stands."""

import json
from pathlib import Path
from typing import Any

import pytest

from bridgehead.config import BackendSettings, Settings, load
from bridgehead.core.errors import ConfigInvalid


def read(directory: Path, document: object) -> Settings:
    file = directory / "mcp.json"
    file.write_text(json.dumps(document))
    return load(file, {})


def one(directory: Path, server: dict[str, Any]) -> tuple[BackendSettings, tuple[str, ...]]:
    settings = read(directory, {"mcpServers": {"a": server}})
    return settings.backends["a"], settings.warnings


def test_a_program_is_read_whole(tmp_path: Path) -> None:
    server = {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"KEY": "${KEY}"}, "cwd": "work"}

    backend, warnings = one(tmp_path, server)

    assert (backend.command, backend.args, backend.cwd) == ("npx", ("-y", "x"), "work")
    assert backend.env["KEY"].reveal() == "${KEY}"
    assert warnings == ()


@pytest.mark.parametrize(
    ("server", "transport"),
    [
        ({"url": "https://x/mcp"}, "auto"),
        ({"serverUrl": "https://x/mcp"}, "auto"),
        ({"httpUrl": "https://x/mcp"}, "http"),
        ({"url": "https://x/mcp", "type": "http"}, "http"),
        ({"url": "https://x/mcp", "type": "streamable-http"}, "http"),
        ({"url": "https://x/mcp", "type": "streamableHttp"}, "http"),
        ({"url": "https://x/mcp", "type": "sse"}, "sse"),
        ({"url": "https://x/mcp", "transport": "sse"}, "sse"),
    ],
)
def test_a_server_is_reached_the_way_its_client_says(tmp_path: Path, server: dict[str, Any], transport: str) -> None:
    backend, warnings = one(tmp_path, server)

    assert (backend.url, backend.transport, warnings) == ("https://x/mcp", transport, ())


def test_the_servers_of_vs_code_are_read_too(tmp_path: Path) -> None:
    settings = read(tmp_path, {"inputs": [], "servers": {"a": {"command": "x"}}})

    assert settings.backends["a"].command == "x"
    assert settings.warnings == ("mcp.json: `inputs` is ignored, since only servers is read.",)


@pytest.mark.parametrize("entry", [{"disabled": True}, {"enabled": False}])
def test_a_disabled_server_stays_disabled(tmp_path: Path, entry: dict[str, bool]) -> None:
    backend, _ = one(tmp_path, {"command": "x"} | entry)

    assert not backend.enabled


@pytest.mark.parametrize(("timeout", "seconds"), [(60, 60), (1000, 1000), (60_000, 60), (2.5, 2.5)])
def test_a_timeout_above_a_thousand_is_in_milliseconds(tmp_path: Path, timeout: float, seconds: float) -> None:
    backend, _ = one(tmp_path, {"command": "x", "timeout": timeout})

    assert backend.timeout_s == seconds


def test_settings_of_other_clients_are_ignored_and_listed(tmp_path: Path) -> None:
    server: dict[str, Any] = {
        "command": "x",
        "autoApprove": [],
        "trust": True,
        "timeout": "soon",
        "type": "carrier-pigeon",
    }

    _, warnings = one(tmp_path, server)

    assert warnings == (
        "mcp.json: mcpServers.a.type is ignored, since it is none of stdio, http, streamable-http and sse.",
        "mcp.json: mcpServers.a.timeout is ignored, since it is no number above 0.",
        "mcp.json: mcpServers.a: `autoApprove`, `trust` is ignored, since it is a setting of another client.",
    )


def test_what_does_not_fit_the_kind_of_server_is_ignored_and_listed(tmp_path: Path) -> None:
    backend, warnings = one(tmp_path, {"type": "http", "command": "x", "url": "https://x", "env": {}, "args": ["y"]})

    assert (backend.url, backend.command) == ("https://x", None)
    assert warnings == (
        "mcp.json: mcpServers.a: `command`, `args` is ignored, since it does not fit this kind of server.",
    )


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"backends": {}}, "has no `mcpServers`"),
        ([], "is no JSON object"),
        ({"mcpServers": []}, "mcpServers must be an object"),
        ({"mcpServers": {"a": 1}}, "mcpServers.a must be an object"),
        ({"mcpServers": {"a": {}}}, "mcpServers.a needs `command`"),
        ({"mcpServers": {"a": {"command": "x", "url": "https://x"}}}, "mcpServers.a has both `command` and `url`"),
        ({"mcpServers": {"a": {"command": 1}}}, "mcpServers.a.command must be text"),
        ({"mcpServers": {"builtin": {"command": "x"}}}, "mcpServers.builtin is the name of the backend"),
    ],
)
def test_what_cannot_be_read_is_refused_in_the_words_of_the_file(tmp_path: Path, document: object, words: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read(tmp_path, document)

    assert words in caught.value.sentence()
    assert "mcp.json" in caught.value.sentence()
    assert caught.value.hint


def test_a_server_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}')

    with pytest.raises(ConfigInvalid, match="the key `a` is there more than once"):
        load(file, {})
