"""How the configuration in force relates to the file that it came from. Knows neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class ConfigStatus:
    """What is in force, and what keeps the file from being in force.

    Attributes:
        source: The file, or None where there is none.
        loaded: When what is in force was read.
        error: Why the file as it is now cannot be used; None where it is in force.
        error_since: Since when it cannot, for this reason or another.
        needs_restart: Dotted keys that differ in the file and take a restart.
    """

    source: Path | None
    loaded: datetime
    error: str | None = None
    error_since: datetime | None = None
    needs_restart: tuple[str, ...] = ()

    def as_dict(self) -> Mapping[str, Any]:
        """The same as JSON: `source`, `loaded`, `error` (None, or `message` and `since`) and `needs_restart`."""
        error = (
            {"message": self.error, "since": self.error_since.isoformat() if self.error_since is not None else None}
            if self.error is not None
            else None
        )
        return {
            "source": str(self.source) if self.source is not None else None,
            "loaded": self.loaded.isoformat(),
            "error": error,
            "needs_restart": list(self.needs_restart),
        }
