"""Whether the files that the bridge trusts are its owner's alone.

On systems without POSIX permissions only what exists is looked at.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from bridgehead.config import BackendSettings, Settings
from bridgehead.diagnosis.model import Finding, Level
from bridgehead.gate import redact, redact_text

_MASK = "***"
"""What the redaction puts in the place of a secret."""
_PRIVATE = (
    "local-token",
    "bridgehead.db",
    "bridgehead.db-wal",
    "bridgehead.db-shm",
    "request-state.key",
    "secrets/key",
    "secrets/sealed.json",
)
"""Files in the state directory that hold secrets, or what callers sent."""
_OTHERS = 0o077
_OTHERS_WRITE = stat.S_IWOTH
_GROUP_WRITES = stat.S_IWGRP
_GROUP_OR_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH


def state_findings(state_dir: Path) -> list[Finding]:
    """The state directory and what is in it."""
    try:
        status = state_dir.stat()
    except FileNotFoundError:
        return [_not_there(state_dir)]
    except OSError as error:
        return [_problem(state_dir, f"cannot be looked at: {error.strerror}.", "choose another with --state-dir.")]
    if not stat.S_ISDIR(status.st_mode):
        return [_problem(state_dir, "is no directory.", "choose another with --state-dir.")]
    if not _is_ours(status):
        return [_problem(state_dir, "belongs to another user.", "choose one of your own with --state-dir.")]
    if not os.access(state_dir, os.R_OK | os.W_OK | os.X_OK):
        return [_problem(state_dir, "cannot be written.", f"chmod 700 {_quoted(state_dir)}")]
    found = list(_too_open(state_dir, status, "700"))
    for name in _PRIVATE:
        found += _private_file(state_dir / name)
    return found or [Finding(Level.WELL, "state", f"{state_dir} is its owner's alone.")]


def _not_there(state_dir: Path) -> Finding:
    above = next(parent for parent in state_dir.absolute().parents if parent.exists())
    if os.access(above, os.W_OK | os.X_OK):
        return Finding(Level.WELL, "state", f"{state_dir} is made at the first start.")
    return _problem(state_dir, f"cannot be made, since {above} cannot be written.", "choose another with --state-dir.")


def _private_file(path: Path) -> Iterator[Finding]:
    try:
        status = path.lstat()
    except OSError:
        return
    if not stat.S_ISREG(status.st_mode):
        yield _problem(path, "is no ordinary file, so the bridge refuses it.", f"rm {_quoted(path)}")
    elif not _is_ours(status):
        yield _problem(path, "belongs to another user, so the bridge refuses it.", f"rm {_quoted(path)}")
    else:
        yield from _too_open(path, status, "600")


def _too_open(path: Path, status: os.stat_result, mode: str) -> Iterator[Finding]:
    if os.name == "posix" and stat.S_IMODE(status.st_mode) & _OTHERS:
        yield Finding(
            Level.WARNING,
            "state",
            f"{path} is open to other users (mode {stat.S_IMODE(status.st_mode):o}).",
            f"chmod {mode} {_quoted(path)}",
        )


def configuration_findings(settings: Settings) -> Iterator[Finding]:
    """The configuration file: who may write it (it names programs that are run) and read it (it may hold secrets)."""
    path = settings.source
    if path is None or os.name != "posix":
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & _OTHERS_WRITE:
        yield Finding(
            Level.PROBLEM,
            "configuration",
            f"{path} can be written by every user, who can so have any program run as you (mode {mode:o}).",
            f"chmod go-w {_quoted(path)}",
        )
    elif mode & _GROUP_WRITES:
        yield Finding(
            Level.WARNING,
            "configuration",
            f"{path} can be written by its group, who can so have any program run as you (mode {mode:o}).",
            f"chmod g-w {_quoted(path)}",
        )
    secret = [key for name, backend in settings.backends.items() for key in _literal_secrets(name, backend)]
    if secret and mode & _GROUP_OR_OTHERS_READ:
        yield Finding(
            Level.WARNING,
            "configuration",
            f"{path} can be read by others (mode {mode:o}), and what looks like a secret is written out in"
            f" {', '.join(secret)}.",
            f"chmod 600 {_quoted(path)}, or name a variable there, as in `${{NAME}}`.",
        )


def _literal_secrets(name: str, backend: BackendSettings) -> Iterator[str]:
    """The keys whose values look like secrets by their name or shape, and name no variable."""
    written = {
        f"{part}.{key}": redact({key: secret.reveal()})[key]
        for part, table in (("env", backend.env), ("headers", backend.headers))
        for key, secret in table.items()
        if "${" not in secret.reveal()
    }
    written |= {f"args[{at}]": redact_text(text) for at, text in enumerate(backend.args) if "${" not in text}
    if backend.url is not None and "${" not in backend.url:
        written["url"] = redact_text(backend.url)
    return (f"backends.{name}.{key}" for key, shown in written.items() if _MASK in str(shown))


def _is_ours(status: os.stat_result) -> bool:
    return os.name != "posix" or status.st_uid == os.geteuid()


def _problem(path: Path, what: str, mend: str) -> Finding:
    return Finding(Level.PROBLEM, "state", f"{path} {what}", mend)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
