"""From the JSON in which MCP clients keep their servers to the tables of our own configuration.

Reads `mcpServers` (Claude, Cursor, Cline, Windsurf, Gemini) and `servers` (VS Code) as they stand. What another client
means by a key that we have no equal for is not guessed: it is ignored, and said so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridgehead.config.problems import Problem, dotted
from bridgehead.config.tables import as_table

ROOTS = ("mcpServers", "servers")
_URL_KEYS = ("url", "serverUrl", "httpUrl")
_KIND_KEYS = ("type", "transport")
KINDS = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
_COPIED = ("command", "args", "env", "cwd", "headers")
_UNDERSTOOD = frozenset({*_COPIED, *_URL_KEYS, *_KIND_KEYS, "disabled", "enabled", "timeout"})
_MILLISECONDS_ABOVE = 1_000
"""Clients disagree about the unit of `timeout`: few give a tool 17 minutes, and few give it less than a second."""


@dataclass(slots=True)
class ClientServers:
    """What a client's file gave.

    Attributes:
        root: The key its servers are under.
        backends: Tables as our own configuration has them; not validated yet.
    """

    root: str
    backends: dict[str, Any] = field(default_factory=dict[str, Any])
    warnings: list[str] = field(default_factory=list[str])
    problems: list[Problem] = field(default_factory=list[Problem])


def read_client_json(document: Mapping[str, Any], file: str) -> ClientServers:
    """Translate the servers of `document`, which was read from `file`."""
    root = next((key for key in ROOTS if key in document), None)
    if root is None:
        read = ClientServers(ROOTS[0])
        read.problems.append(
            Problem(
                file,
                "",
                "has no `mcpServers`: JSON may be a client's list of servers, anything else is TOML",
            )
        )
        return read
    read = ClientServers(root)
    servers = as_table(document[root])
    if servers is None:
        read.problems.append(Problem(file, root, "must be an object with one server a key"))
        return read
    ignored = [key for key in document if key != root]
    if ignored:
        read.warnings.append(f"{file}: {_list(ignored)} is ignored, since only {root} is read.")
    for name, entry in servers.items():
        table = as_table(entry)
        if table is None:
            read.problems.append(Problem(file, dotted(root, name), "must be an object"))
        else:
            read.backends[name] = _backend(table, file, dotted(root, name), read)
    return read


def _backend(entry: Mapping[str, Any], file: str, key: str, read: ClientServers) -> dict[str, Any]:
    table = {name: entry[name] for name in _COPIED if entry.get(name) is not None}
    url_key = next((name for name in _URL_KEYS if entry.get(name) is not None), None)
    if url_key is not None:
        table["url"] = entry[url_key]
    kind = _kind(entry, file, key, read) or ("http" if url_key == "httpUrl" else None)
    _keep_one_kind(table, kind, file, key, read)
    if "url" in table and kind in {"http", "sse"}:
        table["transport"] = kind
    if entry.get("disabled") is True or entry.get("enabled") is False:
        table["enabled"] = False
    _take_timeout(table, entry.get("timeout"), file, key, read)
    ignored = [name for name in entry if name not in _UNDERSTOOD]
    if ignored:
        read.warnings.append(f"{file}: {key}: {_list(ignored)} is ignored, since it is a setting of another client.")
    return table


def _kind(entry: Mapping[str, Any], file: str, key: str, read: ClientServers) -> str | None:
    for name in _KIND_KEYS:
        value = entry.get(name)
        if value is None:
            continue
        kind = KINDS.get(value.lower()) if isinstance(value, str) else None
        if kind is None:
            read.warnings.append(
                f"{file}: {key}.{name} is ignored, since it is none of stdio, http, streamable-http and sse."
            )
        return kind
    return None


def _keep_one_kind(table: dict[str, Any], kind: str | None, file: str, key: str, read: ClientServers) -> None:
    """Drop what does not go with the server's kind; where the kind is not said and unclear, validation reports it."""
    if "command" in table and "url" in table and kind is not None:
        _drop(table, ("url", "headers") if kind == "stdio" else ("command", "args", "env", "cwd"), file, key, read)
    elif "url" in table and "command" not in table:
        _drop(table, ("args", "env", "cwd"), file, key, read)
    elif "command" in table and "url" not in table:
        _drop(table, ("headers",), file, key, read)


def _drop(table: dict[str, Any], names: tuple[str, ...], file: str, key: str, read: ClientServers) -> None:
    there = [name for name in names if name in table]
    dropped = [name for name in there if table.pop(name)]
    if dropped:
        read.warnings.append(f"{file}: {key}: {_list(dropped)} is ignored, since it does not fit this kind of server.")


def _take_timeout(table: dict[str, Any], value: object, file: str, key: str, read: ClientServers) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        read.warnings.append(f"{file}: {key}.timeout is ignored, since it is no number above 0.")
        return
    table["timeout_s"] = value / 1_000 if value > _MILLISECONDS_ABOVE else value


def _list(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
