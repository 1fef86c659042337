"""`bridgehead serve`: run the bridge."""

from __future__ import annotations

from typing import Annotated

import typer

from bridgehead import app
from bridgehead.cli.options import ConfigOption, LogFormatOption, LogLevelOption, StateDirOption
from bridgehead.cli.settings import load_settings, with_logs
from bridgehead.cli.state import state_dir_or_default
from bridgehead.core.addresses import is_loopback
from bridgehead.core.errors import Forbidden


def command(  # noqa: PLR0913  one parameter an option
    *,
    config: ConfigOption = None,
    host: Annotated[
        str | None, typer.Option("--host", help="The address to listen on; this machine only, for now.")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = None,
    state_dir: StateDirOption = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
) -> None:
    """Run until told to stop; the command line goes before the environment, and that before the configuration.

    Raises:
        Forbidden: The address can be reached from other machines, whose callers nothing here could tell apart yet.
    """
    settings = with_logs(load_settings(config), log_level, log_format)
    listen_on = settings.server.host if host is None else host
    if not is_loopback(listen_on):
        raise Forbidden(
            f"Listening on {listen_on} would let other machines in, and there is no authentication for remote callers.",
            hint="listen on 127.0.0.1, and reach the bridge from elsewhere through a tunnel that ends on this machine.",
        )
    raise typer.Exit(app.serve(settings, state_dir_or_default(state_dir), host=host, port=port))
