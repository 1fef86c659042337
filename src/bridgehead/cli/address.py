"""Where the bridge of a configuration listens, or will. Separate from `state`, since it reads the configuration."""

from __future__ import annotations

import os
from pathlib import Path

from bridgehead.cli.state import ADDRESS_FILE
from bridgehead.config import load
from bridgehead.config.load import locate


def configured_url(config: Path | None, state_dir: Path) -> str | None:
    """What `BRIDGEHEAD_URL` says, else what the configuration does; None where a running bridge or nobody says it.

    Raises:
        ConfigInvalid: The configuration cannot be used.
    """
    if os.environ.get("BRIDGEHEAD_URL"):
        return os.environ["BRIDGEHEAD_URL"]
    file = locate(config, os.environ)
    if (state_dir / ADDRESS_FILE).exists() or file is None or not file.exists():
        return None
    server = load(config, os.environ).server
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"http://{host}:{server.port}" if server.port else None
