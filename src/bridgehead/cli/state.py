"""Where a running bridge is found: its state directory, the address it wrote there, and the local token.

The local token is a right to call every tool of this machine's owner, so it is sent to this machine only.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bridgehead.core.errors import BridgeError, Kind

ADDRESS_FILE = "address"
"""Written by `serve` while it listens: its base URL, such as `http://127.0.0.1:3001`."""
TOKEN_FILE = "local-token"  # noqa: S105  the name of a file
"""As `bridgehead.identity` writes it; not imported from there, since a command must not make one."""
DEFAULT_PORT = 3001


class AddressInvalid(BridgeError):
    """The URL of the bridge is not one."""

    kind = Kind.INVALID
    code = "invalid_url"


@dataclass(frozen=True, slots=True)
class Target:
    """The bridge to talk to.

    Attributes:
        url: Its base URL, without a slash at the end.
        token: The bearer to present, or None where there is none, or none that may go there.
    """

    url: str
    token: str | None


def default_state_dir(environ: Mapping[str, str]) -> Path:
    """`$BRIDGEHEAD_STATE_DIR`, else `bridgehead` under the XDG state directory."""
    named = environ.get("BRIDGEHEAD_STATE_DIR")
    if named:
        return Path(named).expanduser()
    base = environ.get("XDG_STATE_HOME", "")
    # A relative path there is invalid and to be ignored (XDG Base Directory Specification 0.8).
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return root / "bridgehead"


def state_dir_or_default(state_dir: Path | None) -> Path:
    """The directory given on the command line, else the default one."""
    return state_dir.expanduser() if state_dir is not None else default_state_dir(os.environ)


def find_bridge(url: str | None, state_dir: Path, environ: Mapping[str, str]) -> Target:
    """Where the bridge listens and what to present to it.

    Args:
        url: What the command line says, if anything.
        state_dir: Where a bridge on this machine keeps its state.
        environ: `BRIDGEHEAD_TOKEN` is presented instead of the local token; `PORT` says where to look when nothing
            else is known.

    Raises:
        AddressInvalid: The URL, or what the address file holds, is not an http(s) URL.
    """
    written = _read(state_dir / ADDRESS_FILE)
    base = (url or written or f"http://127.0.0.1:{environ.get('PORT') or DEFAULT_PORT}").rstrip("/")
    try:
        parts = urlsplit(base)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        parts, valid = None, False
    if parts is None or not valid:
        raise AddressInvalid(
            f"{base!r} is not the URL of a bridge.", hint="give one as in --url http://127.0.0.1:3001."
        )
    token = environ.get("BRIDGEHEAD_TOKEN")
    if not token and (is_loopback(parts.hostname or "") or base == (written or "").rstrip("/")):
        token = _read(state_dir / TOKEN_FILE)
    return Target(base, token or None)


def is_loopback(host: str) -> bool:
    """Whether the host is this machine and nothing else."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
