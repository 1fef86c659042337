"""Identifiers and clocks, as ports: nothing else in the bridge draws randomness or reads the time."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Time, so that tests can own it."""

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean anything."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some moment before the process started."""
        return time.monotonic()


def new_id(prefix: str) -> str:
    """A fresh identifier such as `call_3f9c…`: 96 random bits behind `prefix`."""
    return f"{prefix}_{secrets.token_hex(12)}"
