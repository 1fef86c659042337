"""The bridge as a server in each client's own words: over HTTP with the token or a variable for it, or to be started.

token      the local token itself, in a user's file that is nobody else's to read
variable   a placeholder for BRIDGEHEAD_TOKEN, in files that others may read
stdio      a command line, for clients that cannot send headers; no token is needed
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bridgehead.config.clients.places import Client, Scope
from bridgehead.core.errors import BridgeError, Kind

TOKEN_VARIABLE = "BRIDGEHEAD_TOKEN"  # noqa: S105  the name of a variable
_PLACEHOLDERS = {
    "claude-code": f"${{{TOKEN_VARIABLE}}}",
    "cursor": f"${{env:{TOKEN_VARIABLE}}}",
    "vscode": f"${{env:{TOKEN_VARIABLE}}}",
    "windsurf": f"${{env:{TOKEN_VARIABLE}}}",
    "gemini": f"${{{TOKEN_VARIABLE}}}",
}
_URL_KEYS = {"windsurf": "serverUrl", "gemini": "httpUrl"}
_STDIO_ONLY = frozenset({"claude-desktop"})
_TYPED = frozenset({"claude-code", "vscode"})
"""Clients that want to be told the kind."""


class FormUnfit(BridgeError):
    """The client cannot be connected in the way that was asked for."""

    kind = Kind.INVALID
    code = "unfit_form"


class Form(StrEnum):
    """How a client reaches the bridge."""

    TOKEN = "token"  # noqa: S105  the name of a form
    VARIABLE = "variable"
    STDIO = "stdio"


@dataclass(frozen=True, slots=True)
class Reach:
    """What a client has to know.

    Attributes:
        url: The MCP endpoint.
        command: The command line that starts a bridge, all paths absolute.
    """

    url: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The form for a client's file, and what its owner has to know about it."""

    form: Form
    notes: tuple[str, ...] = ()


def choose(client: Client, scope: Scope, *, over_http: bool | None, is_private: bool, token_is_known: bool) -> Choice:
    """The form for this client and file.

    Args:
        client: The client.
        scope: Of the file; a project's is shared with others, so the token never goes there.
        over_http: What was asked for; None chooses.
        is_private: Whether nobody else reads the file.
        token_is_known: Whether the bridge is this machine's, so that the local token lets in.

    Raises:
        FormUnfit: The client cannot send headers, and HTTP was asked for.
    """
    if client.name in _STDIO_ONLY:
        if over_http:
            raise FormUnfit(f"{client.title} cannot send a token over HTTP.", hint="connect it with --stdio.")
        return Choice(Form.STDIO)
    if over_http is False:
        return Choice(Form.STDIO)
    variable = f"set {TOKEN_VARIABLE} where {client.title} runs"
    if scope == "project":
        return Choice(Form.VARIABLE, (f"A project's file is shared, so the token is not in it: {variable}.",))
    if not token_is_known:
        return Choice(Form.VARIABLE, (f"The token of a bridge elsewhere is not known here: {variable}.",))
    if is_private:
        return Choice(
            Form.TOKEN,
            (
                "The file has the local token in it, which lets in whoever reads it: do not pass the file on.",
                "The bridge has to be running when the client starts: bridgehead serve.",
            ),
        )
    others = "The token is not in the file, since others may read it or it belongs to a repository"
    if over_http:
        return Choice(Form.VARIABLE, (f"{others}: {variable}.",))
    return Choice(
        Form.STDIO,
        (
            f"{others}. So the client starts a bridge of its own, with servers of its own, which have to be on its PATH.",
            "To reach the running bridge instead: make the file yours alone (chmod 600), or give --http, and connect again.",
        ),
    )


def bridge_entry(client: Client, form: Form, reach: Reach, token: str) -> dict[str, Any]:
    """What to write under the bridge's name; `token` is in it for `Form.TOKEN` only."""
    if form is Form.STDIO:
        kind = {"type": "stdio"} if client.name in _TYPED else {}
        return {**kind, "command": reach.command[0], "args": list(reach.command[1:])}
    if client.name == "codex":
        if form is Form.VARIABLE:
            return {"url": reach.url, "bearer_token_env_var": TOKEN_VARIABLE}
        return {"url": reach.url, "http_headers": {"Authorization": f"Bearer {token}"}}
    kind = {"type": "http"} if client.name in _TYPED else {}
    bearer = token if form is Form.TOKEN else _PLACEHOLDERS[client.name]
    return {**kind, _URL_KEYS.get(client.name, "url"): reach.url, "headers": {"Authorization": f"Bearer {bearer}"}}


def address_in(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry starts or reaches, whichever client it is of."""
    url = next((entry[key] for key in ("url", "serverUrl", "httpUrl") if isinstance(entry.get(key), str)), "")
    args = entry.get("args")
    return {"url": url, "command": entry.get("command", ""), "args": args if isinstance(args, list) else []}
