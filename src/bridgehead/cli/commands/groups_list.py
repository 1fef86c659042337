"""`bridgehead groups list`: the groups, on and off, and how many tools each holds."""

from __future__ import annotations

import os
import sys
from typing import Any, cast

from bridgehead.cli.client import BridgeClient
from bridgehead.cli.options import JsonOption, StateDirOption, UrlOption
from bridgehead.cli.output import plain, print_json, print_table
from bridgehead.cli.shapes import mapping
from bridgehead.cli.state import find_bridge, state_dir_or_default


def command(*, url: UrlOption = None, state_dir: StateDirOption = None, json: JsonOption = False) -> None:
    """Print one line a group."""
    client = BridgeClient(find_bridge(url, state_dir_or_default(state_dir), os.environ))
    groups = client.get("/groups")
    if json:
        print_json(groups)
        return
    shown = {name: mapping(group) for name, group in groups.items()}
    rows = [
        (name, "on" if group.get("enabled") else "off", group.get("tools"), group.get("description"))
        for name, group in shown.items()
    ]
    print_table(("GROUP", "STATE", "TOOLS", "DESCRIPTION"), rows, empty="No group is configured.")
    for name, group in shown.items():
        for sentence in cast("list[Any]", group.get("unmatched") or []):
            sys.stderr.write(f"warning: {plain(name)}: {plain(sentence)}\n")
