"""Files of other programs, and our own, read and replaced without ever being half written.

A file behind a symbolic link is replaced where it is, so that the link stays. Modes are kept; what is newly made is its
owner's alone.
"""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from bridgehead.core.errors import BridgeError, ConfigInvalid, Kind

_BOM = b"\xef\xbb\xbf"
PRIVATE = 0o600
_OTHERS = 0o077


class FileUnreadable(ConfigInvalid):
    """A client's file cannot be read as what it is, and so is not touched."""

    code = "unreadable_file"


class FileBusy(BridgeError):
    """The file was changed by another program at the same moment, and was not written."""

    kind = Kind.CONFLICT
    code = "file_changed"


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file as it was when it was read.

    Attributes:
        path: Where it was asked for.
        target: Where it is, with links followed.
        content: Its bytes, or None where there is no file.
        mode: Its permission bits, or None where there is no file.
    """

    path: Path
    target: Path
    content: bytes | None
    mode: int | None

    @property
    def text(self) -> str:
        """Its text without a byte order mark; empty where there is no file.

        Raises:
            FileUnreadable: It is not UTF-8.
        """
        try:
            return (self.content or b"").removeprefix(_BOM).decode("utf-8")
        except UnicodeDecodeError as error:
            raise FileUnreadable(
                f"{self.path} is not UTF-8, from byte {error.start} on, so it was not touched.",
                hint="save it as UTF-8.",
            ) from None

    def encoded(self, text: str) -> bytes:
        """The text as bytes, with a byte order mark where the file has one."""
        return (_BOM if (self.content or b"").startswith(_BOM) else b"") + text.encode("utf-8")

    @property
    def is_private(self) -> bool:
        """Whether nobody else can read it, and it is not likely to be passed on.

        A file behind a link, or in a directory that is under version control, may well be published with the rest.
        """
        if self.path.is_symlink() or any((above / ".git").exists() for above in self.target.parents):
            return False
        return os.name != "posix" or self.mode is None or not self.mode & _OTHERS


def read_file(path: Path) -> TextFile:
    """The file as it is now.

    Raises:
        FileUnreadable: It is there, but it cannot be read.
    """
    try:
        target = path.resolve()
        content = target.read_bytes()
        return TextFile(path, target, content, stat.S_IMODE(target.stat().st_mode))
    except FileNotFoundError:
        return TextFile(path, path.resolve(), None, None)
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead to each other, before Python 3.13
        reason = getattr(error, "strerror", None) or "its links lead nowhere"
        raise FileUnreadable(
            f"{path} cannot be read: {reason}.", hint="check the rights of the file and its directories."
        ) from error


def replace_file(file: TextFile, content: bytes) -> None:
    """Put `content` in the place of the file, all at once, with its mode.

    Raises:
        FileBusy: It is no longer as it was read.
        ConfigInvalid: It cannot be written.
    """
    _still_as_read(file)
    try:
        file.target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = new_file(file.target, f".{secrets.token_hex(4)}.new", content, file.mode)
        try:
            draft.replace(file.target)
        except OSError:
            draft.unlink()
            raise
    except OSError as error:
        raise _unwritable(file.path, error) from error


def remove_file(file: TextFile) -> None:
    """Delete the file.

    Raises:
        FileBusy: It is no longer as it was read.
        ConfigInvalid: It cannot be deleted.
    """
    _still_as_read(file)
    try:
        file.target.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(file.path, error) from error


def new_file(beside: Path, suffix: str, content: bytes, mode: int | None = None) -> Path:
    """Write a new file beside another, to the disk itself, with `mode` or readable by its owner alone.

    Raises:
        OSError: It cannot be written, or is there already.
    """
    path = beside.with_name(beside.name + suffix)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            path.chmod(mode)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return path


def _still_as_read(file: TextFile) -> None:
    if read_file(file.path).content != file.content:
        raise FileBusy(f"{file.path} was changed in the meantime, so it was not written.", hint="try again.")


def _unwritable(path: Path, error: OSError) -> ConfigInvalid:
    return ConfigInvalid(
        f"{path} cannot be written: {error.strerror or error}.",
        hint="check the rights of the file and its directories.",
    )
