"""`config check` and `config show`, on real files."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.tiny import CommandLine

GOOD = """
[backends.box]
command = "sh"
env = { KEY = "hunter2" }

[groups.dev-tools]
enabled = false
members = [{ backend = "box" }]
"""


def write(folder: Path, text: str) -> str:
    file = folder / "bridgehead.toml"
    file.write_text(text)
    return str(file)


def test_a_good_configuration_is_ok(run: CommandLine, tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)

    done = run("config", "check", "--config", file)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == f"configuration: {file}"
    assert "MCP_GROUP_DEV_TOOLS" in done.stdout
    assert done.stdout.endswith("ok: every enabled backend could be started.\n")

    as_json = json.loads(run("config", "check", "--config", file, "--json").stdout)
    assert as_json["ok"] is True
    assert as_json["groups"][0]["variable"] == "MCP_GROUP_DEV_TOOLS"


def test_a_missing_variable_is_a_problem_with_a_name(run: CommandLine, tmp_path: Path) -> None:
    file = write(tmp_path, '[backends.box]\ncommand = "sh"\nargs = ["${NOBODY_SETS_THIS}"]\n')

    done = run("config", "check", "--config", file)

    assert done.returncode == 1
    assert "would not start:\n  box: NOBODY_SETS_THIS (in backends.box.args[0]) is not set.\n" in done.stdout
    assert "    hint: set NOBODY_SETS_THIS in the environment of the bridge" in done.stdout
    assert json.loads(run("config", "check", "--config", file, "--json").stdout)["ok"] is False


def test_colours_come_where_they_are_forced_and_nowhere_else(run: CommandLine, tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)

    assert "\x1b[" not in run("config", "check", "--config", file).stdout
    assert "\x1b[1m" in run("config", "check", "--config", file, extra={"FORCE_COLOR": "1"}).stdout
    both = run("config", "check", "--config", file, extra={"FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert "\x1b[" not in both.stdout


def test_what_cannot_be_read_is_an_error_with_a_hint(run: CommandLine, tmp_path: Path) -> None:
    done = run("config", "check", "--config", write(tmp_path, "[server]\nprot = 1\n"))

    assert done.returncode == 1
    assert done.stdout == ""
    assert "server.prot" in done.stderr
    assert "hint:" in done.stderr


def test_settings_are_shown_with_their_origin_and_without_secrets(run: CommandLine, tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)

    done = run("config", "show", "--config", file)
    assert done.returncode == 0, done.stderr
    assert "hunter2" not in done.stdout
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert ["server.port", "9", "environment PORT"] in lines
    assert ["backends.box.command", '"sh"', "bridgehead.toml"] in lines
    assert ["server.host", '"127.0.0.1"', "default"] in lines

    as_json = json.loads(run("config", "show", "--config", file, "--json").stdout)
    assert as_json["settings"]["backends"]["box"]["env"] == {"KEY": "***"}
