"""Takes the values of secrets out of text that is on its way to a log, a status, an error or a record.

A second line: nothing of ours writes a value. But a server may print its environment when it dies, or repeat its key in an
error, and what it says is shown. What a tool returns is not touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

from bridgehead.config.secrets import MASK, Secret

SHORTEST = 4
"""Characters. Shorter values are everywhere by chance, and text without them could not be read."""
_SHORTEST_PART = 8
"""Characters of a line of a longer value, or of a value that was cut off, from which on they are taken out too."""


@dataclass(frozen=True, slots=True)
class _Known:
    """All values, in every form; `needles` are the beginnings and ends of the forms."""

    forms: frozenset[str] = frozenset()
    needles: tuple[str, ...] = ()
    shortest: int = 0
    pattern: re.Pattern[str] | None = None


class Concealment:
    """Knows values, and gives any text without them. Callable from any thread; what it knows only grows."""

    def __init__(self) -> None:
        self._known = _Known()

    def learn(self, secrets: Iterable[Secret]) -> None:
        """Take these values out from now on; earlier ones too, since a server that still runs may have them."""
        forms = self._known.forms.union(*(_forms(secret.reveal()) for secret in secrets))
        if forms != self._known.forms:
            # The longest first, so that no value is left behind by a shorter one that is part of it.
            longest_first = sorted(forms, key=len, reverse=True)
            needles = {needle for form in forms for needle in (form[:_SHORTEST_PART], form[-_SHORTEST_PART:])}
            shortest = min(map(len, needles))
            self._known = _Known(forms, tuple(needles), shortest, re.compile("|".join(map(re.escape, longest_first))))

    def __call__(self, text: str) -> str:
        """The text with `***` for each value, and for what is left of one where the text was cut."""
        known = self._known
        # Nearly every text holds nothing, and looking for plain strings is many times quicker than an expression.
        if known.pattern is None or len(text) < known.shortest or not any(needle in text for needle in known.needles):
            return text
        text = known.pattern.sub(MASK, text)
        for form in known.forms:
            text = _without_parts(text, form)
        return text


def _forms(value: str) -> Iterator[str]:
    """The value as it may be written: plain, escaped for JSON, Python or a URL, and line by line."""
    whole = (
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        quote(value, safe=""),
        quote(value),
        quote_plus(value),
    )
    yield from (form for form in whole if len(form) >= SHORTEST)
    yield from (line.strip() for line in value.splitlines() if len(line.strip()) >= _SHORTEST_PART)


def _without_parts(text: str, form: str) -> str:
    """The text without a beginning of `form` at its end, and without an end of `form` at its beginning."""
    longest = min(len(form) - 1, len(text))
    if form[:_SHORTEST_PART] in text[-longest:]:
        for length in range(longest, _SHORTEST_PART - 1, -1):
            if text.endswith(form[:length]):
                text = text[:-length] + MASK
                break
    if form[-_SHORTEST_PART:] in text[:longest]:
        for length in range(min(longest, len(text)), _SHORTEST_PART - 1, -1):
            if text.startswith(form[-length:]):
                return MASK + text[length:]
    return text
