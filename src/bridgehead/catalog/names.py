"""Exposed names: at most 64 characters of `[A-Za-z0-9_-]`, the same on every run, and never split to find the way back.

`{backend}__{tool}` where that is already legal. Where something had to be replaced or cut, a tail of eight hex digits of the
hash of the original pair keeps the name unique and stable. The way back is the catalog's table.
"""

from __future__ import annotations

import hashlib
import re

MAX_LENGTH = 64
SEPARATOR = "__"
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_TAIL_DIGITS = 8


def exposed_name(backend: str, name: str, *, prefixed: bool = True) -> str:
    """The name under which `name` of `backend` is shown.

    Args:
        backend: The configured name of the backend.
        name: The original name of the tool or prompt.
        prefixed: False for a backend with `namespace = "none"`, whose names are passed through where they are legal.
    """
    wanted = f"{backend}{SEPARATOR}{name}" if prefixed else name
    legal = _ILLEGAL.sub("_", wanted)
    # A separator that does not begin where the backend's name ends (`a_` + `b` and `a` + `_b`) could make two pairs read
    # alike, so such a pair always carries the tail.
    ambiguous = prefixed and (SEPARATOR in backend or backend.endswith("_"))
    if legal == wanted and legal and len(legal) <= MAX_LENGTH and not ambiguous:
        return legal
    return with_tail(backend, name, prefixed=prefixed)


def with_tail(backend: str, name: str, *, prefixed: bool = True, attempt: int = 0) -> str:
    """The name with its hash tail, for pairs whose plain name was cut, cleaned or taken by another.

    Args:
        backend: The configured name of the backend.
        name: The original name of the tool or prompt.
        prefixed: False for a backend with `namespace = "none"`.
        attempt: Counts up where the tail itself is taken, as by a tool that is really called so.
    """
    wanted = f"{backend}{SEPARATOR}{name}" if prefixed else name
    digest = _digest(f"{backend}\0{name}" if attempt == 0 else f"{backend}\0{name}\0{attempt}")
    return f"{_ILLEGAL.sub('_', wanted)[: MAX_LENGTH - _TAIL_DIGITS - 1]}_{digest}"


def qualified_uri(backend: str, uri: str, *, attempt: int = 0) -> str:
    """A resource's URI made unique by its backend, for when two backends list the same URI.

    The backend becomes part of the scheme (RFC 3986, section 3.1), as in `docs+file:///readme.md`.
    """
    label = re.sub(r"[^A-Za-z0-9.-]", "-", backend)
    if attempt:
        # Another backend's name reads alike once it is made a scheme.
        tail = _digest(f"{backend}\0{attempt}")
        label = f"{label}-{tail}"
    return f"{label if label[:1].isalpha() else f'b{label}'}+{uri}"


def _digest(text: str) -> str:
    # Names come from servers, whose JSON may hold lone surrogates.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_TAIL_DIGITS]
