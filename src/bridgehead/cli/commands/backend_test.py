"""`bridgehead backend test NAME`: start one configured backend by itself, list what it offers, and stop it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bridgehead import probing
from bridgehead.cli.errors import EXIT_FAILURE, print_error
from bridgehead.cli.options import ConfigOption, JsonOption, StateDirOption
from bridgehead.cli.output import plain, print_json, print_table
from bridgehead.cli.progress import ProgressLine
from bridgehead.cli.settings import load_settings
from bridgehead.cli.state import state_dir_or_default
from bridgehead.diagnosis import Trial


def command(
    *,
    name: Annotated[str, typer.Argument(help="The backend's name in the configuration.", metavar="NAME")],
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
    json: JsonOption = False,
) -> None:
    """Print what the backend is and offers; no running bridge is needed, and none is touched."""
    settings = load_settings(config)
    with ProgressLine("trying the backend") as line:
        probe = probing.probe(settings, state_dir_or_default(state_dir), name, told=line.show)
    if json:
        print_json(probe.as_dict())
    elif probe.ok:
        rows = (
            ("backend", probe.name),
            ("server", probe.server or "(does not say)"),
            ("protocol", probe.protocol or "(unknown)"),
            ("seconds", f"{probe.seconds:.2f}"),
            ("resources", probe.resources),
            ("prompts", probe.prompts),
            ("tried", _tried(probe.trial)),
            ("tools", len(probe.tools)),
            *(("", tool) for tool in probe.tools),
        )
        print_table(("", ""), rows, empty="")
    else:
        for line in probe.stderr:
            sys.stderr.write(f"{probe.name}: {plain(line)}\n")
        # A cause is an error's sentence, with its hint behind it where there is one.
        cause, _, hint = plain(probe.cause or "it does not say why.").partition(" hint: ")
        print_error(f"{probe.name} does not work: {cause}", hint or "mend it in the configuration, and test again.")
    if not probe.ok:
        raise typer.Exit(EXIT_FAILURE)


def _tried(trial: Trial | None) -> str:
    if trial is None or trial.tool is None:
        return "only listed: no tool says that it can be called safely without arguments"
    if trial.ok:
        return f"{trial.tool} answered in {trial.seconds:.2f} s"
    return f"{trial.tool} {'says that it failed' if trial.answered else 'was not answered'}: {trial.cause}"
