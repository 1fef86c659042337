"""What the gate needs of others, in its own words. Only the gate calls a `Backend`; adapters implement these ports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from bridgehead.core import Call, Caller, Outcome, Risk


class Backend(Protocol):
    """Runs calls that the gate has let through."""

    @property
    def name(self) -> str:
        """Its configured name."""
        ...

    async def run(self, call: Call) -> Outcome:
        """Run the call to the end; `call.route` is set and names this backend.

        Raises:
            BackendUnavailable: It cannot be reached, or went away.
            BackendTimeout: It did not answer in time.
            ProtocolFailure: It answered with a JSON-RPC error.
        """
        ...


class Policy(Protocol):
    """Who may do what."""

    def allows(self, caller: Caller, risk: Risk) -> bool:
        """Whether the caller may run something of that risk at all."""
        ...


class Confirmer(Protocol):
    """Asks whoever has to agree to a call."""

    async def confirm(self, call: Call) -> None:
        """Return once the call may run.

        Raises:
            ConfirmationRequired: Nobody has agreed yet.
        """
        ...


@dataclass(slots=True)
class AuditRecord:
    """One line of the audit log.

    Attributes:
        arguments: Redacted.
        verdict: `ok`, `tool_error` (the tool's own failure), `input_required`, `refused` (ours, before it ran),
        `failed`, or
            `cancelled` (the caller went away first).
        code: The error code, where there is one.
        duration_s: From entering the gate to leaving it.
    """

    call_id: str
    at: datetime
    caller: str
    surface: str
    method: str
    target: str
    group: str | None
    backend: str | None
    arguments: Mapping[str, Any]
    verdict: str
    code: str | None
    duration_s: float


GOOD_VERDICTS = ("ok", "input_required")
"""The verdicts of calls that went as they should."""


class AuditLog(Protocol):
    """Append-only."""

    def append(self, record: AuditRecord) -> None:
        """Accept the record; it is written in batches by a writer of its own, in order, and at the latest on close."""
        ...


class Shelf(Protocol):
    """Keeps results that were too large to send at once."""

    async def put(self, owner: str, text: str) -> str | None:
        """Keep `text` for `owner` and return a handle that nobody can guess; None where it could not be kept."""
        ...
