"""`bridgehead connect CLIENT`: put the bridge into a client's configuration, or take it out again."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

import typer

from bridgehead.cli.address import configured_url
from bridgehead.cli.asking import agrees, somebody_is_there
from bridgehead.cli.options import ConfigOption, JsonOption, StateDirOption
from bridgehead.cli.output import print_json, print_text
from bridgehead.cli.state import Target, find_bridge, is_loopback, state_dir_or_default
from bridgehead.config import search_order
from bridgehead.config.clients import (
    Change,
    Choice,
    Client,
    Form,
    Machine,
    Place,
    Reach,
    Records,
    Scope,
    bridge_entry,
    choose,
    client_named,
    connecting,
    place,
    undoing,
    write_connection,
    write_undoing,
)
from bridgehead.config.files import read_file
from bridgehead.config.load import locate
from bridgehead.core.errors import ConfigInvalid
from bridgehead.identity import ensure_local_token

_UNMADE = "made-when-it-is-written"
"""Stands for the local token in a preview, where there is none yet."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Wanted:
    """What the command line says."""

    client: Client
    place: Place
    name: str
    group: str | None
    config: Path | None
    state_dir: Path
    state_dir_is_given: bool


def command(  # noqa: PLR0913  one parameter an option
    *,
    client: Annotated[
        str,
        typer.Argument(
            help="One of claude-desktop, claude-code, cursor, vscode, codex, windsurf, gemini.", metavar="CLIENT"
        ),
    ],
    over_http: Annotated[
        bool | None,
        typer.Option(
            "--http/--stdio",
            help="Let the client reach the running bridge, or start one of its own; by default what fits the client.",
            show_default=False,
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option("--url", help="The address of the bridge, for --http; by default that of this machine's."),
    ] = None,
    scope: Annotated[
        str, typer.Option("--scope", help="`user`, or `project` for the file of the current directory.")
    ] = "user",
    group: Annotated[str | None, typer.Option("--group", "-g", help="Only the tools of this group.")] = None,
    name: Annotated[str, typer.Option("--name", help="What the client is to call the bridge.")] = "bridgehead",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be written.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take the bridge out again.")] = False,
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
    json: JsonOption = False,
) -> None:
    """Show the change as a diff, and write it when that is agreed to; everything else in the file stays as it is."""
    if scope not in {"user", "project"}:
        raise typer.BadParameter("It is `user` or `project`.", param_hint="--scope")
    if url is not None and over_http is False:
        raise typer.BadParameter("A bridge that the client starts has no address.", param_hint="--url")
    known = client_named(client)
    machine = Machine.here(os.environ, Path.cwd())
    where: Scope = "project" if scope == "project" else "user"
    wanted = _Wanted(
        client=known,
        place=place(known, machine, where),
        name=name,
        group=group,
        config=config,
        state_dir=state_dir_or_default(state_dir),
        state_dir_is_given=state_dir is not None,
    )
    target = find_bridge(url or _configured_url(wanted, undo=undo), wanted.state_dir, os.environ)
    may_write = not dry_run and (yes or (somebody_is_there() and not json))
    if undo:
        _undo(wanted, target, ask=not yes, may_write=may_write, json=json)
        return
    _connect(wanted, target, True if url is not None else over_http, ask=not yes, may_write=may_write, json=json)


def _connect(  # noqa: PLR0913  what was asked for, and how far to go
    wanted: _Wanted, target: Target, over_http: bool | None, *, ask: bool, may_write: bool, json: bool
) -> None:
    token = _local_token(target, wanted.state_dir)
    choice = choose(
        wanted.client,
        wanted.place.scope,
        over_http=over_http,
        is_private=read_file(wanted.place.path).is_private,
        token_is_known=token is not None,
    )
    reach = _reach(wanted, target, choice.form)
    records = Records(wanted.state_dir)

    def change_with(bearer: str) -> Change:
        entry = bridge_entry(wanted.client, choice.form, reach, bearer)
        return connecting(wanted.place, wanted.name, entry, records, target.url)

    change = change_with(token or "")
    diff = change.diff(token or "")
    if not json:
        _show(change, diff, choice)
    written, backup = False, None
    if change.changes_anything and may_write and (not ask or agrees(f"Write {wanted.place.path}?")):
        if choice.form is Form.TOKEN:
            change = change_with(ensure_local_token(wanted.state_dir))
        backup = write_connection(change, records, datetime.now(UTC))
        written = True
    if json:
        print_json(_told(change, diff, written=written, form=choice.form, backup=backup, notes=choice.notes))
    elif written:
        print_text(f"Written. {f'Before: {backup}. ' if backup else ''}Take it out again with --undo.")
    elif change.changes_anything:
        _say_how_to_go_on()


def _undo(wanted: _Wanted, target: Target, *, ask: bool, may_write: bool, json: bool) -> None:
    records = Records(wanted.state_dir)
    change = undoing(wanted.place, wanted.name, records, target.url)
    diff = change.diff(target.token or "")
    if not json:
        if change.changes_anything:
            print_text(diff)
        else:
            print_text(f"{wanted.name} is not in {wanted.place.path}: there is nothing to undo.")
    written = change.changes_anything and may_write and (not ask or agrees(f"Write {wanted.place.path}?"))
    if written:
        write_undoing(change, records)
    if json:
        print_json(_told(change, diff, written=written))
    elif written:
        gone = "it was not there before, and is gone" if change.after is None else "the bridge is out of it"
        print_text(f"{wanted.place.path}: {gone}.")
    elif change.changes_anything:
        _say_how_to_go_on()


def _show(change: Change, diff: str, choice: Choice) -> None:
    if not change.changes_anything:
        print_text(f"{change.name} is in {change.place.path} already: there is nothing to do.")
        return
    if change.file.target != change.file.path.absolute():
        print_text(f"{change.file.path} leads to {change.file.target}, which is what is changed.")
    print_text(diff)
    for note in choice.notes:
        print_text(f"note: {note}")


def _say_how_to_go_on() -> None:
    print_text("Nothing was written; --yes writes it.")


def _told(change: Change, diff: str, *, written: bool, **more: Any) -> dict[str, Any]:
    return {
        "client": change.place.client,
        "scope": change.place.scope,
        "file": str(change.place.path),
        "name": change.name,
        "changes": change.changes_anything,
        "written": written,
        "diff": diff,
        **{key: str(value) if isinstance(value, Path) else value for key, value in more.items()},
    }


def _configured_url(wanted: _Wanted, *, undo: bool) -> str | None:
    try:
        return configured_url(wanted.config, wanted.state_dir)
    except ConfigInvalid:
        # What is broken in the configuration does not keep anybody from taking the bridge out.
        if undo:
            return None
        raise


def _local_token(target: Target, state_dir: Path) -> str | None:
    """What the local token will be; None where the bridge is elsewhere."""
    if not is_loopback(urlsplit(target.url).hostname or ""):
        return None
    here = find_bridge(target.url, state_dir, {})
    return here.token or _UNMADE


def _reach(wanted: _Wanted, target: Target, form: Form) -> Reach:
    group = f"/{quote(wanted.group, safe='')}" if wanted.group is not None else ""
    url = f"{target.url}/mcp{group}"
    if form is not Form.STDIO:
        return Reach(url, ())
    config = locate(wanted.config, os.environ)
    if config is None or not config.exists():
        raise ConfigInvalid(
            f"There is no configuration {config or search_order(os.environ)[-1]} for the bridge to be started with.",
            hint="make one first: bridgehead import, or bridgehead backend add.",
        )
    words = [*_program(), "mcp", "stdio", "--config", str(config.absolute())]
    if wanted.group is not None:
        words += ["--group", wanted.group]
    if wanted.state_dir_is_given:
        words += ["--state-dir", str(wanted.state_dir.absolute())]
    return Reach(url, tuple(words))


def _program() -> list[str]:
    """The command of this installation, as an absolute path: a client does not have our PATH."""
    beside = shutil.which("bridgehead", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("bridgehead")
    if found is None:
        raise ConfigInvalid(
            "The command `bridgehead` is not on the PATH, so a client could not start it.",
            hint="install the package, or connect with --http.",
        )
    return [str(Path(found).absolute())]
