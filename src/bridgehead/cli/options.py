"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

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
BackendOption = Annotated[str | None, typer.Option("--backend", "-b", help="Only calls that went to this backend.")]
ErrorsOption = Annotated[bool, typer.Option("--errors", help="Only calls that came to nothing good.")]
LogLevelOption = Annotated[
    Literal["debug", "info", "warning", "error"] | None,
    typer.Option("--log-level", help="What is logged, from that level on; `log_level` under [server] otherwise."),
]
LogFormatOption = Annotated[
    Literal["text", "json"] | None,
    typer.Option("--log-format", help="How it is logged: for people, or one JSON object a line for programs."),
]
