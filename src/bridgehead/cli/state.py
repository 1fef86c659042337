"""Where a running bridge is found: its state directory, the address it wrote there, and the local token.

The local token is a right to call every tool of this machine's owner, so it is sent to this machine only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from bridgehead.core.addresses import is_loopback
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
        token_from: Where the token is from, as a sentence for whoever is told that it does not do.
        nothing_in: The state directory in which no bridge had written its address, so that the URL is a guess; else None.
    """

    url: str
    token: str | None
    token_from: str = field(default="no token was sent", compare=False)
    nothing_in: Path | None = field(default=None, compare=False)


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
    base = _without_endpoint(url or written or f"http://127.0.0.1:{environ.get('PORT') or DEFAULT_PORT}")
    try:
        parts = urlsplit(base)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        parts, valid = None, False
    if parts is None or not valid:
        raise AddressInvalid(
            f"{base!r} is not the URL of a bridge.", hint="give one as in --url http://127.0.0.1:3001."
        )
    guessed = state_dir if url is None and written is None else None
    token = environ.get("BRIDGEHEAD_TOKEN")
    if token:
        return Target(base, token, "the token is that of BRIDGEHEAD_TOKEN", guessed)
    if not is_loopback(parts.hostname or "") and base != (written or "").rstrip("/"):
        return Target(base, None, "the local token is not sent to other machines", guessed)
    token = _read(state_dir / TOKEN_FILE)
    place = state_dir / TOKEN_FILE
    return Target(base, token, f"the token is that of {place}" if token else f"there is no token in {place}", guessed)


def _without_endpoint(url: str) -> str:
    """The base URL, also where somebody gave the address that an MCP client is given: `…/mcp` or `…/mcp/{group}`."""
    return re.sub(r"/mcp(?:/[a-z0-9-]+)?$", "", url.rstrip("/"))


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
