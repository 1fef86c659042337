"""`bridgehead backend remove NAME`: take a backend out of the configuration."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from bridgehead.cli.options import ConfigOption, JsonOption
from bridgehead.cli.output import print_json, print_text
from bridgehead.config.editing import open_config


def command(
    *,
    name: Annotated[str, typer.Argument(help="The backend's name in the configuration.", metavar="NAME")],
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Take its table out and leave everything else, comments too, as it is."""
    file = open_config(config, os.environ)
    file.remove_backend(name)
    file.write()
    if json:
        print_json({"name": name, "file": str(file.path)})
    else:
        print_text(f"{name} is no longer in {file.path}.")
