"""The configuration, for commands that need it. Separate from `state`, which must be quick to import."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bridgehead.cli.output import plain
from bridgehead.config import Settings, load


def with_logs(settings: Settings, level: str | None, form: str | None) -> Settings:
    """The settings with what the command line says of logs, which goes before the environment and the configuration."""
    said = {key: value for key, value in (("log_level", level), ("log_format", form)) if value is not None}
    server = settings.server.model_copy(update=said)
    pinned = settings.pinned.union(f"server.{key}" for key in said)
    return settings.model_copy(update={"server": server, "pinned": pinned})


def load_settings(path: Path | None) -> Settings:
    """Read the configuration, and tell what is doubtful about it on standard error.

    Raises:
        ConfigInvalid: It cannot be used.
    """
    settings = load(path, os.environ)
    for warning in settings.warnings:
        sys.stderr.write(f"warning: {plain(warning)}\n")
    return settings
