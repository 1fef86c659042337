"""What `config check` and `config show` are made of."""

import json
from pathlib import Path

import pytest

from bridgehead.config import Missing, MissingSecret, Report, Settings, check, load, show

TEXT = """
[server]
port = 4000
[backends.fine]
url = "https://user:pw@example.com/mcp?key=word&empty="
headers = { Authorization = "Bearer hunter2" }
[backends.waits]
url = "https://example.com"
headers = { Authorization = "Bearer ${TOKEN}" }
[backends.wrong]
url = "${URL}"
[backends.off]
command = "${NOPE}"
enabled = false
[backends.gone]
command = "no-such-program-at-all"
cwd = "no-such-directory"
[groups.work]
title = "Work"
members = [{ backend = "fine" }, { backend = "waits", prefixes = ["x_"] }, { backend = "fine", names = ["y"] }]
[groups.play]
members = [{ backend = "gone" }]
"""
ENVIRON = {"URL": "ftp://hunter2", "MCP_GROUP_PLAY": "off", "BRIDGEHEAD_LOG_LEVEL": "error", "BRIDGEHEAD_X_Y": "1"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    file = tmp_path / "bridgehead.toml"
    file.write_text(TEXT)
    return load(file, ENVIRON)


@pytest.fixture
def report(settings: Settings) -> Report:
    return check(settings, ENVIRON)


def test_a_missing_variable_is_reported_for_its_backend_alone(report: Report) -> None:
    assert report.missing == {"waits": (Missing("TOKEN", "backends.waits.headers.Authorization"),)}
    assert not report.ok


def test_a_backend_that_cannot_be_launched_is_a_problem(report: Report) -> None:
    assert [str(problem) for problem in report.problems] == [
        "bridgehead.toml: backends.wrong.url is not an http or https URL once its placeholders are filled in."
    ]


def test_programs_and_directories_that_are_not_there_are_warnings(report: Report, tmp_path: Path) -> None:
    text = "\n".join(report.warnings)

    assert "backends.gone.command: there is no program `no-such-program-at-all` on the PATH" in text
    assert f"backends.gone.cwd: there is no directory {tmp_path / 'no-such-directory'}" in text
    assert "BRIDGEHEAD_X_Y is ignored" in text


def test_groups_are_reported_with_what_switched_them(report: Report) -> None:
    assert [
        (group.name, group.title, group.enabled, group.origin, group.variable, group.backends)
        for group in report.groups
    ] == [
        ("work", "Work", True, "default", "MCP_GROUP_WORK", ("fine", "waits")),
        ("play", None, False, "environment MCP_GROUP_PLAY", "MCP_GROUP_PLAY", ("gone",)),
    ]


def test_a_program_by_its_path_is_found_from_its_working_directory(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    file = tmp_path / "bridgehead.toml"
    file.write_text('[backends.a]\ncommand = "./tool"\ncwd = "."')

    assert check(load(file, {}), {}) == Report(file)


def test_the_effective_configuration_is_json_and_says_where_each_value_came_from(settings: Settings) -> None:
    shown = json.loads(json.dumps(show(settings)))

    assert shown["source"] == str(settings.source)
    assert shown["settings"]["server"]["port"] == 4000
    assert shown["settings"]["server"]["log_level"] == "error"
    assert shown["settings"]["backends"]["fine"]["timeout_s"] == 30
    assert shown["settings"]["groups"]["play"]["enabled"] is False
    assert "command" not in shown["settings"]["backends"]["fine"]
    assert shown["origins"]["server.port"] == "bridgehead.toml"
    assert shown["origins"]["server.host"] == "default"
    assert shown["origins"]["server.log_level"] == "environment BRIDGEHEAD_LOG_LEVEL"
    assert shown["origins"]["groups.play.enabled"] == "environment MCP_GROUP_PLAY"
    assert shown["origins"]["backends.fine.headers.Authorization"] == "bridgehead.toml"
    assert shown["warnings"] == list(settings.warnings)


def test_secrets_are_masked_in_it_credentials_in_a_url_too(settings: Settings) -> None:
    fine = show(settings)["settings"]["backends"]["fine"]

    assert fine["headers"] == {"Authorization": "***"}
    assert fine["url"] == "https://***@example.com/mcp?key=***&empty="


class Kept:
    def read(self, name: str) -> str | None:
        return {"PROGRAM": "hunter2-program", "FOLDER": "hunter2-folder"}.get(name)


def test_missing_secrets_are_reported_apart_and_what_is_kept_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "bridgehead.toml"
    file.write_text(
        '[backends.a]\ncommand = "sh"\nenv = { K = "${secret:NOBODY}" }\n'
        '[backends.b]\ncommand = "${secret:PROGRAM}"\ncwd = "${secret:FOLDER}"\n'
    )
    settings = load(file, {})

    report = check(settings, {}, Kept())

    assert report.missing_secrets == {"a": (MissingSecret("NOBODY", "backends.a.env.K"),)}
    assert not report.missing
    assert not report.ok
    assert any("there is no program `${secret:PROGRAM}`" in warning for warning in report.warnings)
    assert any(f"there is no directory {tmp_path}/${{secret:FOLDER}}" in warning for warning in report.warnings)
    assert "hunter2" not in repr(report) + json.dumps(show(settings))
