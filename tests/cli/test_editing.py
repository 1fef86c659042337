"""`backend add`, `backend remove`, `groups enable` and `groups disable`, on real files."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.cli.inside import Inside

CONFIG = """\
# Mine
[server]
ungrouped = "show"  # for now

# The docs
[backends.docs]
url = "https://docs.example/mcp"

[backends.notes]
command = "notes"

[groups.read]
title = "Reading" # as people say
enabled = true    # on weekdays
members = [
  { backend = "docs" },
]

[groups.write]
members = [{ backend = "docs", names = ["put"] }]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "bridgehead.toml"
    file.write_text(CONFIG)
    file.chmod(0o640)
    return file


def test_a_program_is_added_behind_everything_else(inside: Inside, config: Path) -> None:
    add = ["--env", "KEY=${KEY}", "--env", "A=b=c", "--config", str(config), "--", "npx", "-y", "time-server", "--utc"]

    done = inside("backend", "add", "time", *add)

    assert done.returncode == 0, done.stderr
    assert config.read_text() == (
        f'{CONFIG}\n[backends.time]\ncommand = "npx"\nargs = ["-y", "time-server", "--utc"]\n'
        'env = { KEY = "${KEY}", A = "b=c" }\n'
    )
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    assert list(config.parent.glob("*.toml")) == [config]


def test_a_server_is_added_with_its_headers(inside: Inside, config: Path) -> None:
    url = ["--url", "https://x.example/mcp", "--header", "Authorization=Bearer ${X}"]

    done = inside("backend", "add", "x.y", *url, "--config", str(config), "--json")

    assert json.loads(done.stdout) == {"name": "x.y", "file": str(config), "made": False}
    assert config.read_text().removeprefix(CONFIG) == (
        '\n[backends."x.y"]\nurl = "https://x.example/mcp"\nheaders = { Authorization = "Bearer ${X}" }\n'
    )


def test_a_credential_in_plain_text_is_told(inside: Inside, config: Path) -> None:
    done = inside("backend", "add", "x", "--env", "API_TOKEN=hunter2", "--config", str(config), "--", "sh")

    assert done.returncode == 0
    assert "${secret:X_API_TOKEN}" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout


def test_the_file_is_made_where_there_is_none(inside: Inside, tmp_path: Path) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path / "config")}

    done = inside("backend", "add", "here", "--cwd", "work", "--", "sh", extra=home)

    assert done.returncode == 0, done.stderr
    file = tmp_path / "config" / "bridgehead" / "bridgehead.toml"
    assert f'[backends.here]\ncommand = "sh"\ncwd = "{Path.cwd()}/work"\n' in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "which is new" in done.stdout


def test_a_name_that_is_taken_is_a_conflict(inside: Inside, config: Path) -> None:
    done = inside("backend", "add", "docs", "--config", str(config), "--", "sh")

    assert done.returncode == 4
    assert "bridgehead backend remove docs" in done.stderr
    assert config.read_text() == CONFIG


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["a/b", "--", "sh"], 'backends."a/b" is not a name for a backend'),
        (["x", "--url", "ftp://x.example"], "needs a `url` that begins with http:// or https://"),
        (["x", "--env", "A=b", "--", ""], "command must not be empty"),
    ],
)
def test_what_could_not_be_used_is_not_written(inside: Inside, config: Path, arguments: list[str], told: str) -> None:
    done = inside("backend", "add", "--config", str(config), *arguments)

    assert done.returncode == 1
    assert "Nothing was written. bridgehead.toml: " in done.stderr
    assert told in done.stderr
    assert config.read_text() == CONFIG
    assert list(config.parent.glob("*.toml")) == [config]


@pytest.mark.parametrize(
    "arguments",
    [
        ["x"],
        ["x", "--url", "https://x.example", "--", "sh"],
        ["x", "--url", "https://x.example", "--env", "A=b"],
        ["x", "--header", "A=b", "--", "sh"],
        ["x", "--env", "secret-without-a-name", "--", "sh"],
        ["x", "--env", "A=b", "--env", "A=c", "--", "sh"],
    ],
)
def test_a_wrong_command_line_says_so(inside: Inside, config: Path, arguments: list[str]) -> None:
    done = inside("backend", "add", "--config", str(config), *arguments)

    assert done.returncode == 2
    assert "secret-without-a-name" not in done.stderr
    assert config.read_text() == CONFIG


def test_a_backend_goes_and_comments_stay(inside: Inside, config: Path) -> None:
    done = inside("backend", "remove", "notes", "--config", str(config))

    assert done.returncode == 0, done.stderr
    assert config.read_text() == CONFIG.replace('[backends.notes]\ncommand = "notes"\n\n', "")


def test_a_backend_that_a_group_names_stays(inside: Inside, config: Path) -> None:
    done = inside("backend", "remove", "docs", "--config", str(config))

    assert done.returncode == 4
    assert "groups.read, groups.write" in done.stderr
    assert config.read_text() == CONFIG


def test_what_is_not_configured_cannot_go_or_be_switched(inside: Inside, config: Path) -> None:
    backend = inside("backend", "remove", "doc", "--config", str(config))
    group = inside("groups", "enable", "doc", "--config", str(config))

    assert (backend.returncode, group.returncode) == (1, 1)
    assert "configured are: docs, notes" in backend.stderr
    assert "configured are: read, write" in group.stderr


def test_a_group_is_switched_in_its_place(inside: Inside, config: Path) -> None:
    off = inside("groups", "disable", "read", "--config", str(config))
    assert off.returncode == 0, off.stderr
    assert config.read_text() == CONFIG.replace("enabled = true ", "enabled = false ")

    on = inside("groups", "enable", "read", "--config", str(config), "--json")
    assert json.loads(on.stdout) == {"name": "read", "enabled": True, "changed": True, "file": str(config)}
    assert config.read_text() == CONFIG

    assert "was on already" in inside("groups", "enable", "write", "--config", str(config)).stdout
    inside("groups", "disable", "write", "--config", str(config))
    assert config.read_text() == f"{CONFIG}enabled = false\n"


def test_a_variable_that_wins_is_told(inside: Inside, config: Path) -> None:
    done = inside("groups", "disable", "read", "--config", str(config), extra={"MCP_GROUP_READ": "1"})

    assert done.returncode == 0
    assert "MCP_GROUP_READ is set here and wins" in done.stderr


def test_a_file_that_is_broken_already_is_not_made_worse(inside: Inside, config: Path) -> None:
    config.write_text("[server]\nprot = 1\n")

    done = inside("backend", "add", "x", "--config", str(config), "--", "sh")

    assert done.returncode == 1
    assert "server.prot" in done.stderr
    assert config.read_text() == "[server]\nprot = 1\n"


def test_another_clients_json_is_not_changed(inside: Inside, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {}}')

    done = inside("backend", "add", "x", "--config", str(file), "--", "sh")

    assert done.returncode == 1
    assert f"hint: take its servers over: bridgehead import --from {file}" in done.stderr
    assert file.read_text() == '{"mcpServers": {}}'


def test_a_link_stays_a_link(inside: Inside, config: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "bridgehead.toml"
    link.parent.mkdir()
    link.symlink_to(config)

    done = inside("groups", "disable", "read", "--config", str(link))

    assert done.returncode == 0, done.stderr
    assert link.is_symlink()
    assert "enabled = false" in config.read_text()
