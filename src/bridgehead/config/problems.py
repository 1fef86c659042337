"""What is wrong with a configuration, in words, to be reported all at once. Knows neither files nor settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from bridgehead.core.errors import ConfigInvalid

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
NEXT_STEP = "correct it, then run `bridgehead config check`."


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend.

    Attributes:
        where: The file's name, or `environment PORT`.
        key: The full dotted key; empty where the problem is with no single key.
        message: What is wrong, as the rest of a sentence that begins with the key. Never holds the value.
    """

    where: str
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.key} {self.message}" if self.key else f"{self.where}: {self.message}"


def dotted(*parts: str | int) -> str:
    """A key as TOML writes it: parts that are not bare are quoted, indexes are in brackets."""
    written = ""
    for part in parts:
        if isinstance(part, int):
            written += f"[{part}]"
            continue
        quoted = part if _BARE_KEY.fullmatch(part) else '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"'
        written += f".{quoted}" if written else quoted
    return written


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant, or None."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def suggestion(name: str, known: Sequence[str]) -> str:
    """`; did you mean …?` where something is near, else the known names, else nothing."""
    near = nearest(name, known)
    if near is not None:
        return f"; did you mean `{near}`?"
    return f"; known are {', '.join(known)}." if known else "."


def invalid(problems: Sequence[Problem]) -> ConfigInvalid:
    """The one error that reports all these problems.

    `details["problems"]` has them as objects with `where`, `key` and `message`.
    """
    details: dict[str, Any] = {
        "problems": [{"where": one.where, "key": one.key, "message": one.message} for one in problems]
    }
    if len(problems) == 1:
        return ConfigInvalid(_sentence(problems[0]), hint=NEXT_STEP, details=details)
    lines = "".join(f"\n- {_sentence(one)}" for one in problems)
    return ConfigInvalid(
        f"The configuration has {len(problems)} problems:{lines}",
        hint="correct them, then run `bridgehead config check`.",
        details=details,
    )


def _sentence(problem: Problem) -> str:
    text = str(problem)
    return text if text.endswith((".", "?")) else f"{text}."
