"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="The configuration file; by default what BRIDGEHEAD_CONFIG names, else ./bridgehead.toml, else"
        " bridgehead/bridgehead.toml under the XDG configuration directory.",
    ),
]
StateDirOption = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        help="Where the bridge keeps its state; by default what BRIDGEHEAD_STATE_DIR names, else bridgehead under the"
        " XDG state directory.",
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="BRIDGEHEAD_URL",
        show_envvar=True,
        help="The address of the running bridge; by default the one it wrote into its state directory.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
GroupOption = Annotated[str | None, typer.Option("--group", "-g", help="Only this group.")]
