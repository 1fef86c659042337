"""What an MCP backend needs of others, in its own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from bridgehead.catalog import BackendStatus, Listing


class Shelf(Protocol):
    """Where a backend's listing and status go, and news of its resources."""

    def publish(self, backend: str, listing: Listing) -> None:
        """Replace what the backend offers."""
        ...

    def report(self, status: BackendStatus) -> None:
        """Replace what is known of the backend."""
        ...

    def announce(self, backend: str, uri: str) -> None:
        """Say that a resource which somebody subscribed to has changed."""
        ...


class Memory(Protocol):
    """Keeps the last good listing of a backend, and what was learned about talking to it, across restarts."""

    def load(self, backend: str, fingerprint: str) -> Listing | None:
        """The kept listing, marked stale, or None."""
        ...

    def save(self, backend: str, fingerprint: str, listing: Listing) -> None:
        """Keep this listing instead of any earlier one."""
        ...

    def load_facts(self, backend: str, fingerprint: str) -> Mapping[str, Any]:
        """What was learned under that fingerprint; empty where nothing was."""
        ...

    def save_facts(self, backend: str, fingerprint: str, facts: Mapping[str, Any]) -> None:
        """Keep these facts instead of any earlier ones."""
        ...
