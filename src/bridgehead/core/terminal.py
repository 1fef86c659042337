"""Whether a stream takes colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO


def takes_colours(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to colour what goes to `stream`.

    `NO_COLOR` (no-color.org) set to anything forbids it, then `FORCE_COLOR` set to anything but 0 demands it; otherwise
    terminals get colours, unless `TERM` says that they are dumb.
    """
    if environ.get("NO_COLOR"):
        return False
    forced = environ.get("FORCE_COLOR")
    if forced:
        return forced != "0"
    return stream.isatty() and environ.get("TERM", "").lower() not in {"dumb", "unknown"}
