"""Who may do what."""

from __future__ import annotations

from bridgehead.core import Caller, Risk
from bridgehead.identity.authenticate import LOCAL_OWNER


class OwnerPolicy:
    """The local owner may do everything, and nobody else anything."""

    def allows(self, caller: Caller, risk: Risk) -> bool:
        """Whether the caller may run something of that risk at all."""
        del risk
        return caller.id == LOCAL_OWNER.id
