"""Arguments made fit to be kept: secrets masked, long things cut with a word on how much, and never an exception.

What comes in is whatever a caller sent, so every walk here is bounded in depth, breadth and total. Masking is by the look of
a key or a value and can only be a second line: a tool that wants a password in a key called `x` will have it recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, cast

MASK = "***"
MAX_TEXT = 512
MAX_DEPTH = 8
MAX_ITEMS = 64
MAX_VALUES = 1024
_LOOKAHEAD = 512
"""Characters behind the cut that are still looked at, so that a secret across the cut is seen whole."""

_SECRET_KEY = re.compile(
    r"pass(?:word|wd|phrase|code)?s?$|pwd$|secret|token(?!s$|_?count|_?limit|izer)|api[-_]?key|auth(?:orization|[-_]?header|$)"
    r"|cookie|credential|private[-_]?key|access[-_]?key|signing[-_]?key|encryption[-_]?key|session[-_]?id|bearer|signature$",
    re.IGNORECASE,
)
_PLAIN_KEY = re.compile(
    r"(?:page|next|continuation|cursor|sync|max|min|num|n|total|input|output|prompt|completion)[-_]?tokens?$",
    re.IGNORECASE,
)
_SECRET_TEXT = re.compile(
    r"\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){0,3}"
    r"|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_[A-Za-z0-9_]{16,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bxox[a-z]-[A-Za-z0-9-]{8,}|\bAIza[A-Za-z0-9_-]{30,}|\bnpm_[A-Za-z0-9]{30,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
    r"|(?<=://)[^/\s:@]{1,128}:[^/\s@]{1,256}(?=@)"
    r"|(?<=[?&;])(?:[A-Za-z0-9_.-]{0,32}(?:token|secret|password|api[-_]?key|signature|sig|code))=[^&\s#]+",
    re.IGNORECASE,
)
_MARKS = frozenset("-_=:")
"""Every shape above holds one of these or a word of `_may_hold_secret`; most text holds none, and to see that is cheap."""
_SHORTEST_SECRET = 12
"""No shape above is shorter, so shorter text need not be looked at."""


def redact(arguments: object, conceal: Callable[[str], str] = str) -> dict[str, Any]:
    """The arguments of a call as the audit log keeps them; what is no mapping at all is put under `value`.

    `conceal` takes out of a text what is known to be secret, whatever it looks like.
    """
    walk = _Walk(conceal)
    if isinstance(arguments, Mapping):
        return walk.mapping(cast("Mapping[object, object]", arguments), 0)
    return {} if arguments is None else {"value": walk.value(arguments, 0)}


def redact_text(text: str, conceal: Callable[[str], str] = str) -> str:
    """`text` with everything masked that is secret or looks like it, cut at `MAX_TEXT` characters."""
    length = len(text)
    if length <= MAX_TEXT:
        text = conceal(text)
        return _SECRET_TEXT.sub(MASK, text) if length >= _SHORTEST_SECRET and _may_hold_secret(text) else text
    shown = _SECRET_TEXT.sub(MASK, conceal(text[: MAX_TEXT + _LOOKAHEAD]))[:MAX_TEXT]
    return f"{shown}… [{length - MAX_TEXT} of {length} characters cut]"


def _may_hold_secret(text: str) -> bool:
    if not _MARKS.isdisjoint(text):
        return True
    lower = text.lower()
    return (
        "bearer" in lower or "basic" in lower or "eyj" in lower or "akia" in lower or "asia" in lower or "aiza" in lower
    )


@lru_cache(maxsize=4096)
def _is_secret(key: str) -> bool:
    # A camelCase key reads like its snake_case twin: `privateKey`, `accessToken`.
    return _SECRET_KEY.search(key) is not None and _PLAIN_KEY.search(key) is None


class _Walk:
    """One walk over one call's arguments, with what is left of its budget."""

    __slots__ = ("_conceal", "_left")

    def __init__(self, conceal: Callable[[str], str]) -> None:
        self._conceal = conceal
        self._left = MAX_VALUES

    def mapping(self, values: Mapping[object, object], depth: int) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for key, value in islice(values.items(), MAX_ITEMS):
            name = key if isinstance(key, str) else f"<{type(key).__name__}>"
            name = redact_text(name, self._conceal)
            # A key long enough to flood the cache of `_is_secret` is no name of anything.
            shown[name] = MASK if len(name) <= MAX_TEXT and _is_secret(name) and value else self.value(value, depth + 1)
        if len(values) > MAX_ITEMS:
            shown["…"] = f"[{len(values) - MAX_ITEMS} of {len(values)} entries cut]"
        return shown

    def value(self, value: object, depth: int) -> Any:
        self._left -= 1
        if isinstance(value, str):
            return redact_text(value, self._conceal) if self._left >= 0 else "[cut]"
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            return value if -(2**63) <= value < 2**63 else "[large number]"
        if isinstance(value, Mapping | list | tuple):
            if self._left < 0 or depth > MAX_DEPTH:
                return f"[{len(cast('list[object]', value))} entries cut]"
            if isinstance(value, Mapping):
                return self.mapping(cast("Mapping[object, object]", value), depth)
            return self._sequence(cast("list[object] | tuple[object, ...]", value), depth)
        return f"<{type(value).__name__}>"

    def _sequence(self, values: list[object] | tuple[object, ...], depth: int) -> list[Any]:
        shown = [self.value(value, depth + 1) for value in values[:MAX_ITEMS]]
        if len(values) > MAX_ITEMS:
            shown.append(f"[{len(values) - MAX_ITEMS} of {len(values)} entries cut]")
        return shown
