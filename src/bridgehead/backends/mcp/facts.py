"""What was learned about talking to a server, kept on disk so that the next start is instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known; None where it has not been tried.

    Attributes:
        legacy: It has to be begun with `initialize`; asking it for its generation fails or kills it.
        discovered: Its `server/discover` result.
        sse: It only speaks the HTTP+SSE transport of 2024-11-05.
        dual: A modern server that speaks the older generation too.
        asks_roots: It has asked for its client's roots.
    """

    legacy: bool | None = None
    discovered: Mapping[str, Any] | None = None
    sse: bool | None = None
    dual: bool | None = None
    asks_roots: bool | None = None

    def as_dict(self) -> dict[str, Any]:
        """The facts that are known, for keeping."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Facts:
        """The facts that were kept; keys of other versions are ignored."""
        return cls(**{key: value for key, value in kept.items() if key in cls.__slots__})
