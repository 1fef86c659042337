"""One serving bridge a state directory: its address and its audit log are there, and two would overwrite each other's."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bridgehead.core import BridgeError, Kind
from bridgehead.core.errors import ConfigInvalid

if sys.platform != "win32":
    import fcntl

_FILE = "serving.lock"


class StateInUse(BridgeError):
    """Another bridge serves from this state directory."""

    kind = Kind.CONFLICT
    code = "state_in_use"


@contextmanager
def claim(state_dir: Path) -> Generator[None]:
    """Hold the directory for as long as the context lasts; the system lets go of it however the process ends.

    On Windows nothing is held.

    Raises:
        StateInUse: Somebody else holds it.
    """
    try:
        handle = os.open(state_dir / _FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigInvalid(
            f"The lock {state_dir / _FILE} cannot be made: {error.strerror}.",
            hint="make the state directory one of your own that you may write, or choose another with --state-dir.",
        ) from error
    try:
        if sys.platform != "win32":
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise StateInUse(
                    f"Another bridge serves from {state_dir}.",
                    hint="stop it, or give this one a directory of its own with --state-dir.",
                ) from error
        yield
    finally:
        os.close(handle)
