"""`bridgehead mcp stdio`: the bridge for one client, on standard input and output."""

from __future__ import annotations

import typer

from bridgehead import app
from bridgehead.cli.options import ConfigOption, GroupOption, StateDirOption
from bridgehead.cli.settings import load_settings
from bridgehead.cli.state import state_dir_or_default


def command(*, config: ConfigOption = None, group: GroupOption = None, state_dir: StateDirOption = None) -> None:
    """Run until the client closes standard input; nothing but protocol goes to standard output."""
    raise typer.Exit(app.serve_stdio(load_settings(config), state_dir_or_default(state_dir), group))
