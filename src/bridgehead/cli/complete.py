"""What can come next on a command line: commands, options, and the names that a running bridge knows.

Started anew for each press of the tab key, so it imports no command, and asks the bridge only where a name is wanted. The
scripts of `bridgehead completion` call it through `COMPLETE_VARIABLE`, with the words up to the cursor as arguments.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from bridgehead.cli.client import Answer, BridgeClient
from bridgehead.cli.lazy import COMMANDS, GROUPS
from bridgehead.cli.shapes import mapping, mappings
from bridgehead.cli.signatures import Parameter, signature
from bridgehead.cli.state import find_bridge, state_dir_or_default
from bridgehead.core.errors import BridgeError

PATHS = ":paths"
"""Printed alone where a file or directory is wanted, which the shell knows best."""

CLIENT_NAMES = ("claude-desktop", "claude-code", "cursor", "vscode", "codex", "windsurf", "gemini")
"""The clients that `connect` and `import` know, told here as well because asking them takes as long as a command."""
_PATIENCE_S = 1.0
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_.+:@%/-]+")
"""What every shell takes as it stands; a name with anything else in it is not offered."""

Candidate = tuple[str, str]
"""A word, and what it stands for."""


def complete(words: Sequence[str]) -> list[str]:
    """The lines to print: one candidate a line, with a tab and its meaning behind it; or `PATHS`.

    Args:
        words: The words behind `bridgehead`, the last being the one that is typed.
    """
    *before, typed = words or [""]
    path, rest = _command(before)
    candidates = _next(path, rest, typed)
    if candidates is None:
        return [PATHS]
    prefix = ""
    if typed.startswith("--") and "=" in typed:
        name, _, typed = typed.partition("=")
        prefix = f"{name}="
    return [
        f"{prefix}{word}\t{' '.join(meaning.split())[:80]}"
        for word, meaning in candidates
        if word.startswith(typed) and _PLAIN_WORD.fullmatch(word)
    ]


def _command(before: Sequence[str]) -> tuple[str, list[str]]:
    """The command or group that the words name, and the words behind it."""
    words = [word for word in before if word not in ("--help", "--version")]
    for length in (2, 1):
        path = " ".join(words[:length])
        if len(words) >= length and (path in COMMANDS or (length == 1 and path in GROUPS)):
            return path, list(words[length:])
    return "", list(words)


def _next(path: str, rest: list[str], typed: str) -> list[Candidate] | None:
    """What can come next; None for a file or directory."""
    if path not in COMMANDS:
        if rest:
            return []
        options = [("--help", "Show what there is.")] if typed.startswith("-") else []
        return [*_commands_below(path), *options]
    parameters = signature(path)
    pending, arguments = _read(parameters, rest)
    if pending is None and typed.startswith("--") and "=" in typed:
        pending = _spelt(parameters, typed.partition("=")[0])
    if pending is not None:
        return _values(path, pending, rest)
    if typed.startswith("-"):
        return [*_options(parameters, rest), ("--help", "Show what it does.")]
    positional = [parameter for parameter in parameters if not parameter.spellings]
    if arguments >= len(positional) and not (positional and positional[-1].many):
        return []
    return _values(path, positional[min(arguments, len(positional) - 1)], rest)


def _commands_below(group: str) -> Iterator[Candidate]:
    for path, text in COMMANDS.items():
        above, _, name = path.rpartition(" ")
        if above == group:
            yield name, text
    if not group:
        yield from GROUPS.items()


def _read(parameters: Sequence[Parameter], rest: Sequence[str]) -> tuple[Parameter | None, int]:
    """The option whose value comes next, if one does, and how many arguments were given."""
    pending: Parameter | None = None
    arguments = 0
    for word in rest:
        if pending is not None:
            pending = None
        elif word.startswith("-") and word != "-":
            option = _spelt(parameters, word)
            pending = option if option is not None and option.takes_value else None
        else:
            arguments += 1
    return pending, arguments


def _spelt(parameters: Iterable[Parameter], word: str) -> Parameter | None:
    return next((parameter for parameter in parameters if word in parameter.spellings), None)


def _options(parameters: Iterable[Parameter], rest: Sequence[str]) -> Iterator[Candidate]:
    for parameter in parameters:
        if not any(spelling in rest for spelling in parameter.spellings):
            yield from ((spelling, parameter.help) for spelling in parameter.spellings if spelling.startswith("--"))


def _values(path: str, parameter: Parameter, rest: Sequence[str]) -> list[Candidate] | None:
    if parameter.is_path:
        return None
    if parameter.choices:
        return [(choice, "") for choice in parameter.choices]
    ask = _NAMES.get((path, parameter.name)) or _NAMES.get(("", parameter.name))
    return ask(_client(rest)) if ask is not None else []


def _client(rest: Sequence[str]) -> BridgeClient:
    """The bridge that the command line so far is about."""
    said = dict(pairwise(rest))
    where = said.get("--state-dir")
    url = said.get("--url") or os.environ.get("BRIDGEHEAD_URL") or None
    target = find_bridge(url, state_dir_or_default(Path(where) if where else None), os.environ)
    return BridgeClient(target, timeout_s=_PATIENCE_S)


def _tools(client: BridgeClient) -> list[Candidate]:
    return [(str(tool.get("name")), str(tool.get("description") or "")) for tool in client.tools()]


def _backends(client: BridgeClient) -> list[Candidate]:
    health: Answer = client.get("/health")
    found = mappings(mapping(health.get("backends")).get("list"))
    return [(str(each.get("name")), f"{each.get('state')}, {each.get('tools')} tools") for each in found]


def _groups(client: BridgeClient) -> list[Candidate]:
    return [(name, str(mapping(group).get("description") or "")) for name, group in client.get("/groups").items()]


def _clients(_bridge: BridgeClient) -> list[Candidate]:
    return [(name, "") for name in CLIENT_NAMES]


_NAMES: dict[tuple[str, str], Callable[[BridgeClient], list[Candidate]]] = {
    ("tools call", "name"): _tools,
    ("tools show", "name"): _tools,
    ("backend test", "name"): _backends,
    ("backend remove", "name"): _backends,
    ("groups enable", "name"): _groups,
    ("groups disable", "name"): _groups,
    ("connect", "client"): _clients,
    ("import", "clients"): _clients,
    ("", "backend"): _backends,
    ("", "backends"): _backends,
    ("", "group"): _groups,
}
"""Which names stand for a parameter: of one command, or of any."""


def main(words: Sequence[str]) -> str:
    """What to print for these words; nothing where the bridge that would know does not answer."""
    try:
        return "".join(f"{line}\n" for line in complete(words))
    except BridgeError:
        return ""
