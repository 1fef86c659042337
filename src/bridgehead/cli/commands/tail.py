"""`bridgehead tail`: the calls of the running bridge, each as it ends, until Ctrl-C."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import orjson

from bridgehead.cli.calls import GOOD_VERDICTS, call_line
from bridgehead.cli.client import BridgeClient, BridgeUnreachable
from bridgehead.cli.options import BackendOption, ErrorsOption, JsonOption, StateDirOption, UrlOption
from bridgehead.cli.output import print_line
from bridgehead.cli.state import find_bridge, state_dir_or_default

PATH = "/api/calls/stream"


def command(
    *,
    backend: BackendOption = None,
    errors: ErrorsOption = False,
    url: UrlOption = None,
    state_dir: StateDirOption = None,
    json: JsonOption = False,
) -> None:
    """Print one line a call; with `--json` one object a line.

    Raises:
        BridgeUnreachable: No bridge answers, or it has ended.
    """
    target = find_bridge(url, state_dir_or_default(state_dir), os.environ)
    for kind, told in BridgeClient(target).events(PATH):
        if kind == "lost":
            sys.stderr.write(f"warning: {told.get('lost')} calls were not shown, since they came too fast.\n")
        elif kind == "call" and _is_wanted(told, backend, errors=errors):
            print_line(orjson.dumps(told).decode() if json else call_line(told))
            sys.stdout.flush()
    raise BridgeUnreachable(
        f"The bridge at {target.url} has ended.", hint="bridgehead calls list shows what is on record."
    )


def _is_wanted(call: Mapping[str, Any], backend: str | None, *, errors: bool) -> bool:
    if errors and call.get("verdict") in GOOD_VERDICTS:
        return False
    return backend is None or call.get("backend") == backend
