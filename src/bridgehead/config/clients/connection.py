"""Puts the bridge into a client's file and takes it out again, and touches nothing else there.

Before the first change a copy is kept beside the file. What was written is remembered by its hash in the state directory:
while the file is still that, undoing puts the copy back, byte for byte; once its owner or the client has changed it, only the
bridge's own entry is taken out.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from bridgehead.config.clients.bridge_entry import address_in
from bridgehead.config.clients.credentials import masked
from bridgehead.config.clients.json_text import NotAnObject, put, remove
from bridgehead.config.clients.places import CLIENTS, Place
from bridgehead.config.clients.plan import is_bridge
from bridgehead.config.clients.reading import document_of, unreadable
from bridgehead.config.files import TextFile, new_file, read_file, remove_file, replace_file
from bridgehead.config.tables import as_table
from bridgehead.config.toml_text import TomlUneditable, put_table, remove_table
from bridgehead.core.errors import BridgeError, ConfigInvalid, Kind

RECORDS_FILE = "connections.json"


class NameTaken(BridgeError):
    """The client has another server of that name."""

    kind = Kind.CONFLICT
    code = "name_taken"


@dataclass(frozen=True, slots=True)
class Record:
    """What connecting left behind.

    Attributes:
        written: SHA-256 of the file as it was written, in hexadecimal.
        backup: The copy of what was there before; None where there was no file.
        made_root: Whether the key that servers are under was added too.
    """

    written: str
    backup: str | None
    made_root: bool


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after, still to be written.

    Attributes:
        after: None where the file is to go.
        restores: The copy that is put back, and then not needed any more.
    """

    place: Place
    name: str
    file: TextFile
    after: bytes | None
    made_root: bool = False
    restores: Path | None = None

    @property
    def changes_anything(self) -> bool:
        """Whether there is something to write."""
        return self.after != self.file.content

    def diff(self, token: str) -> str:
        """The change as a unified diff, with credentials masked."""
        before, after = (
            (content or b"").removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\r\n", "\n")
            for content in (self.file.content, self.after)
        )
        lines = difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), str(self.file.path), str(self.file.path)
        )
        text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        return "".join(masked(line.replace(token, "***") if token else line) for line in text.splitlines(keepends=True))


class Records:
    """What is remembered of connections, in one file of the state directory that is its owner's alone."""

    def __init__(self, state_dir: Path) -> None:
        self._file = read_file(state_dir / RECORDS_FILE)
        try:
            known = as_table(orjson.loads(self._file.content or b"{}")) or {}
            self._records = {key: Record(**value) for key, value in known.items()}
        except (orjson.JSONDecodeError, TypeError):
            # Without it, undoing takes the entry out and puts no copy back.
            self._records = dict[str, Record]()

    def of(self, place: Place, name: str) -> Record | None:
        """What is remembered of that name in that file."""
        return self._records.get(self._key(place, name))

    def keep(self, place: Place, name: str, record: Record | None) -> None:
        """Remember it, or with None forget it."""
        self._records.pop(self._key(place, name), None)
        if record is not None:
            self._records[self._key(place, name)] = record
        content = orjson.dumps({key: asdict(one) for key, one in self._records.items()}, option=orjson.OPT_INDENT_2)
        replace_file(self._file, content)
        self._file = read_file(self._file.path)

    @staticmethod
    def _key(place: Place, name: str) -> str:
        return f"{place.path.absolute()}#{name}"


def connecting(place: Place, name: str, entry: Mapping[str, Any], records: Records, bridge_url: str) -> Change:
    """The file with the bridge in it under that name; nothing is written yet.

    Raises:
        FileUnreadable: The file is not what it should be, so it is not touched.
        NameTaken: The client has something else under that name.
    """
    file = read_file(place.path)
    document = document_of(place, file.text)
    servers = as_table(document.get(place.root))
    there = (servers or {}).get(name)
    if there is not None and records.of(place, name) is None and not _is_ours(there, bridge_url):
        raise NameTaken(
            f"{CLIENTS[place.client].title} has another server called {name} in {place.path}.",
            hint="choose another name with --name.",
        )
    if there == entry:
        return Change(place, name, file, file.content)
    try:
        insert = put_table if place.is_toml else put
        text = insert(file.text, (place.root, name), entry)
    except (NotAnObject, TomlUneditable) as error:
        raise unreadable(place, str(error)) from error
    return Change(place, name, file, file.encoded(text), made_root=servers is None)


def undoing(place: Place, name: str, records: Records, bridge_url: str) -> Change:
    """The file as it was before, or without the bridge where it was changed since; nothing is written yet.

    Raises:
        FileUnreadable: The file is not what it should be, so it is not touched.
        NameTaken: What is under that name is not this bridge.
    """
    file = read_file(place.path)
    record = records.of(place, name)
    if file.content is None:
        return Change(place, name, file, None)
    if record is not None and record.written == _hash(file.content):
        if record.backup is None:
            return Change(place, name, file, None)
        backup = Path(record.backup)
        kept = read_file(backup).content
        if kept is not None:
            return Change(place, name, file, kept, restores=backup)
    document = document_of(place, file.text)
    servers = as_table(document.get(place.root)) or {}
    if name not in servers:
        return Change(place, name, file, file.content)
    if record is None and not _is_ours(servers[name], bridge_url):
        raise NameTaken(
            f"{name} in {place.path} is not this bridge, so it was left alone.",
            hint="name the entry that is with --name.",
        )
    path = (place.root,) if len(servers) == 1 and record is not None and record.made_root else (place.root, name)
    try:
        text = remove_table(file.text, path) if place.is_toml else remove(file.text, path)
    except (NotAnObject, TomlUneditable) as error:
        raise unreadable(place, str(error)) from error
    return Change(place, name, file, file.encoded(text))


def write_connection(change: Change, records: Records, now: datetime) -> Path | None:
    """Keep a copy, write the file, and remember it; the copy, or None where there was no file.

    Raises:
        FileBusy: The file was changed in the meantime.
        ConfigInvalid: It cannot be written.
    """
    content = change.file.content
    before = records.of(change.place, change.name)
    if before is not None and content is not None and before.written == _hash(content):
        # Connected again: undoing goes back to before the first time.
        backup, made_root = Path(before.backup) if before.backup else None, before.made_root
    else:
        backup, made_root = None if content is None else _backup(change.file, now), change.made_root
    replace_file(change.file, change.after or b"")
    record = Record(_hash(change.after or b""), str(backup) if backup else None, made_root)
    records.keep(change.place, change.name, record)
    return backup


def write_undoing(change: Change, records: Records) -> None:
    """Write the file as it was, and forget the connection.

    Raises:
        FileBusy: The file was changed in the meantime.
        ConfigInvalid: It cannot be written.
    """
    if change.after is None:
        remove_file(change.file)
    else:
        replace_file(change.file, change.after)
    if change.restores is not None:
        change.restores.unlink(missing_ok=True)
    records.keep(change.place, change.name, None)


def _is_ours(entry: object, bridge_url: str) -> bool:
    table = as_table(entry)
    return table is not None and is_bridge(address_in(table), bridge_url)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _backup(file: TextFile, now: datetime) -> Path:
    stamp = now.strftime("%Y%m%d-%H%M%S")
    number = 1
    while True:
        try:
            return new_file(file.target, f".{stamp}{'' if number == 1 else f'-{number}'}.bak", file.content or b"")
        except FileExistsError:
            number += 1
        except OSError as error:
            raise ConfigInvalid(
                f"{file.path} cannot be copied, so it was not changed: {error.strerror or error}.",
                hint="check the rights of its directory.",
            ) from error
