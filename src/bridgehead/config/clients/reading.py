"""Reads the servers out of the clients' files. A file that cannot be read is reported, and the others are read all the same."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from bridgehead.config.clients.entries import FoundServer, is_off
from bridgehead.config.clients.jsonc import NotJson, parse, plain
from bridgehead.config.clients.places import CLIENTS, Client, Machine, Place, places
from bridgehead.config.files import FileUnreadable, read_file
from bridgehead.config.tables import as_table
from bridgehead.core.errors import ConfigInvalid


@dataclass(slots=True)
class Findings:
    """What the files hold.

    Attributes:
        files: Those that were there and could be read.
        problems: Why others could not, one sentence each.
    """

    files: list[Place] = field(default_factory=list[Place])
    servers: list[FoundServer] = field(default_factory=list[FoundServer])
    problems: list[str] = field(default_factory=list[str])


def read_clients(clients: Iterable[Client], machine: Machine) -> Findings:
    """Read every file of these clients that is there."""
    findings = Findings()
    for client in clients:
        for place in places(client, machine):
            try:
                document = _document(place)
            except ConfigInvalid as error:
                findings.problems.append(error.message)
                continue
            if document is not None:
                findings.files.append(place)
                findings.servers.extend(_servers(place, document))
    return findings


def read_place(place: Place) -> Findings:
    """Read one file.

    Raises:
        ConfigInvalid: There is no such file, or it cannot be read.
    """
    document = _document(place)
    if document is None:
        raise ConfigInvalid(f"There is no file {place.path}.", hint="check the path.")
    return Findings([place], list(_servers(place, document)))


def _document(place: Place) -> Mapping[str, Any] | None:
    """The file as a table; None where there is none."""
    file = read_file(place.path)
    return None if file.content is None else document_of(place, file.text)


def document_of(place: Place, text: str) -> Mapping[str, Any]:
    """The text of the file as a table; empty where nothing is in it.

    Raises:
        FileUnreadable: It is not what the client could read.
    """
    if not text.strip():
        return {}
    try:
        document = as_table(tomllib.loads(text) if place.is_toml else plain(parse(text)))
    except NotJson as error:
        raise unreadable(place, f"line {error.line}, column {error.column}: {error.problem}") from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise unreadable(place, str(error)) from None
    if document is None:
        raise unreadable(place, "it is no JSON object")
    return document


def unreadable(place: Place, problem: str) -> FileUnreadable:
    """The error that says why a file is left as it is."""
    return FileUnreadable(
        f"{place.path} cannot be read, and is left as it is: {problem.rstrip('.')}.",
        hint="correct the file, then run it again.",
    )


def _servers(place: Place, document: Mapping[str, Any]) -> Iterator[FoundServer]:
    root = place.root if place.root in document else _other_root(place, document)
    inputs: dict[str, Mapping[str, Any]] = {}
    for one in cast("list[Any]", document.get("inputs")) if isinstance(document.get("inputs"), list) else []:
        table = as_table(one)
        if table is not None and isinstance(table.get("id"), str):
            inputs[table["id"]] = table
    for name, entry in (as_table(document.get(root)) or {}).items():
        found = FoundServer(place, name, entry, inputs=inputs)
        yield dataclasses.replace(found, off=_off(found, document))
    if place.client == "claude-code" and place.scope == "user":
        yield from _project_servers(place, document)


def _other_root(place: Place, document: Mapping[str, Any]) -> str:
    """Files that go from hand to hand: what another client's servers are under counts too."""
    return next((client.root for client in CLIENTS.values() if client.root in document), place.root)


def _project_servers(place: Place, document: Mapping[str, Any]) -> Iterator[FoundServer]:
    """Claude Code's servers of scope `local`, which it keeps in the user's file by the project's directory."""
    for folder, value in (as_table(document.get("projects")) or {}).items():
        project = as_table(value) or {}
        off = cast("list[Any]", project.get("disabledMcpServers") or [])
        for name, entry in (as_table(project.get("mcpServers")) or {}).items():
            yield FoundServer(
                place,
                name,
                entry,
                Path(folder),
                off="it is switched off in the project" if name in off or is_off(entry) else None,
            )


def _off(server: FoundServer, document: Mapping[str, Any]) -> str | None:
    """Why the client does not use the server: it says so itself, or a list beside it does."""
    client = CLIENTS[server.place.client].title
    if is_off(server.entry):
        return f"it is switched off in {client}"
    rules = as_table(document.get("mcp")) or {}
    if server.place.client == "gemini":
        allowed = rules.get("allowed")
        if server.name in cast("list[Any]", rules.get("excluded") or []):
            return "it is on Gemini CLI's `mcp.excluded`"
        if isinstance(allowed, list) and allowed and server.name not in allowed:
            return "it is not on Gemini CLI's `mcp.allowed`"
    return None
