"""`bridgehead doctor [BACKEND…]`: look for everything that is wrong, and say what mends it."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from bridgehead import app, probing
from bridgehead.cli.errors import EXIT_FAILURE
from bridgehead.cli.options import ConfigOption, JsonOption, StateDirOption
from bridgehead.cli.output import Colour, painted, plain, print_json, print_line
from bridgehead.cli.progress import ProgressLine
from bridgehead.cli.state import state_dir_or_default
from bridgehead.diagnosis import Diagnosis, Level, Question, diagnose

_COLOURS = {Level.WELL: Colour.GREEN, Level.WARNING: Colour.YELLOW, Level.PROBLEM: Colour.RED}
_WIDTH = len(Level.PROBLEM)
_STDERR_LINES = 5


def command(
    *,
    backends: Annotated[
        list[str] | None, typer.Argument(help="The backends to look at; all of them without.", metavar="BACKEND")
    ] = None,
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
    no_start: Annotated[
        bool, typer.Option("--no-start", help="Look at files and settings only; start nothing.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Print one line a finding, with what mends it; the exit code says whether there is a problem."""
    where = state_dir_or_default(state_dir)
    question = Question(config, where, tuple(backends or ()), start=not no_start)
    with ProgressLine("trying the backends") as line:
        found = diagnose(
            question,
            os.environ,
            prober=lambda settings, names: probing.probe_each(settings, where, names, told=line.show),
            keeper=lambda settings: app.secret_reader(settings, where),
        )
    if json:
        print_json(found.as_dict())
    else:
        _print(found)
    if not found.ok:
        raise typer.Exit(EXIT_FAILURE)


def _print(found: Diagnosis) -> None:
    failed = {f"backend {probe.name}": probe.stderr for probe in found.probes if not probe.ok}
    for finding in found.findings:
        word = painted(f"{finding.level.value:<{_WIDTH}}", _COLOURS[finding.level])
        print_line(f"{word}  {plain(finding.about)}: {plain(finding.message)}")
        for line in failed.pop(finding.about, ())[-_STDERR_LINES:]:
            print_line(f"{'':{_WIDTH}}  | {plain(line)}")
        if finding.mend is not None:
            print_line(f"{'':{_WIDTH}}  hint: {plain(finding.mend)}")
    problems, warnings = found.count(Level.PROBLEM), found.count(Level.WARNING)
    tried = (
        f"{sum(probe.ok for probe in found.probes)} of {len(found.probes)} backends came up; " if found.probes else ""
    )
    print_line(f"{tried}{_counted(problems, 'problem')}, {_counted(warnings, 'warning')}.")


def _counted(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"
