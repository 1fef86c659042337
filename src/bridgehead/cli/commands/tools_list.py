"""`bridgehead tools list`: the tools that can be called, all or some."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from bridgehead.cli.client import BridgeClient
from bridgehead.cli.options import GroupOption, JsonOption, StateDirOption, UrlOption
from bridgehead.cli.output import print_json, print_table
from bridgehead.cli.shapes import mapping
from bridgehead.cli.state import find_bridge, state_dir_or_default

_SEPARATOR = "__"
_DESCRIPTION_LENGTH = 100


def command(  # noqa: PLR0913  one parameter an option
    *,
    group: GroupOption = None,
    backend: Annotated[str | None, typer.Option("--backend", "-b", help="Only tools named BACKEND__….")] = None,
    query: Annotated[
        str | None, typer.Option("--query", "-q", help="Only tools with all these words in name or description.")
    ] = None,
    url: UrlOption = None,
    state_dir: StateDirOption = None,
    json: JsonOption = False,
) -> None:
    """Print one line a tool."""
    client = BridgeClient(find_bridge(url, state_dir_or_default(state_dir), os.environ))
    tools = [tool for tool in client.tools(group) if _is_of(tool, backend) and _has_words(tool, query)]
    if json:
        print_json(tools)
        return
    print_table(
        ("TOOL", "RISK", "DESCRIPTION"),
        [(tool.get("name"), _risk(tool), _summary(tool)) for tool in tools],
        empty="No tool fits.",
    )


def _is_of(tool: Mapping[str, Any], backend: str | None) -> bool:
    """By the name's prefix, which is all that a client knows; `builtin` means the tools that have none."""
    name = str(tool.get("name"))
    if backend is None:
        return True
    if backend == "builtin":
        return _SEPARATOR not in name
    return name.startswith(re.sub(r"[^A-Za-z0-9_-]", "_", backend) + _SEPARATOR)


def _has_words(tool: Mapping[str, Any], query: str | None) -> bool:
    text = f"{tool.get('name')} {tool.get('title') or ''} {tool.get('description') or ''}".casefold()
    return all(word in text for word in (query or "").casefold().split())


def _summary(tool: Mapping[str, Any]) -> str:
    line = " ".join(str(tool.get("description") or "").split())
    return line if len(line) <= _DESCRIPTION_LENGTH else f"{line[: _DESCRIPTION_LENGTH - 1]}…"


def _risk(tool: Mapping[str, Any]) -> str:
    hints = mapping(tool.get("annotations"))
    if hints.get("readOnlyHint") is True:
        return "read"
    return "write" if hints.get("destructiveHint") is False else "destructive"
