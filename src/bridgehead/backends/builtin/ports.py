"""What the built-in tools need of others, in their own words."""

from __future__ import annotations

from typing import Protocol


class ResultReader(Protocol):
    """Reads results that were too large to send at once."""

    async def read(self, owner: str, handle: str, offset: int, length: int) -> tuple[str, int] | None:
        """At most `length` characters of the text from `offset` on, and how many characters it has in all.

        The text is empty where `offset` is at or past the end. None: the handle is unknown, has expired, or is another
        owner's; which of these is not told.
        """
        ...
