"""`import`, as a person and as a program use it, in a home of its own."""

from __future__ import annotations

import json
import os
import pty
import shutil
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cli.asking import parse_numbers
from tests.cli.inside import Inside
from tests.cli.tiny import BRIDGEHEAD, CommandLine

FILES = Path(__file__).parents[1] / "config" / "clients" / "files"
GITHUB = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
SECRET = "GITHUB_MCP_SERVER_GITHUB_PERSONAL_ACCESS_TOKEN"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with Cursor's and Windsurf's files, and a configuration with a comment and a sealed file for secrets."""
    home = tmp_path / "home"
    for file, path in (("cursor.json", ".cursor/mcp.json"), ("mcp_config.json", ".codeium/windsurf/mcp_config.json")):
        (home / path).parent.mkdir(parents=True)
        shutil.copy(FILES / file, home / path)
    config_of(home).parent.mkdir(parents=True)
    config_of(home).write_text('[server]\nsecret_store = "file"  # no keyring here\n')
    return home


def config_of(home: Path) -> Path:
    return home / ".config" / "bridgehead" / "bridgehead.toml"


def backends_of(home: Path) -> dict[str, Any]:
    return tomllib.loads(config_of(home).read_text()).get("backends", {})


def environ(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PORT": "3001"}


def test_without_a_person_it_only_shows(inside: Inside, home: Path) -> None:
    before = config_of(home).read_text()

    for more in ([], ["--all"], ["--yes", "--dry-run"]):
        done = inside("import", *more, extra=environ(home))
        assert done.returncode == 0, done.stderr
        assert GITHUB not in done.stdout
        lines = {line.split()[0]: line for line in done.stdout.splitlines() if line}
        assert lines["here"].endswith("unknown")
        assert "note: here (cursor): unknown: `${workspaceFolder}` is whatever folder is open" in done.stdout
        assert SECRET in lines["github-mcp-server"]
        assert "note: off (cursor): off: it is switched off in Cursor." in done.stdout
        assert "Nothing was written." in done.stdout
    assert config_of(home).read_text() == before


def test_it_takes_everything_over_with_secrets_in_the_store(inside: Inside, home: Path) -> None:
    done = inside("import", "--yes", extra=environ(home))

    assert done.returncode == 0, done.stderr
    text = config_of(home).read_text()
    assert text.startswith('[server]\nsecret_store = "file"  # no keyring here\n\n[backends.linear]\n')
    assert GITHUB not in text
    backends = backends_of(home)
    assert list(backends) == [
        "linear",
        "notes",
        "github",
        "signs-in",
        "github-mcp-server",
        "remote-http-mcp",
        "github-windsurf",
    ]
    assert backends["github-mcp-server"]["args"][4] == f"GITHUB_PERSONAL_ACCESS_TOKEN=${{secret:{SECRET}}}"
    secrets = json.loads(inside("secret", "list", "--json", extra=environ(home)).stdout)
    assert SECRET in json.dumps(secrets)
    shown = inside("config", "check", extra=environ(home) | {"LINEAR_TOKEN": "x", "GITHUB_PAT": "x", "AUTH_TOKEN": "x"})
    assert "secret" not in shown.stdout.lower().replace("secret_store", "")

    again = json.loads(inside("import", "--yes", "--json", extra=environ(home)).stdout)
    assert not again["written"]
    assert not any(server["taken"] for server in again["servers"])
    assert config_of(home).read_text() == text


def test_a_program_reads_the_same_and_picks(inside: Inside, home: Path) -> None:
    done = inside("import", "cursor", "--pick", "notes", "--pick", "cursor:off", "--yes", "--json", extra=environ(home))

    told = json.loads(done.stdout)
    assert (told["written"], told["file"]) == (True, str(config_of(home)))
    notes = next(server for server in told["servers"] if server["server"] == "notes")
    assert (notes["client"], notes["transport"], notes["secrets"], notes["verdict"], notes["taken"]) == (
        "cursor",
        "stdio",
        ["NOTES_KEY"],
        "take",
        True,
    )
    assert backends_of(home)["off"] == {"command": "npx", "args": ["-y", "old-server"], "enabled": False}
    assert set(backends_of(home)) == {"notes", "off"}
    assert "k-9f8e7d6c5b4a" not in done.stdout


def test_the_configuration_is_made_where_there_is_none(inside: Inside, home: Path) -> None:
    config_of(home).unlink()

    done = inside(
        "import", "--from", str(FILES / "vscode.json"), "vscode", "--pick", "playwright", "--yes", extra=environ(home)
    )

    assert done.returncode == 0, done.stderr
    assert backends_of(home) == {"playwright": {"command": "npx", "args": ["-y", "@playwright/mcp@latest"]}}
    assert stat.S_IMODE(config_of(home).stat().st_mode) == 0o600


def test_secrets_go_where_the_environment_says(inside: Inside, home: Path, tmp_path: Path) -> None:
    for environment, code in (("file", 0), ("drawer", 1)):
        file = tmp_path / environment / "bridgehead.toml"
        said = environ(home) | {"BRIDGEHEAD_SECRET_STORE": environment}
        done = inside("import", "windsurf", "--yes", "--config", str(file), extra=said)
        assert done.returncode == code, done.stderr
        assert file.exists() == (code == 0)


def test_what_cannot_be_kept_leaves_nothing_behind(inside: Inside, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    env = {"FIRST_TOKEN": "abc", "SECOND_TOKEN": "a\0b"}
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "x", "env": env}}}))
    before = config_of(home).read_text()

    done = inside("import", "--from", str(file), "--yes", extra=environ(home))

    assert done.returncode == 1
    assert "NUL" in done.stderr
    assert config_of(home).read_text() == before
    assert "A_FIRST_TOKEN" not in inside("secret", "list", extra=environ(home)).stdout


def test_one_that_could_not_be_used_keeps_no_other_out(inside: Inside, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"bad": {"url": "nonsense"}, "good": {"command": "x"}}}))

    done = inside("import", "--from", str(file), "--yes", extra=environ(home))

    assert done.returncode == 0, done.stderr
    assert "note: bad (cursor): unknown: backends.bad needs a `url`" in done.stdout
    assert set(backends_of(home)) == {"good"}


def test_a_file_that_cannot_be_read_is_told_beside_the_others(inside: Inside, home: Path) -> None:
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text("{")

    done = inside("import", extra=environ(home))

    assert done.returncode == 0
    assert "settings.json cannot be read, and is left as it is: line 1, column 2" in done.stderr
    assert "linear" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["cursr"], 1, "did you mean cursor?"),
        (["--from", "nowhere.json"], 1, "There is no file"),
        (["--from", "x.json", "cursor", "codex"], 2, "One file is of one client"),
        (["--all", "--pick", "x"], 2, "--all"),
        (["--pick", "here"], 1, "whatever folder is open"),
        (["--pick", "nothing"], 1, "No server 'nothing' was found"),
    ],
)
def test_what_cannot_be_done_is_told(inside: Inside, home: Path, arguments: list[str], code: int, said: str) -> None:
    done = inside("import", *arguments, extra=environ(home))

    assert done.returncode == code
    assert said in done.stderr


def at_a_terminal(run: CommandLine, home: Path, answers: str, *arguments: str) -> str:
    """Run it with a terminal and type the answers; all that was shown."""
    ours, theirs = pty.openpty()
    extra = environ(home) | {"TERM": "dumb", "COLUMNS": "200"}
    with subprocess.Popen(
        [BRIDGEHEAD, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=run.environ() | extra
    ) as process:
        os.close(theirs)
        os.write(ours, answers.encode())
        shown = b""
        while True:
            try:
                more = os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            shown += more
        process.wait(timeout=60)
    os.close(ours)
    return shown.decode()


def test_a_person_chooses_by_number(run: CommandLine, home: Path) -> None:
    shown = at_a_terminal(run, home, "9\n2,4-5\n", "import")

    assert "Give numbers from 1 to 7" in shown
    assert set(backends_of(home)) == {"notes", "signs-in", "github-mcp-server"}


@pytest.mark.parametrize(("answer", "taken"), [("y", {"linear"}), ("n", set[str]())])
def test_a_person_is_asked_before_anything_is_written(
    run: CommandLine, home: Path, answer: str, taken: set[str]
) -> None:
    at_a_terminal(run, home, f"{answer}\n", "import", "--pick", "linear")
    at_a_terminal(run, home, f"{answer}\n", "connect", "cursor", "--http", "--url", "http://127.0.0.1:3001")

    assert set(backends_of(home)) == taken
    assert ("bridgehead" in (home / ".cursor" / "mcp.json").read_text()) == bool(taken)


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("all", [1, 2, 3, 4]),
        ("none", []),
        ("1,3-4", [1, 3, 4]),
        ("2 2,2", [2]),
        ("0", None),
        ("5", None),
        ("3-1", None),
        ("x", None),
    ],
)
def test_numbers_are_read_or_asked_for_again(answer: str, numbers: list[int] | None) -> None:
    assert parse_numbers(answer, 4) == numbers
