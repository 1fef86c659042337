"""What `groups enable` and `groups disable` share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bridgehead.cli.output import print_json, print_text
from bridgehead.config import group_variable
from bridgehead.config.editing import open_config


def switch_group(name: str, config: Path | None, *, on: bool, json: bool) -> None:
    """Switch the group in the configuration, and say where something else has the last word."""
    file = open_config(config, os.environ)
    changed = file.switch_group(name, on=on)
    if changed:
        file.write()
    state = "on" if on else "off"
    if json:
        print_json({"name": name, "enabled": on, "changed": changed, "file": str(file.path)})
    else:
        print_text(f"{name} is {state} in {file.path}." if changed else f"{name} was {state} already.")
    variable = group_variable(name)
    if os.environ.get(variable):
        sys.stderr.write(f"warning: {variable} is set here and wins over the file.\n")
