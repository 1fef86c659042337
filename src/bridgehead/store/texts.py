"""Values made fit for a text column of any database, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_json(value: object) -> str:
    """ASCII JSON, which keeps NUL and lone surrogates as escapes; what is not JSON becomes its text."""
    return json.dumps(value, separators=(",", ":"), default=_plain)


def from_json(text: str) -> dict[str, Any]:
    """The object that was kept.

    Raises:
        ValueError: It is no JSON object.
    """
    value: object = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError("kept JSON is not an object")
    return cast("dict[str, Any]", value)


def clean(text: str) -> str:
    """`text` without what a text column refuses."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\\x00").encode(errors="backslashreplace").decode()


def to_us(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    """The moment that was kept."""
    return _EPOCH + us * _MICROSECOND


def _plain(value: object) -> object:
    return dict(cast("Mapping[Any, Any]", value)) if isinstance(value, Mapping) else str(value)
