"""Showing a tool's result on the command line."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import orjson
import typer

from bridgehead.cli.client import error_of
from bridgehead.cli.errors import EXIT_FAILURE
from bridgehead.cli.output import plain
from bridgehead.cli.shapes import mapping, mappings

_ERROR_META_KEY = "bridgehead/error"
"""Where the bridge puts its own errors in a tool result, so that a model can read them."""


def text_of(result: Mapping[str, Any]) -> str:
    """The result's content for a reader; what is not text is named, and `--json` shows it."""
    shown = "\n".join(_block(block) for block in mappings(result.get("content")))
    if not shown and "structuredContent" in result:
        return orjson.dumps(result["structuredContent"], option=orjson.OPT_INDENT_2).decode()
    return shown


def _block(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "resource_link":
            return f"[resource {block.get('uri')}]"
        case "resource":
            held = mapping(block.get("resource"))
            text = held.get("text")
            return text if isinstance(text, str) else f"[resource {held.get('uri')}; --json shows it]"
        case kind:
            size = len(str(block.get("data", "")))
            return f"[{kind} {block.get('mimeType', '')}, {size} characters of base64; --json shows it]"


def fail_on_error(result: Mapping[str, Any]) -> None:
    """Where the tool says that it failed, print what it says to standard error and exit.

    Raises:
        BridgeError: The bridge itself says so: the tool was not run, or did not answer.
    """
    if result.get("isError") is True:
        ours = mapping(mapping(result.get("_meta")).get(_ERROR_META_KEY))
        if isinstance(ours.get("message"), str):
            raise error_of(ours)
        sys.stderr.write(f"{plain(text_of(result)) or 'The tool failed and says nothing.'}\n")
        raise typer.Exit(EXIT_FAILURE)
