"""The local token: proof that a caller may read its owner's files on this machine.

It is made once and kept in the state directory, readable by its owner alone; clients of the same user read it from there.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from bridgehead.core.errors import ConfigInvalid

FILE = "local-token"
_BITS = 256
_SHAPE = re.compile(r"[A-Za-z0-9_-]{43,512}")
_TOO_OPEN = 0o077


def ensure_local_token(state_dir: Path) -> str:
    """The token, made where there is none. Permissions that have become too open are put right.

    Raises:
        ConfigInvalid: The file or the directory is not one that only its owner could have written.
    """
    path = state_dir / FILE
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix" and stat.S_IMODE(state_dir.stat().st_mode) & _TOO_OPEN:
            state_dir.chmod(0o700)
        _create(path)
        token = _read(path)
    except OSError as error:
        raise ConfigInvalid(
            f"The local token {path} cannot be used: {error.strerror}.",
            hint="Make the state directory a directory of your own that you may write, or choose another.",
        ) from error
    if not _SHAPE.fullmatch(token):
        raise ConfigInvalid(
            f"The local token {path} is damaged.", hint="Delete the file; a new token is made at the next start."
        )
    return token


def _create(path: Path) -> None:
    """Write a new token unless there is one: whole before it has its name, so that nobody reads half of it."""
    if os.path.lexists(path):
        return
    draft = path.with_name(f"{FILE}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(_BITS // 8))
        # A link is refused where another process was first, and then that one's token holds.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor) as file:
        status = os.fstat(file.fileno())
        if os.name == "posix":
            if status.st_uid != os.geteuid():
                raise PermissionError(1, "it belongs to another user")
            if stat.S_IMODE(status.st_mode) & _TOO_OPEN:
                os.fchmod(file.fileno(), 0o600)
        return file.read(1024).strip()
