"""Where the clients' files are, on every platform, by the clients' documentation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bridgehead.config.clients.places import (
    CLIENTS,
    ClientUnknown,
    Machine,
    Platform,
    client_named,
    place,
    place_of_file,
    places,
)

LINUX = {
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "claude-code": ".claude.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "codex": ".codex/config.toml",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "gemini": ".gemini/settings.json",
}
MACOS = LINUX | {
    "claude-desktop": "Library/Application Support/Claude/claude_desktop_config.json",
    "vscode": "Library/Application Support/Code/User/mcp.json",
}
WINDOWS = LINUX | {
    "claude-desktop": "AppData/Roaming/Claude/claude_desktop_config.json",
    "vscode": "AppData/Roaming/Code/User/mcp.json",
}
PROJECT = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
}


def machine(platform: Platform, home: Path, environ: Mapping[str, str] | None = None) -> Machine:
    return Machine(platform, home, environ or {}, home / "work")


@pytest.mark.parametrize(("platform", "expected"), [("linux", LINUX), ("darwin", MACOS), ("win32", WINDOWS)])
def test_a_users_files_are_where_the_client_looks(platform: Platform, expected: Mapping[str, str]) -> None:
    home = Path("/home/ann")

    found = {name: place(client, machine(platform, home), "user").path for name, client in CLIENTS.items()}

    assert found == {name: home / path for name, path in expected.items()}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_projects_files_are_in_the_project(name: str) -> None:
    here = machine("linux", Path("/home/ann"))

    if name in PROJECT:
        assert place(CLIENTS[name], here, "project").path == here.project / PROJECT[name]
    else:
        with pytest.raises(ClientUnknown, match="no file of a project"):
            place(CLIENTS[name], here, "project")


def test_in_the_home_directory_a_file_is_the_users_and_is_read_once() -> None:
    home = Path("/home/ann")
    at_home = Machine("linux", home, {}, home)

    assert [each.scope for each in places(CLIENTS["cursor"], at_home)] == ["user"]
    assert [each.scope for each in places(CLIENTS["claude-code"], at_home)] == ["user", "project"]


@pytest.mark.parametrize(
    ("platform", "environ", "client", "expected"),
    [
        ("linux", {"CODEX_HOME": "/srv/codex"}, "codex", "/srv/codex/config.toml"),
        ("linux", {"CODEX_HOME": "relative"}, "codex", "/home/ann/.codex/config.toml"),
        ("linux", {"CLAUDE_CONFIG_DIR": "/srv/claude"}, "claude-code", "/srv/claude/.claude.json"),
        ("linux", {"XDG_CONFIG_HOME": "/srv/config"}, "vscode", "/srv/config/Code/User/mcp.json"),
        ("darwin", {"XDG_CONFIG_HOME": "/srv/config"}, "vscode", f"/home/ann/{MACOS['vscode']}"),
        ("win32", {"APPDATA": "/roaming"}, "vscode", "/roaming/Code/User/mcp.json"),
        ("win32", {"APPDATA": "/roaming"}, "claude-desktop", "/roaming/Claude/claude_desktop_config.json"),
        ("linux", {"VSCODE_PORTABLE": "/usb/vscode"}, "vscode", "/usb/vscode/user-data/User/mcp.json"),
        ("linux", {"GEMINI_CLI_HOME": "/srv/g"}, "gemini", "/srv/g/.gemini/settings.json"),
    ],
)
def test_variables_move_them(platform: Platform, environ: dict[str, str], client: str, expected: str) -> None:
    assert place(CLIENTS[client], machine(platform, Path("/home/ann"), environ), "user").path == Path(expected)


@pytest.mark.parametrize("packaged", ["Claude-Data/claude_main", "Packages/Claude_pzs8/LocalCache/Roaming/Claude"])
def test_the_packaged_claude_desktop_reads_from_its_own_directory(tmp_path: Path, packaged: str) -> None:
    own = tmp_path / "AppData" / "Local" / packaged
    own.mkdir(parents=True)
    found = [each.path for each in places(CLIENTS["claude-desktop"], machine("win32", tmp_path))]

    file = "claude_desktop_config.json"
    assert found == [own / file, tmp_path / "AppData" / "Roaming" / "Claude" / file]


@pytest.mark.parametrize(
    ("path", "client", "scope"),
    [
        ("/home/ann/.cursor/mcp.json", "cursor", "user"),
        ("/home/ann/shop/.cursor/mcp.json", "cursor", "project"),
        ("/home/ann/shop/.vscode/mcp.json", "vscode", "project"),
        ("/home/ann/.config/Code/User/mcp.json", "vscode", "user"),
        ("/home/ann/shop/.mcp.json", "claude-code", "project"),
        ("/backup/mcp_config.json", "windsurf", "user"),
        ("/backup/settings.json", "gemini", "user"),
        ("/backup/config.toml", "codex", "user"),
        ("/backup/servers.json", "claude-code", "user"),
    ],
)
def test_a_file_that_is_named_is_read_as_its_clients(path: str, client: str, scope: str) -> None:
    found = place_of_file(Path(path), None, machine("linux", Path("/home/ann")))

    assert (found.client, found.scope, found.root) == (client, scope, CLIENTS[client].root)


def test_the_client_of_a_named_file_can_be_said() -> None:
    found = place_of_file(Path("/backup/mcp.json"), CLIENTS["vscode"], machine("linux", Path("/home/ann")))

    assert (found.client, found.root) == ("vscode", "servers")


def test_a_client_that_is_not_known_is_told_with_the_nearest() -> None:
    with pytest.raises(ClientUnknown) as unknown:
        client_named("cursr")
    assert unknown.value.hint is not None
    assert "did you mean cursor?" in unknown.value.hint
