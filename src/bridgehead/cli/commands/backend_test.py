"""`bridgehead backend test NAME`: start one configured backend by itself, list what it offers, and stop it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from bridgehead import app
from bridgehead.cli.errors import EXIT_FAILURE, print_error
from bridgehead.cli.options import ConfigOption, JsonOption, StateDirOption
from bridgehead.cli.output import plain, print_json, print_table
from bridgehead.cli.settings import load_settings
from bridgehead.cli.state import state_dir_or_default


def command(
    *,
    name: Annotated[str, typer.Argument(help="The backend's name in the configuration.", metavar="NAME")],
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
    json: JsonOption = False,
) -> None:
    """Print what the backend is and offers; no running bridge is needed, and none is touched."""
    probe = app.probe(load_settings(config), state_dir_or_default(state_dir), name)
    if json:
        print_json(asdict(probe))
    elif probe.ok:
        rows = (
            ("backend", probe.name),
            ("server", probe.server or "(does not say)"),
            ("protocol", probe.protocol or "(unknown)"),
            ("seconds", f"{probe.seconds:.2f}"),
            ("resources", probe.resources),
            ("prompts", probe.prompts),
            ("tools", len(probe.tools)),
            *(("", tool) for tool in probe.tools),
        )
        print_table(("", ""), rows, empty="")
    else:
        for line in probe.stderr:
            sys.stderr.write(f"{probe.name}: {plain(line)}\n")
        print_error(
            f"{probe.name} does not work: {plain(probe.cause or 'it does not say why')}",
            "mend it in the configuration, and test again.",
        )
    if not probe.ok:
        raise typer.Exit(EXIT_FAILURE)
