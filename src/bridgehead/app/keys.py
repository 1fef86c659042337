"""The key that seals what callers carry: made once a state directory, kept in a file of its own."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from bridgehead.core.errors import ConfigInvalid

_KEY_FILE = "request-state.key"
_KEY_BYTES = 32


def sealing_key(state_dir: Path) -> bytes:
    """The key; made where there is none, readable by the owner alone.

    Raises:
        ConfigInvalid: It can be neither read nor made.
    """
    path = state_dir / _KEY_FILE
    try:
        if path.exists() and len(kept := path.read_bytes()) == _KEY_BYTES:
            return kept
        # Renamed into place, so that a crash leaves no half a key. A damaged one is replaced: only open rounds are lost by it.
        key, new = secrets.token_bytes(_KEY_BYTES), path.with_suffix(f".{secrets.token_hex(4)}")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
        new.replace(path)
    except OSError as error:
        raise ConfigInvalid(
            f"The key {path} can be neither read nor made: {error.strerror}.",
            hint="make the state directory one of your own that you may write, or choose another with --state-dir.",
        ) from error
    return key
