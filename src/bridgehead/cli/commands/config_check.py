"""`bridgehead config check`: say whether the configuration can be used, here and now."""

from __future__ import annotations

import os
from dataclasses import asdict, replace

import typer

from bridgehead import app
from bridgehead.catalog import unmatched_choices
from bridgehead.cli.errors import EXIT_FAILURE
from bridgehead.cli.options import ConfigOption, JsonOption, StateDirOption
from bridgehead.cli.output import plain, print_json, print_table, print_text
from bridgehead.cli.state import state_dir_or_default
from bridgehead.config import Report, check, load


def command(*, config: ConfigOption = None, state_dir: StateDirOption = None, json: JsonOption = False) -> None:
    """Print what would not start and what is doubtful; the exit code says whether everything enabled could be started."""
    settings = load(config, os.environ)
    state = state_dir_or_default(state_dir)
    store = app.secret_reader(settings, state)
    report = check(settings, os.environ, store)
    # What the backends offered when a bridge last had them: nothing is started to find out.
    listings = app.kept_listings(settings, state, os.environ, store)
    offered = {name: [str(tool.get("name")) for tool in listing.tools] for name, listing in listings.items()}
    doubts = [
        f"groups.{group}: {sentence}"
        for group, sentences in unmatched_choices(settings.groups, offered).items()
        for sentence in sentences
    ]
    report = replace(report, warnings=(*report.warnings, *doubts))
    if json:
        print_json({"ok": report.ok, **asdict(report)})
    else:
        _print(report)
    if not report.ok:
        raise typer.Exit(EXIT_FAILURE)


def _print(report: Report) -> None:
    print_text(f"configuration: {report.source or 'none found'}")
    if report.would_not_start:
        print_text("would not start:")
    for obstacle in report.would_not_start:
        print_text(f"  {plain(obstacle.backend or 'the bridge')}: {plain(obstacle.cause)}")
        print_text(f"    hint: {plain(obstacle.mend)}")
    for warning in report.warnings:
        print_text(f"warning: {plain(warning)}")
    if report.groups:
        rows = [
            (group.name, "on" if group.enabled else "off", group.origin, group.variable, ", ".join(group.backends))
            for group in report.groups
        ]
        print_table(("GROUP", "STATE", "SAID BY", "SWITCH", "BACKENDS"), rows, empty="")
    print_text(
        "ok: every enabled backend could be started." if report.ok else "not ok: see what would not start above."
    )
