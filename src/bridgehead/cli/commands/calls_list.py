"""`bridgehead calls list`: the latest calls on record, whether a bridge runs or not."""

from __future__ import annotations

from typing import Annotated

import typer

from bridgehead import app
from bridgehead.cli.calls import call_line
from bridgehead.cli.options import BackendOption, ErrorsOption, JsonOption, StateDirOption
from bridgehead.cli.output import print_json, print_line, print_text
from bridgehead.cli.state import state_dir_or_default
from bridgehead.surfaces.calls import as_shown


def command(
    *,
    last: Annotated[int, typer.Option("--last", "-n", min=1, max=100_000, help="How many, at the most.")] = 20,
    backend: BackendOption = None,
    errors: ErrorsOption = False,
    state_dir: StateDirOption = None,
    json: JsonOption = False,
) -> None:
    """Print one line a call, the latest last; with `--json` also the arguments, as they were recorded."""
    records = app.recent_calls(state_dir_or_default(state_dir), last, backend=backend, errors=errors)[::-1]
    if json:
        print_json([{**as_shown(record), "arguments": record.arguments} for record in records])
        return
    for record in records:
        shown = as_shown(record)
        print_line(f"{record.at.astimezone():%Y-%m-%d} {call_line(shown)}")
    if not records:
        print_text("No call is on record.")
