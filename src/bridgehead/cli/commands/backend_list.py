"""`bridgehead backend list`: how every backend of the running bridge is."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from bridgehead.cli.client import BridgeClient
from bridgehead.cli.options import JsonOption, StateDirOption, UrlOption
from bridgehead.cli.output import plain, print_json, print_table, print_text
from bridgehead.cli.shapes import mapping, mappings
from bridgehead.cli.state import find_bridge, state_dir_or_default


def command(*, url: UrlOption = None, state_dir: StateDirOption = None, json: JsonOption = False) -> None:
    """Print one line a backend; that the configuration on disk is not the one in force goes to standard error."""
    client = BridgeClient(find_bridge(url, state_dir_or_default(state_dir), os.environ))
    # /health answers anyone, so whether the credential is good is asked of a list that needs it.
    client.get("/groups")
    health = client.get("/health")
    backends = mappings(mapping(health.get("backends")).get("list"))
    _warn(mapping(health.get("config")))
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
            _clock(each.get("since")),
        )
        for each in backends
    ]
    print_table(
        ("BACKEND", "STATE", "TOOLS", "RESTARTS", "PROTOCOL", "SERVER", "SINCE"),
        rows,
        empty="No backend is configured.",
    )
    for each in backends:
        _explain(each)
    tools = mapping(health.get("tools"))
    hidden = f", and {tools.get('hidden')} hidden" if tools.get("hidden") else ""
    print_text(
        f"{tools.get('external', 0)} tools of backends and {tools.get('builtin', 0)} of the bridge itself:"
        f" {tools.get('total', 0)} can be called{hidden}."
    )


def _explain(backend: Mapping[str, Any]) -> None:
    """Why it is as it is, what to do, and when it is tried next, below the table: sentences do not fit into columns."""
    if not backend.get("cause"):
        return
    cause, _, hint = plain(backend["cause"]).partition(" hint: ")
    print_text(f"{plain(backend.get('name'))}: {cause}")
    if hint:
        print_text(f"  hint: {hint}")
    if backend.get("next_try"):
        print_text(f"  tried next at {_clock(backend['next_try'])}")


def _clock(moment: object) -> str | None:
    """The time of day here of a moment as `/health` writes it; with the date where that is not today's."""
    try:
        here = datetime.fromisoformat(str(moment)).astimezone()
    except ValueError:
        return None
    today = here.date() == datetime.now().astimezone().date()
    return f"{here:%H:%M:%S}" if today else f"{here:%Y-%m-%d %H:%M:%S}"


def _warn(config: Mapping[str, Any]) -> None:
    error = mapping(config.get("error"))
    if error:
        cause, _, hint = plain(error.get("message")).partition(" hint: ")
        sys.stderr.write(
            f"warning: {plain(config.get('source'))} cannot be used since {_clock(error.get('since'))}; "
            f"the last good configuration stays in force.\n{cause}\n"
        )
        if hint:
            sys.stderr.write(f"hint: {hint}\n")
    keys = config.get("needs_restart")
    if isinstance(keys, list) and keys:
        named = ", ".join(plain(key) for key in cast("list[object]", keys))
        sys.stderr.write(f"warning: these keys take a restart of the bridge: {named}.\n")
