"""`bridgehead mcp stdio`: the bridge for one client, on standard input and output."""

from __future__ import annotations

import typer

from bridgehead import app
from bridgehead.cli.options import ConfigOption, GroupOption, LogFormatOption, LogLevelOption, StateDirOption
from bridgehead.cli.settings import load_settings, with_logs
from bridgehead.cli.state import state_dir_or_default


def command(
    *,
    config: ConfigOption = None,
    group: GroupOption = None,
    state_dir: StateDirOption = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
) -> None:
    """Run until the client closes standard input; nothing but protocol goes to standard output."""
    settings = with_logs(load_settings(config), log_level, log_format)
    raise typer.Exit(app.serve_stdio(settings, state_dir_or_default(state_dir), group))
