"""`bridgehead backend list`: how every backend of the running bridge is."""

from __future__ import annotations

import os

from bridgehead.cli.client import BridgeClient
from bridgehead.cli.options import JsonOption, StateDirOption, UrlOption
from bridgehead.cli.output import print_json, print_table
from bridgehead.cli.shapes import mapping, mappings
from bridgehead.cli.state import find_bridge, state_dir_or_default


def command(*, url: UrlOption = None, state_dir: StateDirOption = None, json: JsonOption = False) -> None:
    """Print one line a backend."""
    client = BridgeClient(find_bridge(url, state_dir_or_default(state_dir), os.environ))
    backends = mappings(mapping(client.get("/health").get("backends")).get("list"))
    if json:
        print_json(backends)
        return
    rows = [
        (
            each.get("name"),
            f"{each.get('state')} (stale)" if each.get("stale") else each.get("state"),
            each.get("tools"),
            each.get("restarts"),
            each.get("protocol"),
            each.get("server"),
            each.get("cause"),
        )
        for each in backends
    ]
    print_table(
        ("BACKEND", "STATE", "TOOLS", "RESTARTS", "PROTOCOL", "SERVER", "CAUSE"),
        rows,
        empty="No backend is configured.",
    )
