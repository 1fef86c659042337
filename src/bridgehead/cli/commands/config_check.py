"""`bridgehead config check`: say whether the configuration can be used, here and now."""

from __future__ import annotations

import os
from dataclasses import asdict

import typer

from bridgehead import app
from bridgehead.cli.errors import EXIT_FAILURE
from bridgehead.cli.options import ConfigOption, JsonOption, StateDirOption
from bridgehead.cli.output import plain, print_json, print_table, print_text
from bridgehead.cli.state import state_dir_or_default
from bridgehead.config import Report, check, load


def command(*, config: ConfigOption = None, state_dir: StateDirOption = None, json: JsonOption = False) -> None:
    """Print what is wrong and what is doubtful; the exit code says whether every enabled backend could be started."""
    settings = load(config, os.environ)
    report = check(settings, os.environ, app.secret_reader(settings, state_dir_or_default(state_dir)))
    if json:
        print_json({"ok": report.ok, **asdict(report)})
    else:
        _print(report)
    if not report.ok:
        raise typer.Exit(EXIT_FAILURE)


def _print(report: Report) -> None:
    print_text(f"configuration: {report.source or 'none found'}")
    for problem in report.problems:
        print_text(f"problem: {plain(problem)}")
    for backend, missing in report.missing.items():
        for each in missing:
            print_text(f"problem: {plain(backend)} cannot start: {each.variable} is not set (named in {each.field}).")
    for backend, secrets in report.missing_secrets.items():
        for each in secrets:
            print_text(
                f"problem: {plain(backend)} cannot start: the secret {each.secret} is not set (named in {plain(each.field)});"
                f" run `bridgehead secret set {each.secret}`."
            )
    for warning in report.warnings:
        print_text(f"warning: {plain(warning)}")
    if report.groups:
        rows = [
            (group.name, "on" if group.enabled else "off", group.origin, group.variable, ", ".join(group.backends))
            for group in report.groups
        ]
        print_table(("GROUP", "STATE", "SAID BY", "SWITCH", "BACKENDS"), rows, empty="")
    print_text("ok: every enabled backend could be started." if report.ok else "not ok: see the problems above.")
