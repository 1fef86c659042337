"""`secret set`, `secret list` and `secret remove`, as people and scripts use them."""

from __future__ import annotations

import io
import json
import os
import pty
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import keyring
import pytest
from keyring.backends.fail import Keyring as FailKeyring

from bridgehead.cli import root
from bridgehead.store.secrets import SealedFile
from tests.cli.tiny import BRIDGEHEAD, CommandLine

ROOT = Path(__file__).parents[2]
CONFIG = """
[backends.hub]
url = "https://hub.example/mcp"
headers = { Authorization = "Bearer ${secret:HUB}" }
[backends.box]
command = "sh"
args = ["-c", "${secret:HUB:-none} ${secret:BOX}"]
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "bridgehead.toml"
    file.write_text(CONFIG)
    return str(file)


@dataclass
class Here:
    """The command line in this process, which spares each command a second of imports."""

    monkeypatch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str, stdin: str = "") -> Done:
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = root.run(list(arguments))
        said = self.capture.readouterr()
        return Done(code, said.out, said.err)


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], outside: Outside) -> Here:
    for name, value in outside.environ().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path / "empty")
    keyring.set_keyring(FailKeyring())
    return Here(monkeypatch, capsys)


class Outside(CommandLine):
    """The command line in a process of its own; whatever keyring this machine has, it is not touched."""

    def environ(self) -> dict[str, str]:
        return {**super().environ(), "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    (tmp_path / "empty").mkdir()
    return Outside(tmp_path)


def test_a_secret_is_set_listed_and_removed_and_its_users_are_named(here: Here, config: str) -> None:
    done = here("secret", "set", "HUB", "--config", config, stdin="hunter2\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "HUB is kept in the sealed file.",
        "hub, box will have it when started next; a running bridge has to be started again.",
    ]
    assert (
        here("secret", "set", "SPARE", stdin="x").stdout.splitlines()[1].startswith("No backend uses it yet: write ${s")
    )

    listed = here("secret", "list", "--config", config)
    assert [line.split(maxsplit=1) for line in listed.stdout.splitlines()[1:]] == [
        ["HUB", "the sealed file  hub, box"],
        ["SPARE", "the sealed file"],
        ["BOX", "(not set)        box"],
    ]
    assert json.loads(here("secret", "list", "--config", config, "--json").stdout) == [
        {"name": "HUB", "kept_in": "file", "used_by": ["hub", "box"]},
        {"name": "SPARE", "kept_in": "file", "used_by": []},
        {"name": "BOX", "kept_in": None, "used_by": ["box"]},
    ]

    removed = here("secret", "remove", "HUB", "--config", config)
    assert removed.returncode == 0
    assert removed.stdout.splitlines() == [
        "HUB is removed from the sealed file.",
        "hub, box will not start without it, unless there is a default.",
    ]
    assert "HUB" in here("secret", "list", "--config", config).stdout.splitlines()[-1]


def test_set_and_remove_speak_json_too(here: Here, config: str) -> None:
    done = here("secret", "set", "BOX", "--json", "--config", config, stdin="hunter2")
    assert json.loads(done.stdout) == {"name": "BOX", "kept_in": "file", "used_by": ["box"]}

    done = here("secret", "remove", "BOX", "--json", "--config", config)
    assert json.loads(done.stdout) == {"name": "BOX", "removed": True, "used_by": ["box"]}


def test_what_is_not_there_cannot_be_removed(here: Here) -> None:
    done = here("secret", "remove", "NOBODY")

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: There is no secret NOBODY in the sealed file.",
        "hint: `bridgehead secret list` shows which there are.",
    ]


def test_an_empty_store_says_so(here: Here) -> None:
    assert here("secret", "list").stdout == "No secret is kept, and no backend names one.\n"
    assert json.loads(here("secret", "list", "--json").stdout) == []


@pytest.mark.parametrize(
    ("sent", "kept"), [("v\n", "v"), ("v\r\n", "v"), ("v", "v"), ("v\n\n", "v\n"), (" v ", " v "), ("a\nb\n", "a\nb")]
)
def test_one_newline_at_the_end_is_dropped_and_nothing_else(here: Here, tmp_path: Path, sent: str, kept: str) -> None:
    file = tmp_path / "value"
    file.write_bytes(sent.encode())
    assert here("secret", "set", "A", "--value-file", str(file)).returncode == 0

    assert _kept(tmp_path, "A") == kept


@pytest.mark.parametrize("how", [["--stdin"], []])
def test_a_piped_value_is_read_from_standard_input(outside: Outside, tmp_path: Path, how: list[str]) -> None:
    assert outside("secret", "set", "A", *how, stdin="hünter2\n").returncode == 0

    assert _kept(tmp_path, "A") == "hünter2"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "The value is empty."),
        (b"\n", "The value is empty."),
        (b"hunter2\0", "The value holds a NUL character"),
        (b"hunter2\xff", "The value is not UTF-8, from byte 7 on."),
        (b"hunter2" * 10_000, "The value is larger than 65536 bytes."),
    ],
    ids=["empty", "newline", "nul", "latin", "large"],
)
def test_a_value_that_cannot_be_is_refused_in_a_sentence_without_it(
    here: Here, tmp_path: Path, content: bytes, told: str
) -> None:
    file = tmp_path / "value"
    file.write_bytes(content)

    done = here("secret", "set", "A", "--value-file", str(file))

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {told}")
    assert "hint:" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert json.loads(here("secret", "list", "--json").stdout) == []


def test_the_largest_value_is_kept(here: Here, tmp_path: Path) -> None:
    assert here("secret", "set", "A", stdin="x" * 65_536 + "\r\n").returncode == 0

    assert _kept(tmp_path, "A") == "x" * 65_536


def test_a_value_is_no_argument_and_a_wrong_name_is_not_repeated(here: Here) -> None:
    assert here("secret", "set", "A", "hunter2").returncode == 2

    done = here("secret", "set", "hunter2!", stdin="x")
    assert done.returncode == 1
    assert "hunter2" not in done.stderr


def test_two_places_for_the_value_or_a_file_that_is_not_there_are_refused(here: Here, tmp_path: Path) -> None:
    assert here("secret", "set", "A", "--stdin", "--value-file", "x", stdin="v").returncode == 2

    done = here("secret", "set", "A", "--value-file", str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "nowhere cannot be read: No such file or directory." in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
def test_on_a_terminal_the_value_is_asked_for_and_not_shown(outside: Outside, tmp_path: Path) -> None:
    process, terminal = pty.fork()
    if process == 0:
        os.execve(BRIDGEHEAD, [str(BRIDGEHEAD), "secret", "set", "A"], outside.environ())  # noqa: S606  no shell is wanted
    shown = b""
    while b"not shown" not in shown:
        shown += os.read(terminal, 1024)
    time.sleep(0.05)  # the echo is switched off just before the prompt is written, and flushed input would be lost
    os.write(terminal, b"hunter2\n")
    try:
        while chunk := os.read(terminal, 1024):
            shown += chunk
    except OSError:
        pass  # how Linux says that the other end is closed
    _, status = os.waitpid(process, 0)
    os.close(terminal)

    assert os.waitstatus_to_exitcode(status) == 0, shown
    assert b"hunter2" not in shown
    assert _kept(tmp_path, "A") == "hunter2"


def test_config_check_names_missing_secrets_and_the_command_that_sets_them(here: Here, config: str) -> None:
    done = here("config", "check", "--config", config)
    assert done.returncode == 1
    assert (
        "problem: hub cannot start: the secret HUB is not set (named in backends.hub.headers.Authorization);"
        " run `bridgehead secret set HUB`.\n"
    ) in done.stdout
    assert json.loads(here("config", "check", "--config", config, "--json").stdout)["missing_secrets"] == {
        "hub": [{"secret": "HUB", "field": "backends.hub.headers.Authorization"}],
        "box": [{"secret": "BOX", "field": "backends.box.args[1]"}],
    }

    for name in ("HUB", "BOX"):
        here("secret", "set", name, stdin="hunter2")
    done = here("config", "check", "--config", config)
    assert done.returncode == 0, done.stdout
    assert "hunter2" not in done.stdout


def test_the_keyring_is_used_where_there_is_one_and_kept_to_where_it_is_gone(outside: Outside, tmp_path: Path) -> None:
    ring = {
        "PYTHON_KEYRING_BACKEND": "tests.store.keyrings.SharedKeyring",
        "PYTHONPATH": str(ROOT),
        "TEST_KEYRING": str(tmp_path / "ring.json"),
    }

    done = outside("secret", "set", "A", stdin="hunter2", extra=ring)
    assert done.stdout.splitlines()[0] == "A is kept in the keyring of this system."
    assert list(json.loads((tmp_path / "ring.json").read_text()).values()) == ["hunter2"]
    assert json.loads(outside("secret", "list", "--json", extra=ring).stdout)[0]["kept_in"] == "keyring"

    done = outside("secret", "list")
    assert done.returncode == 1
    assert "Secrets are kept in the keyring of this system, and it cannot be reached from here." in done.stderr

    done = outside("secret", "set", "B", stdin="hunter3", extra={**ring, "BRIDGEHEAD_SECRET_STORE": "file"})
    assert done.stdout.splitlines()[0] == "B is kept in the sealed file."
    assert outside("secret", "remove", "A", extra={**ring, "BRIDGEHEAD_SECRET_STORE": "keyring"}).returncode == 0
    assert json.loads((tmp_path / "ring.json").read_text()) == {}


def test_a_store_that_there_is_not_is_refused(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGEHEAD_SECRET_STORE", "vault")

    done = here("secret", "list")

    assert done.returncode == 1
    assert "secret_store must be one of 'auto', 'keyring' or 'file'" in done.stderr


def _kept(state_dir: Path, name: str) -> str | None:
    return SealedFile(state_dir).read(name)
