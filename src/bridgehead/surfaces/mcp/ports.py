"""What the MCP surface needs of others, in its own words."""

from __future__ import annotations

from typing import Protocol

from bridgehead.catalog import Snapshot, View
from bridgehead.core import Call, Caller, Outcome


class Gate(Protocol):
    """The one path from a call to an outcome."""

    async def run(self, call: Call) -> Outcome:
        """Run the call.

        Raises:
            BridgeError: It was refused or failed.
        """
        ...


class Authenticator(Protocol):
    """Tells who is calling."""

    @property
    def epoch(self) -> int:
        """Another number once a credential that was good before may be so no longer."""
        ...

    def caller(self, authorization_header: str | None, *, peer_is_loopback: bool) -> Caller:
        """The caller behind an `Authorization` header.

        Raises:
            Unauthenticated: There is none.
        """
        ...


class Instructions(Protocol):
    """Writes what a client is told about the bridge when it connects."""

    def __call__(self, view: View, snapshot: Snapshot) -> str:
        """The `instructions` for callers of that view."""
        ...
