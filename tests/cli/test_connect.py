"""`connect`, as a person and as a program use it, in a home of its own."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.inside import Inside
from tests.cli.tiny import TOKEN

CURSOR = '{\n  "mcpServers": {\n    "a": { "command": "x" } // mine\n  }\n}\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with Cursor's file and a configuration of the bridge."""
    home = tmp_path / "home"
    (home / ".cursor").mkdir(parents=True)
    (home / ".cursor" / "mcp.json").write_text(CURSOR)
    (home / ".cursor" / "mcp.json").chmod(0o600)
    (home / ".config" / "bridgehead").mkdir(parents=True)
    (home / ".config" / "bridgehead" / "bridgehead.toml").write_text(
        '[server]\nport = 4001\n[backends.a]\ncommand="x"\n'
    )
    return home


def environ(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PORT": "", **more}


def told(inside: Inside, home: Path, *arguments: str, **more: str) -> dict[str, Any]:
    done = inside("connect", *arguments, "--json", extra=environ(home, **more))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def cursor_of(home: Path) -> Path:
    return home / ".cursor" / "mcp.json"


def test_without_a_person_it_only_shows(inside: Inside, home: Path, tmp_path: Path) -> None:
    for more in ([], ["--dry-run", "--yes"], ["--json"]):
        done = inside("connect", "cursor", *more, extra=environ(home))
        assert done.returncode == 0, done.stderr
        assert '+    "bridgehead": {' in done.stdout.replace("\\n", "\n").replace('\\"', '"')
    assert cursor_of(home).read_text() == CURSOR
    assert [path.name for path in cursor_of(home).parent.iterdir()] == ["mcp.json"]
    assert not (tmp_path / "local-token").exists()


def test_it_writes_and_undoes(inside: Inside, home: Path, tmp_path: Path) -> None:
    done = inside("connect", "cursor", "--yes", extra=environ(home))
    assert done.returncode == 0, done.stderr
    token = (tmp_path / "local-token").read_text()
    assert token not in done.stdout
    assert "note: The file has the local token in it" in done.stdout
    text = cursor_of(home).read_text()
    assert (
        f'"url": "http://127.0.0.1:4001/mcp",\n      "headers": {{\n        "Authorization": "Bearer {token}"' in text
    )
    assert text.startswith(CURSOR[:45])

    again = inside("connect", "cursor", "--yes", extra=environ(home))
    assert "there is nothing to do" in again.stdout

    undone = inside("connect", "cursor", "--undo", "--yes", extra=environ(home))
    assert undone.returncode == 0, undone.stderr
    assert token not in undone.stdout
    assert cursor_of(home).read_text() == CURSOR
    assert [path.name for path in cursor_of(home).parent.iterdir()] == ["mcp.json"]
    assert "there is nothing to undo" in inside("connect", "cursor", "--undo", "--yes", extra=environ(home)).stdout


def test_a_broken_configuration_does_not_keep_the_bridge_in(inside: Inside, home: Path) -> None:
    told(inside, home, "cursor", "--yes")
    (home / ".config" / "bridgehead" / "bridgehead.toml").write_text("broken")

    assert inside("connect", "cursor", extra=environ(home)).returncode == 1
    told(inside, home, "cursor", "--undo", "--yes")
    assert cursor_of(home).read_text() == CURSOR


def test_a_running_bridge_is_reached_where_it_says(inside: Inside, home: Path, tmp_path: Path) -> None:
    (tmp_path / "address").write_text("http://127.0.0.1:5005")
    (tmp_path / "local-token").write_text(TOKEN)

    shown = told(inside, home, "windsurf", "--yes", "--group", "a b", "--name", "work")

    file = home / ".codeium" / "windsurf" / "mcp_config.json"
    assert (shown["file"], shown["form"], shown["backup"]) == (str(file), "token", None)
    assert json.loads(file.read_text()) == {
        "mcpServers": {
            "work": {
                "serverUrl": "http://127.0.0.1:5005/mcp/a%20b",
                "headers": {"Authorization": f"Bearer {TOKEN}"},
            }
        }
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    told(inside, home, "windsurf", "--undo", "--yes", "--name", "work")
    assert not file.exists()


def test_a_client_that_starts_its_servers_gets_a_command_line(inside: Inside, home: Path, tmp_path: Path) -> None:
    state = tmp_path / "other"

    shown = told(inside, home, "claude-desktop", "--yes", "--group", "work", "--state-dir", str(state))

    entry = json.loads(Path(shown["file"]).read_text())["mcpServers"]["bridgehead"]
    config = home / ".config" / "bridgehead" / "bridgehead.toml"
    assert Path(entry["command"]).is_absolute()
    assert os.access(entry["command"], os.X_OK)
    assert entry["args"] == [
        *("mcp", "stdio", "--config", str(config), "--group", "work", "--state-dir", str(state)),
    ]


def test_a_file_that_others_read_gets_no_token(inside: Inside, home: Path) -> None:
    cursor_of(home).chmod(0o644)

    assert told(inside, home, "cursor")["form"] == "stdio"
    assert told(inside, home, "cursor", "--http")["form"] == "variable"
    cursor_of(home).chmod(0o600)
    assert told(inside, home, "cursor")["form"] == "token"
    (home / ".git").mkdir()
    assert told(inside, home, "cursor")["form"] == "stdio"


def test_a_projects_file_gets_a_variable(inside: Inside, home: Path) -> None:
    done = inside("connect", "vscode", "--scope", "project", extra=environ(home))

    assert "Bearer ***" not in done.stdout
    assert "${env:BRIDGEHEAD_TOKEN}" in done.stdout
    assert "set BRIDGEHEAD_TOKEN where VS Code runs" in done.stdout


def test_a_bridge_elsewhere_gets_a_variable(inside: Inside, home: Path) -> None:
    shown = told(inside, home, "cursor", "--url", "https://bridge.example/")

    assert shown["form"] == "variable"
    assert '"url": "https://bridge.example/mcp"' in shown["diff"]


def test_another_server_of_that_name_is_a_conflict(inside: Inside, home: Path) -> None:
    done = inside("connect", "cursor", "--yes", "--name", "a", extra=environ(home))

    assert done.returncode == 4
    assert "--name" in done.stderr
    assert cursor_of(home).read_text() == CURSOR


def test_a_broken_file_is_left_as_it_is(inside: Inside, home: Path) -> None:
    cursor_of(home).write_text("{")

    done = inside("connect", "cursor", "--yes", extra=environ(home))

    assert done.returncode == 1
    assert "line 1, column 2" in done.stderr
    assert cursor_of(home).read_text() == "{"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["cursr"], 1, "did you mean cursor?"),
        (["windsurf", "--scope", "project"], 1, "leave --scope out"),
        (["cursor", "--scope", "galaxy"], 2, "`user` or `project`"),
        (["cursor", "--stdio", "--url", "http://127.0.0.1:1"], 2, "has no address"),
        (["claude-desktop", "--http"], 1, "--stdio"),
        (["cursor", "--stdio", "--config", "nowhere.toml"], 1, "bridgehead import"),
    ],
)
def test_what_cannot_be_done_is_told(inside: Inside, home: Path, arguments: list[str], code: int, said: str) -> None:
    done = inside("connect", *arguments, extra=environ(home))

    assert done.returncode == code, done.stderr
    assert said in done.stderr
