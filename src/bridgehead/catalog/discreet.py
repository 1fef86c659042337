"""The way into the catalog for backends that were given secrets: what is said of them is told without the values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bridgehead.catalog.catalog import Catalog
from bridgehead.catalog.model import BackendStatus, Listing


class DiscreetCatalog:
    """Passes on what backends publish; of a status, which anybody may read, only what may be told."""

    def __init__(self, catalog: Catalog, conceal: Callable[[str], str]) -> None:
        """Pass on to `catalog`; `conceal` gives a text without the values of secrets."""
        self._catalog = catalog
        self._conceal = conceal

    def publish(self, backend: str, listing: Listing) -> None:
        """Replace what the backend offers."""
        self._catalog.publish(backend, listing)

    def report(self, status: BackendStatus) -> None:
        """Replace what is known of the backend."""
        self._catalog.report(discreet(status, self._conceal))

    def announce(self, backend: str, uri: str) -> None:
        """Say that a resource has changed."""
        self._catalog.announce(backend, uri)


def discreet(status: BackendStatus, conceal: Callable[[str], str]) -> BackendStatus:
    """The status with every text that a server may have had a hand in concealed."""
    return replace(
        status,
        cause=None if status.cause is None else conceal(status.cause),
        server=None if status.server is None else conceal(status.server),
        protocol=None if status.protocol is None else conceal(status.protocol),
        stderr=tuple(conceal(line) for line in status.stderr),
    )
