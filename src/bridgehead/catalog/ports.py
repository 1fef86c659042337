"""What the catalog needs of others, in its own words."""

from __future__ import annotations

from typing import Protocol

from bridgehead.catalog.model import BackendStatus, Listing


class Provider(Protocol):
    """Something with tools to offer. It publishes into the catalog by itself, whenever its listing or status changes."""

    @property
    def name(self) -> str:
        """Its configured name."""
        ...

    @property
    def status(self) -> BackendStatus:
        """What is known of it now."""
        ...

    async def run_forever(self) -> None:
        """Live until cancelled: start, list, publish, start again after a failure, and clean up on the way out."""
        ...


class ListingStore(Protocol):
    """Keeps the last good listing of each backend across restarts.

    `fingerprint` identifies how a backend is launched; a listing kept under another fingerprint is not that backend's.
    """

    def load(self, backend: str, fingerprint: str) -> Listing | None:
        """The kept listing, marked stale, or None."""
        ...

    def save(self, backend: str, fingerprint: str, listing: Listing) -> None:
        """Keep this listing instead of any earlier one."""
        ...
