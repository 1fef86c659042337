"""From a server as a client has it to a backend of ours: which key means what in which client.

What another client means by a key that we have no equal for is not guessed: it is left out and named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from bridgehead.config.client_json import KINDS
from bridgehead.config.clients.places import Machine, Place, project_of
from bridgehead.config.clients.variables import Translator, Untranslatable
from bridgehead.config.tables import as_table

_KINDS = {**KINDS, "remote": "http"}
_URL_KEYS = {"url": None, "serverUrl": None, "httpUrl": "http"}
"""Where an address may stand, and which transport the key stands for."""
_FILTERS = ("includeTools", "excludeTools", "enabled_tools", "disabled_tools", "disabledTools", "tools")
_SIGN_INS = ("oauth", "auth", "authProviderType", "oauth_resource", "scopes")
_HELPERS = ("headersHelper", "http_headers_helper")
_UNDERSTOOD = frozenset(
    {
        *("command", "args", "env", "cwd", "headers", "type", "transport", "disabled", "enabled", "timeout"),
        *("env_vars", "bearer_token_env_var", "bearer_token", "http_headers", "env_http_headers"),
        *("tool_timeout_sec", "startup_timeout_sec", "startup_timeout_ms", "envFile"),
        *_URL_KEYS,
        *_FILTERS,
        *_SIGN_INS,
        *_HELPERS,
    }
)
_SILENT = frozenset({"trust", "autoApprove", "alwaysAllow", "description", "gallery", "version", "required", "name"})
"""Keys that say nothing about how the server is launched."""


class NotTaken(ValueError):
    """This server cannot be taken over; the message says why, and what to do where something can be done."""


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server in a client's file.

    Attributes:
        place: The file; for a server of one project, as if that project's own file.
        name: As the client has it.
        entry: What stands under the name.
        inputs: VS Code's `inputs`, by id.
        off: Why the client does not use it, or None where it does.
    """

    place: Place
    name: str
    entry: object
    project: Path | None = None
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    off: str | None = None


@dataclass(slots=True)
class Translated:
    """A server as a backend of ours.

    Attributes:
        table: As our configuration has it; credentials are still in it.
        notes: What was left out or has to be done, one sentence each.
    """

    table: dict[str, Any]
    notes: list[str] = field(default_factory=list[str])

    @property
    def transport(self) -> str:
        """`stdio`, `http` or `sse`."""
        if "command" in self.table:
            return "stdio"
        return "sse" if self.table.get("transport") == "sse" else "http"


def translate(server: FoundServer, machine: Machine) -> Translated:
    """The server as a backend.

    Raises:
        NotTaken: It is of a kind that is not known, or means something that there is no equal for.
    """
    entry = as_table(server.entry)
    if entry is None:
        raise NotTaken("it is no object")
    project = server.project or project_of(server.place)
    words = Translator(
        server.place.client, machine.home, project, "\\" if machine.platform == "win32" else "/", server.inputs
    )
    made = Translated({})
    kind = _kind(entry)
    try:
        if kind == "stdio":
            _take_program(made, entry, words, project)
        else:
            _take_address(made, entry, words, kind, server.place.client)
    except Untranslatable as error:
        raise NotTaken(str(error)) from None
    _take_timeouts(made, entry, server.place.client)
    _note_the_rest(made, entry)
    made.notes += [
        f"{server.place.client} asks for “{asked.title}”: bridgehead secret set {asked.secret}" for asked in words.asked
    ]
    return made


def is_off(entry: object) -> bool:
    """Whether the entry itself says that it is switched off."""
    table = as_table(entry) or {}
    return table.get("disabled") is True or table.get("enabled") is False


def _kind(entry: Mapping[str, Any]) -> str | None:
    """`stdio`, `http`, `sse`, or None for an address that does not say."""
    named = entry.get("type", entry.get("transport"))
    if named is not None:
        kind = _KINDS.get(named.lower()) if isinstance(named, str) else None
        if kind is None:
            raise NotTaken(f"its kind `{named}` is not known here; stdio, http and sse are")
        if kind == "stdio" and "command" not in entry:
            raise NotTaken("it says stdio and has no `command`")
        return kind
    if entry.get("command") is not None:
        return "stdio"
    found = next((key for key in _URL_KEYS if entry.get(key) is not None), None)
    if found is None:
        raise NotTaken("it has neither `command` nor `url`")
    return _URL_KEYS[found]


def _take_program(made: Translated, entry: Mapping[str, Any], words: Translator, project: Path | None) -> None:
    made.table["command"] = words.text(_text(entry, "command"))
    args = [words.text(arg) for arg in _texts(entry, "args")]
    if args:
        made.table["args"] = args
    env = {key: words.text(value) for key, value in _table(entry, "env").items()}
    env |= {name: f"${{{name}}}" for name in _forwarded(entry) if name not in env}
    if env:
        made.table["env"] = env
    cwd = words.text(_text(entry, "cwd")) if entry.get("cwd") is not None else None
    if project is not None:
        # A project's servers start in the project.
        made.table["cwd"] = str(project / cwd) if cwd is not None else str(project)
    elif cwd is not None:
        made.table["cwd"] = cwd
        if not cwd.startswith(("/", "~", "$")) and cwd[1:2] != ":":
            made.notes.append(f"`cwd` {cwd} is relative: make it absolute in the configuration")


def _forwarded(entry: Mapping[str, Any]) -> list[str]:
    """The variables that Codex hands on: names, or tables with a `name`."""
    names: list[str] = []
    for one in cast("list[Any]", entry.get("env_vars") or []):
        table = as_table(one)
        names.append(str(table.get("name")) if table is not None else str(one))
    return names


def _take_address(made: Translated, entry: Mapping[str, Any], words: Translator, kind: str | None, client: str) -> None:
    key = next((key for key in ("httpUrl", "serverUrl", "url") if entry.get(key) is not None), None)
    if key is None:
        raise NotTaken("it has no `url`")
    made.table["url"] = words.text(_text(entry, key))
    if kind is None and client == "gemini" and key == "url":
        kind = "sse"
    if kind is not None:
        made.table["transport"] = kind
    headers = {name: words.text(value) for name, value in _table(entry, "headers").items()}
    headers |= {name: words.text(value) for name, value in _table(entry, "http_headers").items()}
    headers |= {name: f"${{{variable}}}" for name, variable in _table(entry, "env_http_headers").items()}
    if entry.get("bearer_token_env_var") is not None:
        headers["Authorization"] = f"Bearer ${{{_text(entry, 'bearer_token_env_var')}}}"
    elif entry.get("bearer_token") is not None:
        headers["Authorization"] = f"Bearer {words.text(_text(entry, 'bearer_token'))}"
    if headers:
        made.table["headers"] = headers


def _take_timeouts(made: Translated, entry: Mapping[str, Any], client: str) -> None:
    milliseconds = {"timeout": "timeout_s"} if client in {"claude-code", "gemini"} else {}
    milliseconds["startup_timeout_ms"] = "start_timeout_s"
    seconds = {"tool_timeout_sec": "timeout_s", "startup_timeout_sec": "start_timeout_s"}
    for key, ours in (*milliseconds.items(), *seconds.items()):
        value = entry.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            number = value / 1_000 if key in milliseconds else value
            made.table[ours] = int(number) if number == int(number) else number
    if client not in {"claude-code", "gemini"} and entry.get("timeout") is not None:
        made.notes.append("`timeout` is left out: set `timeout_s` where 30 s does not fit")


def _note_the_rest(made: Translated, entry: Mapping[str, Any]) -> None:
    def said(keys: tuple[str, ...]) -> str:
        return ", ".join(f"`{key}`" for key in keys if entry.get(key))

    if filters := said(_FILTERS):
        made.notes.append(f"{filters} is left out, so all its tools are shown: choose some with a group")
    if sign_ins := said(_SIGN_INS):
        made.notes.append(f"{sign_ins} is left out: the bridge does not sign in for you yet, so it may be refused")
    if helpers := said(_HELPERS):
        made.notes.append(f"{helpers} is left out: give the headers themselves")
    if said(("envFile",)):
        made.notes.append("`envFile` is not read: put its variables into `env`")
    others = [key for key in entry if key not in _UNDERSTOOD and key not in _SILENT and not key.startswith("x-")]
    if others:
        made.notes.append(", ".join(f"`{key}`" for key in others) + " is left out, since it is a setting of the client")


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise NotTaken(f"its `{key}` is no text")
    return value


def _texts(entry: Mapping[str, Any], key: str) -> list[str]:
    values = entry.get(key)
    if values is None:
        return []
    if not isinstance(values, list):
        raise NotTaken(f"its `{key}` is no list")
    return [_scalar(value, key) for value in cast("list[Any]", values)]


def _table(entry: Mapping[str, Any], key: str) -> dict[str, str]:
    values = entry.get(key)
    if values is None:
        return {}
    table = as_table(values)
    if table is None:
        raise NotTaken(f"its `{key}` is no object")
    # VS Code takes a variable away with null, and ours is not there to begin with.
    return {name: _scalar(value, key) for name, value in table.items() if value is not None}


def _scalar(value: object, key: str) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            raise NotTaken(f"its `{key}` holds something that is no text")
