"""`bridgehead config show`: the settings in force, and where each comes from; secrets as `***`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, cast

import orjson

from bridgehead.cli.options import ConfigOption, JsonOption
from bridgehead.cli.output import plain, print_json, print_table, print_text
from bridgehead.config import load, show


def command(*, config: ConfigOption = None, json: JsonOption = False) -> None:
    """Print one line a setting."""
    shown = show(load(config, os.environ))
    if json:
        print_json(shown)
        return
    print_text(f"configuration: {shown['source'] or 'none found'}")
    # The origins stand in the order of the values, one for each.
    rows = [
        (key, orjson.dumps(value, default=str).decode(), origin)
        for (key, origin), value in zip(shown["origins"].items(), _values(shown["settings"]), strict=True)
    ]
    print_table(("SETTING", "VALUE", "FROM"), rows, empty="")
    for warning in shown["warnings"]:
        print_text(f"warning: {plain(warning)}")


def _values(value: Any) -> Iterator[Any]:
    if isinstance(value, dict) and value:
        for inner in cast("dict[str, Any]", value).values():
            yield from _values(inner)
    else:
        yield value
