"""`bridgehead groups enable NAME`: switch a group on in the configuration."""

from __future__ import annotations

from typing import Annotated

import typer

from bridgehead.cli.options import ConfigOption, JsonOption
from bridgehead.cli.switching import switch_group


def command(
    *,
    name: Annotated[str, typer.Argument(help="The group's name in the configuration.", metavar="NAME")],
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Change `enabled` of the group and nothing else."""
    switch_group(name, config, on=True, json=json)
