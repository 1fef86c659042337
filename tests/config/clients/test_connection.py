"""The bridge goes into every client's file and out again, and nothing else there changes by a byte."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridgehead.config.clients.bridge_entry import Form, FormUnfit, Reach, bridge_entry, choose
from bridgehead.config.clients.connection import (
    RECORDS_FILE,
    NameTaken,
    Records,
    connecting,
    undoing,
    write_connection,
    write_undoing,
)
from bridgehead.config.clients.jsonc import parse, plain
from bridgehead.config.clients.places import CLIENTS, Place
from bridgehead.config.files import FileBusy, FileUnreadable

FILES = Path(__file__).parent / "files"
URL = "http://127.0.0.1:3001"
TOKEN = "t0ken" * 9
NOW = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
REACH = Reach(f"{URL}/mcp", ("/opt/bin/bridgehead", "mcp", "stdio", "--config", "/home/ann/bridgehead.toml"))
OF_CLIENT = {
    "claude-desktop": "claude_desktop_config.json",
    "claude-code": "claude.json",
    "cursor": "cursor.json",
    "vscode": "vscode.json",
    "codex": "config.toml",
    "windsurf": "mcp_config.json",
    "gemini": "settings.json",
}
BEARER = {"Authorization": f"Bearer {TOKEN}"}
COMMAND = {"command": REACH.command[0], "args": list(REACH.command[1:])}
ENTRIES: dict[str, dict[Form, Any]] = {
    "claude-desktop": {Form.STDIO: COMMAND},
    "claude-code": {
        Form.TOKEN: {"type": "http", "url": REACH.url, "headers": BEARER},
        Form.VARIABLE: {"type": "http", "url": REACH.url, "headers": {"Authorization": "Bearer ${BRIDGEHEAD_TOKEN}"}},
        Form.STDIO: {"type": "stdio", **COMMAND},
    },
    "cursor": {
        Form.TOKEN: {"url": REACH.url, "headers": BEARER},
        Form.VARIABLE: {"url": REACH.url, "headers": {"Authorization": "Bearer ${env:BRIDGEHEAD_TOKEN}"}},
        Form.STDIO: COMMAND,
    },
    "vscode": {
        Form.TOKEN: {"type": "http", "url": REACH.url, "headers": BEARER},
        Form.VARIABLE: {
            "type": "http",
            "url": REACH.url,
            "headers": {"Authorization": "Bearer ${env:BRIDGEHEAD_TOKEN}"},
        },
        Form.STDIO: {"type": "stdio", **COMMAND},
    },
    "codex": {
        Form.TOKEN: {"url": REACH.url, "http_headers": BEARER},
        Form.VARIABLE: {"url": REACH.url, "bearer_token_env_var": "BRIDGEHEAD_TOKEN"},
        Form.STDIO: COMMAND,
    },
    "windsurf": {
        Form.TOKEN: {"serverUrl": REACH.url, "headers": BEARER},
        Form.VARIABLE: {"serverUrl": REACH.url, "headers": {"Authorization": "Bearer ${env:BRIDGEHEAD_TOKEN}"}},
        Form.STDIO: COMMAND,
    },
    "gemini": {
        Form.TOKEN: {"httpUrl": REACH.url, "headers": BEARER},
        Form.VARIABLE: {"httpUrl": REACH.url, "headers": {"Authorization": "Bearer ${BRIDGEHEAD_TOKEN}"}},
        Form.STDIO: COMMAND,
    },
}
EVERY_FORM = [(client, form) for client, forms in ENTRIES.items() for form in forms]
EVERY_CLIENT = list(CLIENTS)


class Desk:
    """One client's file in a directory of its own, and the state directory."""

    def __init__(self, folder: Path, client: str, content: bytes | None = None) -> None:
        self.client = CLIENTS[client]
        self.path = folder / "client" / OF_CLIENT[client]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            self.path.write_bytes(content)
        self.place = Place(client, "user", self.path, self.client.root)
        self.state = folder / "state"

    @property
    def form(self) -> Form:
        return Form.TOKEN if Form.TOKEN in ENTRIES[self.client.name] else Form.STDIO

    def connect(self, form: Form | None = None, name: str = "bridgehead") -> Path | None:
        entry = bridge_entry(self.client, form or self.form, REACH, TOKEN)
        records = Records(self.state)
        return write_connection(connecting(self.place, name, entry, records, URL), records, NOW)

    def undo(self, name: str = "bridgehead") -> None:
        records = Records(self.state)
        write_undoing(undoing(self.place, name, records, URL), records)

    def servers(self) -> dict[str, Any]:
        text = self.path.read_bytes().decode("utf-8-sig")
        document = tomllib.loads(text) if self.place.is_toml else plain(parse(text))
        return document[self.client.root]

    def files(self) -> list[str]:
        return sorted(path.name for path in self.path.parent.iterdir())


def fixture_of(client: str) -> bytes:
    return (FILES / OF_CLIENT[client]).read_bytes()


@pytest.mark.parametrize(("client", "form"), EVERY_FORM)
def test_each_client_is_told_in_its_own_words(tmp_path: Path, client: str, form: Form) -> None:
    desk = Desk(tmp_path, client, fixture_of(client))

    desk.connect(form)

    assert desk.servers()["bridgehead"] == ENTRIES[client][form]


FORMATS: dict[str, Callable[[bytes], bytes | None]] = {
    "as it is": lambda content: content,
    "with carriage returns": lambda content: content.replace(b"\n", b"\r\n"),
    "without the last line end": lambda content: content.rstrip(b"\n"),
    "with a byte order mark": lambda content: b"\xef\xbb\xbf" + content,
    "with tabs": lambda content: content.replace(b"  ", b"\t"),
    "empty": lambda _: b"",
    "not there": lambda _: None,
}


@pytest.mark.parametrize("client", EVERY_CLIENT)
@pytest.mark.parametrize("form", FORMATS)
def test_undoing_gives_the_same_bytes_back(tmp_path: Path, client: str, form: str) -> None:
    content = FORMATS[form](fixture_of(client))
    if content is not None and client == "codex":
        content = content.removeprefix(b"\xef\xbb\xbf")
    desk = Desk(tmp_path, client, content)

    backup = desk.connect()

    assert (backup is None) == (content is None)
    assert "bridgehead" in desk.servers()
    desk.undo()
    assert (desk.path.read_bytes() if desk.path.exists() else None) == content
    assert desk.files() == ([] if content is None else [desk.path.name])


@given(content=st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(), max_size=3), data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_layout_comes_back(tmp_path: Path, content: dict[str, Any], data: st.DataObject) -> None:
    servers = data.draw(st.dictionaries(st.text(max_size=4), st.dictionaries(st.text(max_size=3), st.text(max_size=3))))
    servers.pop("bridgehead", None)
    value = {**content, "mcpServers": servers} if data.draw(st.booleans()) else content
    indent = data.draw(st.sampled_from([None, 0, 2, 4, "\t"]))
    text = json.dumps(value, indent=indent, ensure_ascii=data.draw(st.booleans()))
    tail = data.draw(st.sampled_from(["", "\n", "\r\n", "\n\n"]))
    desk = Desk(tmp_path, "cursor", (text.replace("\n", data.draw(st.sampled_from(["\n", "\r\n"]))) + tail).encode())
    before = desk.path.read_bytes()

    desk.connect()
    assert json.loads(desk.path.read_bytes()) == {
        **value,
        "mcpServers": {**value.get("mcpServers", {}), **desk.servers()},
    }
    desk.undo()

    assert desk.path.read_bytes() == before
    assert desk.files() == [desk.path.name]


@pytest.mark.parametrize("client", EVERY_CLIENT)
def test_what_others_changed_since_stays_and_only_the_bridge_goes(tmp_path: Path, client: str) -> None:
    content = fixture_of(client)
    desk = Desk(tmp_path, client, content)
    desk.connect()
    behind = b"\n[tui.more]\na = 1 # mine\n" if client == "codex" else b"\n \n"
    desk.path.write_bytes(desk.path.read_bytes() + behind)

    desk.undo()

    assert desk.path.read_bytes() == content + behind


def test_without_a_record_the_entry_goes_all_the_same(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor", fixture_of("cursor"))
    desk.connect()
    (desk.state / RECORDS_FILE).write_text("{broken")

    desk.undo()

    assert desk.path.read_bytes() == fixture_of("cursor")


def test_servers_that_came_with_the_bridge_go_with_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "gemini", b'{\n  "ui": {}\n}\n')
    desk.connect()
    desk.path.write_bytes(desk.path.read_bytes().replace(b'"ui": {}', b'"ui": {"theme": "x"}'))

    desk.undo()

    assert desk.path.read_bytes() == b'{\n  "ui": {"theme": "x"}\n}\n'


def test_connecting_again_changes_nothing_and_a_new_token_only_the_entry(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "vscode", fixture_of("vscode"))
    desk.connect()
    records = Records(desk.state)

    again = connecting(desk.place, "bridgehead", ENTRIES["vscode"][Form.TOKEN], records, URL)
    assert not again.changes_anything
    desk.connect(Form.STDIO)
    assert desk.servers()["bridgehead"] == ENTRIES["vscode"][Form.STDIO]
    desk.undo()

    assert desk.path.read_bytes() == fixture_of("vscode")
    assert desk.files() == [desk.path.name]


def test_two_names_are_undone_one_by_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "codex", fixture_of("codex"))
    desk.connect(name="one")
    desk.connect(name="two")

    desk.undo("one")
    assert {"one", "two"} & set(desk.servers()) == {"two"}
    desk.undo("two")

    assert desk.path.read_bytes() == fixture_of("codex")


def test_a_stranger_of_that_name_is_left_alone(tmp_path: Path) -> None:
    content = b'{"mcpServers": {"bridgehead": {"command": "other"}}}'
    desk = Desk(tmp_path, "cursor", content)

    with pytest.raises(NameTaken):
        desk.connect()
    with pytest.raises(NameTaken):
        desk.undo()
    assert desk.path.read_bytes() == content


@pytest.mark.parametrize(
    ("client", "content"),
    [
        ("cursor", b'{"mcpServers": {'),
        ("cursor", b"[]"),
        ("cursor", b'{"mcpServers": []}'),
        ("cursor", b'{"mcpServers": {}, "mcpServers": {}}'),
        ("cursor", '{"a": "ü"}'.encode("latin-1")),
        ("cursor", '{"a": 1}'.encode("utf-16")),
        ("codex", b"model = "),
        ("codex", b"mcp_servers = 1\n"),
    ],
)
def test_a_file_that_cannot_be_read_is_never_touched(tmp_path: Path, client: str, content: bytes) -> None:
    desk = Desk(tmp_path, client, content)

    with pytest.raises(FileUnreadable):
        desk.connect()

    assert desk.path.read_bytes() == content
    assert desk.files() == [desk.path.name]


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "cursor.json"
    target.parent.mkdir()
    shutil.copy(FILES / "cursor.json", target)
    desk = Desk(tmp_path, "cursor")
    desk.path.symlink_to(target)

    desk.connect()

    assert desk.path.is_symlink()
    assert "bridgehead" in json.loads(target.read_bytes())["mcpServers"]
    assert connecting(desk.place, "x", {}, Records(desk.state), URL).file.is_private is False
    desk.undo()
    assert target.read_bytes() == fixture_of("cursor")
    assert [path.name for path in target.parent.iterdir()] == ["cursor.json"]


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_modes_stay_and_copies_are_their_owners_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "windsurf", fixture_of("windsurf"))
    desk.path.chmod(0o640)

    backup = desk.connect()

    assert backup is not None
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(desk.path.stat().st_mode) == 0o640
    assert stat.S_IMODE((desk.state / RECORDS_FILE).stat().st_mode) == 0o600
    fresh = Desk(tmp_path / "fresh", "windsurf")
    fresh.connect()
    assert stat.S_IMODE(fresh.path.stat().st_mode) == 0o600


def test_a_file_that_changes_meanwhile_is_not_written(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor", fixture_of("cursor"))
    records = Records(desk.state)
    change = connecting(desk.place, "bridgehead", ENTRIES["cursor"][Form.STDIO], records, URL)
    desk.path.write_bytes(b"{}")

    with pytest.raises(FileBusy):
        write_connection(change, records, NOW)

    assert desk.path.read_bytes() == b"{}"


def test_the_diff_shows_no_credential(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "claude-desktop", fixture_of("claude-desktop"))
    entry = {"url": REACH.url, "headers": BEARER}

    diff = connecting(desk.place, "bridgehead", entry, Records(desk.state), URL).diff(TOKEN)

    assert TOKEN not in diff
    assert '+        "Authorization": "Bearer ***"' in diff
    assert "BSAabc" not in diff
    assert "abc-123" not in diff


@pytest.mark.parametrize(
    ("client", "scope", "over_http", "is_private", "token_is_known", "form"),
    [
        ("claude-desktop", "user", None, True, True, Form.STDIO),
        ("cursor", "user", None, True, True, Form.TOKEN),
        ("cursor", "user", None, False, True, Form.STDIO),
        ("cursor", "user", True, False, True, Form.VARIABLE),
        ("cursor", "user", False, True, True, Form.STDIO),
        ("cursor", "user", None, True, False, Form.VARIABLE),
        ("cursor", "project", None, True, True, Form.VARIABLE),
        ("cursor", "project", True, True, True, Form.VARIABLE),
        ("cursor", "project", False, True, True, Form.STDIO),
    ],
)
def test_the_token_only_goes_where_nobody_else_reads(  # noqa: PLR0913  one parameter a column
    client: str, scope: Any, over_http: bool | None, is_private: bool, token_is_known: bool, form: Form
) -> None:
    choice = choose(CLIENTS[client], scope, over_http=over_http, is_private=is_private, token_is_known=token_is_known)

    assert choice.form is form
    assert bool(choice.notes) == (form is not Form.STDIO or (over_http is None and client != "claude-desktop"))


def test_a_client_without_headers_is_not_connected_over_http() -> None:
    with pytest.raises(FormUnfit):
        choose(CLIENTS["claude-desktop"], "user", over_http=True, is_private=True, token_is_known=True)
