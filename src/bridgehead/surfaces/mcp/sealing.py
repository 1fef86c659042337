"""The `requestState` that callers carry between rounds: sealed, and bound to backend, method, target and caller.

It is the caller's to keep and so an attacker's to forge (MCP 2026-07-28, multi round-trip requests, security). It is encrypted
with AES-256-GCM, and opens only for the same caller asking the same thing of the same backend, for a quarter of an hour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState

from bridgehead.core import CallerId, Clock
from bridgehead.core.errors import StateInvalid

GOOD_FOR_S = 900


@dataclass(frozen=True, slots=True)
class Binding:
    """What a state is good for."""

    backend: str
    method: str
    target: str
    caller: CallerId


class Seal:
    """Seals and opens states under one key, which outlives restarts."""

    def __init__(self, key: bytes, clock: Clock) -> None:
        self._codec = AESGCMRequestStateCodec([key])
        self._clock = clock

    def close(self, state: str | None, binding: Binding) -> str:
        """Seal a backend's state; None is kept apart from an empty one."""
        until = int(self._clock.now().timestamp()) + GOOD_FOR_S
        claims = [until, binding.backend, binding.method, binding.target, binding.caller, state]
        return self._codec.seal(orjson.dumps(claims))

    def open(self, sealed: str, binding: Binding) -> str | None:
        """The backend's state.

        Raises:
            StateInvalid: It was not sealed here, for this, or is too old. Which of these is not told.
        """
        try:
            claims: list[Any] = orjson.loads(self._codec.unseal(sealed))
        except (InvalidRequestState, orjson.JSONDecodeError) as error:
            raise _refusal() from error
        until, *bound, state = claims
        if bound != [binding.backend, binding.method, binding.target, binding.caller]:
            raise _refusal()
        if until < self._clock.now().timestamp():
            raise _refusal()
        return state


def _refusal() -> StateInvalid:
    return StateInvalid(
        "The requestState is invalid, was issued for another request, or has expired.",
        hint="send the request again without requestState.",
    )
