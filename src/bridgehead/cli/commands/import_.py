"""`bridgehead import [CLIENT…]`: take over the servers that other clients have."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bridgehead import app
from bridgehead.cli.address import configured_url
from bridgehead.cli.asking import agrees, numbers, somebody_is_there
from bridgehead.cli.options import ConfigOption, JsonOption, StateDirOption
from bridgehead.cli.output import plain, print_json, print_table, print_text
from bridgehead.cli.state import find_bridge, state_dir_or_default
from bridgehead.config.clients import (
    CLIENTS,
    Findings,
    Machine,
    Planned,
    Planner,
    Verdict,
    chosen,
    client_named,
    place_of_file,
    read_clients,
    read_place,
    take_over,
)
from bridgehead.config.editing import ConfigFile, open_config

_STARTS_LENGTH = 70


def command(  # noqa: PLR0913  one parameter an option
    *,
    clients: Annotated[
        list[str] | None,
        typer.Argument(
            help="Any of claude-desktop, claude-code, cursor, vscode, codex, windsurf, gemini; all of them by default.",
            metavar="CLIENT",
        ),
    ] = None,
    from_file: Annotated[
        Path | None, typer.Option("--from", help="Read this file instead of the clients' own.", metavar="FILE")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Take all that can be taken.")] = False,
    pick: Annotated[
        list[str] | None,
        typer.Option("--pick", help="Take this one, by its name or CLIENT:NAME; may be repeated.", metavar="NAME"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be taken over.")] = False,
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
    json: JsonOption = False,
) -> None:
    """Show what there is, let it be chosen, keep credentials in the secret store and write the configuration."""
    if everything and pick:
        raise typer.BadParameter("Give --all, or --pick with names.", param_hint="--all")
    findings = _read(clients or [], from_file)
    file = open_config(config, os.environ)
    state = state_dir_or_default(state_dir)
    # Opened when the first credential is found: a keyring may ask to be unlocked.
    store = functools.cache(lambda: app.open_secrets(file.in_force(os.environ), state))
    planner = Planner(
        machine=_machine(),
        existing=file.settings.backends,
        read_secret=lambda name: store().read(name),
        bridge_url=find_bridge(configured_url(config, state), state, os.environ).url,
    )
    planned = planner.plan(findings.servers)
    asks = somebody_is_there() and not json and not yes and not dry_run
    if not json:
        _show(planned, findings)
    taken = _choose(planned, pick or [], asks=asks and not everything)
    may_write = bool(taken) and not dry_run and (yes or asks)
    if may_write and asks and (everything or pick):
        may_write = agrees(f"Write {len(taken)} of them to {file.path}?")
    if may_write:
        take_over(file, taken, store())
    if json:
        print_json(_told(planned, findings, taken, file, written=may_write))
    else:
        _say_what_was_done(taken, file, written=may_write)


def _machine() -> Machine:
    return Machine.here(os.environ, Path.cwd())


def _read(clients: Sequence[str], from_file: Path | None) -> Findings:
    known = [client_named(name) for name in dict.fromkeys(clients)] or list(CLIENTS.values())
    if from_file is None:
        return read_clients(known, _machine())
    if len(clients) > 1:
        raise typer.BadParameter("One file is of one client.", param_hint="--from")
    path = from_file.expanduser().absolute()
    return read_place(place_of_file(path, known[0] if clients else None, _machine()))


def _choose(planned: list[Planned], picks: list[str], *, asks: bool) -> list[Planned]:
    if picks:
        return chosen(planned, picks)
    takeable = [one for one in planned if one.verdict is Verdict.TAKE]
    if not asks or not takeable:
        return takeable
    return [takeable[number - 1] for number in numbers("Which ones?", len(takeable))]


def _show(planned: list[Planned], findings: Findings) -> None:
    for problem in findings.problems:
        sys.stderr.write(f"warning: {plain(problem)}\n")
    count = 0
    rows: list[tuple[object, ...]] = []
    for one in planned:
        count += one.verdict is Verdict.TAKE
        rows.append(
            (
                one.server.name,
                count if one.verdict is Verdict.TAKE else "-",
                _whose(one),
                one.transport,
                _short(one.starts),
                ", ".join(one.secrets),
                _remark(one),
            )
        )
    print_table(
        ("SERVER", "#", "CLIENT", "TRANSPORT", "STARTS", "SECRETS", "REMARK"), rows, empty="No client has a server."
    )
    for one in planned:
        # Below the table, where sentences have the room that they need.
        said = [*([f"{one.verdict}: {one.reason}"] if one.reason is not None else []), *one.notes]
        for sentence in said:
            print_text(plain(f"note: {one.server.name} ({_whose(one)}): {sentence}."))


def _whose(one: Planned) -> str:
    """The client; a project's file is told apart, since whoever wrote the project wrote it."""
    return f"{one.server.place.client}, project" if one.server.place.scope == "project" else one.server.place.client


def _remark(one: Planned) -> str:
    if one.verdict is not Verdict.TAKE:
        return one.verdict
    return f"as {one.name}" if one.name != one.server.name else ""


def _short(text: str) -> str:
    return text if len(text) <= _STARTS_LENGTH else f"{text[: _STARTS_LENGTH - 1]}…"


def _told(
    planned: list[Planned], findings: Findings, taken: list[Planned], file: ConfigFile, *, written: bool
) -> dict[str, Any]:
    return {
        "file": str(file.path),
        "written": written,
        "servers": [
            {
                "client": one.server.place.client,
                "scope": one.server.place.scope,
                "file": str(one.server.place.path),
                "project": str(one.server.project) if one.server.project is not None else None,
                "server": one.server.name,
                "name": one.name,
                "transport": one.transport,
                "starts": one.starts,
                "secrets": list(one.secrets),
                "verdict": one.verdict,
                "reason": one.reason,
                "notes": list(one.notes),
                "taken": any(one is other for other in taken),
            }
            for one in planned
        ],
        "problems": findings.problems,
    }


def _say_what_was_done(taken: list[Planned], file: ConfigFile, *, written: bool) -> None:
    if not taken:
        print_text("Nothing is taken over.")
    elif written:
        print_text(f"{', '.join(one.name for one in taken)}: written to {file.path}.")
        print_text(f"Try them: bridgehead config check --config {shlex.quote(str(file.path))}")
        print_text("A bridge that runs with this file has them in a moment; else start one: bridgehead serve.")
    else:
        names = ", ".join(one.name for one in taken)
        print_text(f"Nothing was written. --yes would take {names} into {file.path}.")
