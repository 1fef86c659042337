"""The directory `secrets` of the state directory: private files that are read and replaced whole, and a lock for writers."""

from __future__ import annotations

import json
import os
import secrets
import stat
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from bridgehead.config.ports import SecretsUnusable, StoreKind

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

VERSION = 1
_LOCK = "lock"
_CHOICE = "store"
_TOO_OPEN = 0o077
_LOCK_POLL_S = 0.02


class Folder:
    """Everything in it is for its owner alone. A file is never half written, and one that cannot be read is never replaced."""

    def __init__(self, state_dir: Path, *, lock_timeout_s: float = 10.0) -> None:
        self.path = state_dir / "secrets"
        self._lock_timeout_s = lock_timeout_s

    def read(self, name: str) -> bytes | None:
        """What the file holds, or None where there is none. Permissions that have become too open are put right.

        Raises:
            SecretsUnusable: It cannot be read, or is not a file that only its owner could have written.
        """
        path = self.path / name
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if os.name == "posix":
                    if status.st_uid != os.geteuid():
                        raise PermissionError(1, "it belongs to another user")
                    if stat.S_IMODE(status.st_mode) & _TOO_OPEN:
                        os.fchmod(descriptor, 0o600)
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable(path, "read", error) from error

    def read_table(self, name: str) -> dict[str, Any] | None:
        """The JSON object in the file, or None where there is none.

        Raises:
            SecretsUnusable: It cannot be read, is damaged, or was written by a newer bridge.
        """
        content = self.read(name)
        if content is None:
            return None
        try:
            table: Any = json.loads(content)
        except (ValueError, RecursionError):
            table = None
        if not isinstance(table, dict):
            raise self.damaged(name)
        known = cast("dict[str, Any]", table)
        version = known.get("version")
        if isinstance(version, int) and version > VERSION:
            raise SecretsUnusable(
                f"{self.path / name} was written by a newer bridgehead.", hint="install the newer bridgehead again."
            )
        if version != VERSION:
            raise self.damaged(name)
        return known

    def write(self, name: str, content: bytes) -> None:
        """Replace the file, in one step, by one that holds `content`.

        Raises:
            SecretsUnusable: It cannot be written, and is as it was.
        """
        path = self.path / name
        draft = path.with_name(f".{name}.{secrets.token_hex(8)}")
        try:
            descriptor = os.open(
                draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), stat.S_IRUSR | stat.S_IWUSR
            )
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                draft.replace(path)
            except OSError:
                with suppress(OSError):
                    draft.unlink()
                raise
            self._sync()
        except OSError as error:
            raise _unusable(path, "written", error) from error

    def write_table(self, name: str, table: Mapping[str, Any]) -> None:
        """Replace the file by one that holds the object as JSON.

        Raises:
            SecretsUnusable: It cannot be written, and is as it was.
        """
        self.write(name, json.dumps({"version": VERSION, **table}, indent=1).encode() + b"\n")

    def damaged(self, name: str) -> SecretsUnusable:
        """The error for a file whose content makes no sense."""
        path = self.path / name
        return SecretsUnusable(
            f"{path} is damaged. It was left as it is.",
            hint="put it back from a backup, or move it away and run `bridgehead secret set` again for each secret.",
        )

    @property
    def choice(self) -> StoreKind | None:
        """Where secrets were last kept, or None where none ever was.

        Raises:
            SecretsUnusable: It cannot be told.
        """
        content = self.read(_CHOICE)
        if content is None:
            return None
        word = content.strip()
        if word == b"keyring":
            return "keyring"
        if word == b"file":
            return "file"
        raise SecretsUnusable(
            f"{self.path / _CHOICE} is damaged: it says neither `keyring` nor `file`.",
            hint="write the one that is right into it, or set `secret_store` under `[server]`.",
        )

    @contextmanager
    def writing(self, kind: StoreKind) -> Generator[None]:
        """Be the only writer for as long as the context lasts; afterwards, `kind` is where secrets are kept.

        Raises:
            SecretsUnusable: Somebody else has written for too long, or nothing can be written here.
        """
        lock = self.path / _LOCK
        try:
            # Apart, since the mode is for the last directory only.
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)
            if os.name == "posix" and stat.S_IMODE(self.path.stat().st_mode) & _TOO_OPEN:
                self.path.chmod(0o700)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except OSError as error:
            raise _unusable(lock, "made", error) from error
        try:
            deadline = time.monotonic() + self._lock_timeout_s
            while not _locked(handle):
                if time.monotonic() > deadline:
                    raise SecretsUnusable(
                        f"Another process has been writing secrets in {self.path} for {self._lock_timeout_s:g} s.",
                        hint="wait for it or end it, and try again.",
                    )
                time.sleep(_LOCK_POLL_S)
            yield
            self._remember(kind)
        finally:
            os.close(handle)

    def _remember(self, kind: StoreKind) -> None:
        word = f"{kind}\n".encode()
        if self.read(_CHOICE) != word:
            self.write(_CHOICE, word)

    def _sync(self) -> None:
        """Have the new name on the disk too, where a directory can be synced at all."""
        if os.name != "posix":
            return
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _locked(handle: int) -> bool:
    """Take the lock if it is free; the system lets go of it when the handle is closed, however the process ends."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _unusable(path: Path, done: str, error: OSError) -> SecretsUnusable:
    return SecretsUnusable(
        f"{path} cannot be {done}: {error.strerror or error}.",
        hint="make the state directory one of your own that you may write, or choose another with --state-dir.",
    )
