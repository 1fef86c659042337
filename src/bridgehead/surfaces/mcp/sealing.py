"""The `requestState` that callers carry between rounds: sealed, and bound to the call and the caller.

It is the caller's to keep and so an attacker's to forge (MCP 2026-07-28, multi round-trip requests, security). It is encrypted
with AES-256-GCM, and opens only for the same caller asking the same thing of the same backend, for a quarter of an hour.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple, dataclass
from typing import Any

import orjson
from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState

from bridgehead.core import CallerId, Clock
from bridgehead.core.errors import StateInvalid
from bridgehead.core.json import nested_deeper_than

GOOD_FOR_S = 900
_MOST_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Binding:
    """What a state is good for."""

    backend: str
    method: str
    target: str
    caller: CallerId
    group: str | None
    arguments: str
    """A digest of the arguments."""


def digest(arguments: object) -> str:
    """A digest that is the same for the same arguments, in whatever order they were written."""
    if nested_deeper_than(arguments, _MOST_DEPTH):
        # Such arguments are refused by the gate, so no state is ever sealed for them.
        return ""
    return hashlib.sha256(json.dumps(arguments, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Seal:
    """Seals and opens states under one key, which outlives restarts."""

    def __init__(self, key: bytes, clock: Clock) -> None:
        self._codec = AESGCMRequestStateCodec([key])
        self._clock = clock

    def close(self, state: str | None, binding: Binding) -> str:
        """Seal a backend's state; None is kept apart from an empty one."""
        until = int(self._clock.now().timestamp()) + GOOD_FOR_S
        claims = [until, *astuple(binding), state]
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
        if bound != list(astuple(binding)):
            raise _refusal()
        if until < self._clock.now().timestamp():
            raise _refusal()
        return state


def _refusal() -> StateInvalid:
    return StateInvalid(
        "The requestState is invalid, was issued for another request, or has expired.",
        hint="send the request again without requestState.",
    )
