"""What can go wrong that is ours to report, sorted by what the reader may do next.

A tool's own failure is an `Outcome` with `is_error`; everything here is an exception. How a kind becomes an HTTP status, a
JSON-RPC code or an exit code is each surface's table, not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar


class Kind(StrEnum):
    """What the caller may do next."""

    INVALID = "invalid"
    """Mend the request and send it again."""
    UNAUTHENTICATED = "unauthenticated"
    """Present a credential."""
    FORBIDDEN = "forbidden"
    """Ask the owner for the right."""
    NOT_FOUND = "not_found"
    """Choose another name."""
    CONFLICT = "conflict"
    """Look at the present state first."""
    LIMITED = "limited"
    """Slow down, or stop."""
    UNAVAILABLE = "unavailable"
    """Try again later."""
    TIMEOUT = "timeout"
    """The work may still be going on; look before trying again."""
    INTERNAL = "internal"
    """Report the incident."""


class BridgeError(Exception):
    """Base of every error that is ours.

    `message` is one sentence that names the thing; `hint` is one next step; `details` are machine-readable and never hold a
    secret, an argument's value or a stack. `call_id` is set by the gate on an error of a call: the id under which the logs
    and the audit records have it.
    """

    kind: ClassVar[Kind] = Kind.INTERNAL
    code: ClassVar[str] = "internal"

    def __init__(self, message: str, *, hint: str | None = None, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: Mapping[str, Any] = dict(details or {})
        self.call_id: str | None = None

    def sentence(self) -> str:
        """The message, with the hint behind it where there is one."""
        return f"{self.message} hint: {self.hint}" if self.hint else self.message

    def as_dict(self) -> dict[str, Any]:
        """The shape every surface shows: `code`, `message`, and `hint`, `details` and `call_id` where there are any."""
        shown: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.hint:
            shown["hint"] = self.hint
        if self.details:
            shown["details"] = dict(self.details)
        if self.call_id:
            shown["call_id"] = self.call_id
        return shown


class ConfigInvalid(BridgeError):
    """The configuration cannot be used as it is written."""

    kind = Kind.INVALID
    code = "invalid_config"


class RequestInvalid(BridgeError):
    """The request is not one this bridge can read."""

    kind = Kind.INVALID
    code = "invalid_request"


class ArgumentsInvalid(BridgeError):
    """The arguments do not fit the tool's input schema."""

    kind = Kind.INVALID
    code = "invalid_arguments"


class StateInvalid(BridgeError):
    """A `requestState` that was not sealed here for this call, or is too old."""

    kind = Kind.INVALID
    code = "invalid_request_state"


class Unauthenticated(BridgeError):
    """No credential, or one that nobody here issued."""

    kind = Kind.UNAUTHENTICATED
    code = "unauthenticated"


class Forbidden(BridgeError):
    """The caller is known, but may not do this."""

    kind = Kind.FORBIDDEN
    code = "forbidden"


class ToolNotFound(BridgeError):
    """No tool of that name is visible to the caller.

    A tool the caller may not see and one that does not exist raise the same error, so that names cannot be probed.
    """

    kind = Kind.NOT_FOUND
    code = "unknown_tool"


class ResourceNotFound(BridgeError):
    """No resource of that URI is visible to the caller."""

    kind = Kind.NOT_FOUND
    code = "unknown_resource"


class PromptNotFound(BridgeError):
    """No prompt of that name is visible to the caller."""

    kind = Kind.NOT_FOUND
    code = "unknown_prompt"


class GroupNotFound(BridgeError):
    """No group of that name is switched on."""

    kind = Kind.NOT_FOUND
    code = "unknown_group"


class BackendNotFound(BridgeError):
    """No backend of that name is configured."""

    kind = Kind.NOT_FOUND
    code = "unknown_backend"


class RateLimited(BridgeError):
    """The caller has used up its calls to this tool for now."""

    kind = Kind.LIMITED
    code = "rate_limited"


class LoopStopped(BridgeError):
    """The same call has failed the same way too often, and was not run again."""

    kind = Kind.LIMITED
    code = "loop_stopped"


class BackendBusy(BridgeError):
    """The backend has as many calls in flight as it is allowed."""

    kind = Kind.LIMITED
    code = "backend_busy"


class BackendUnavailable(BridgeError):
    """The backend cannot be reached, or went away during the call."""

    kind = Kind.UNAVAILABLE
    code = "backend_unavailable"


class BackendFaulty(BridgeError):
    """The backend answered with something that is no result at all."""

    kind = Kind.UNAVAILABLE
    code = "backend_faulty"


class BackendTimeout(BridgeError):
    """The backend did not answer within its time."""

    kind = Kind.TIMEOUT
    code = "backend_timeout"


class ConfirmationRequired(BridgeError):
    """A person has to agree first."""

    kind = Kind.CONFLICT
    code = "confirmation_required"


class InternalFailure(BridgeError):
    """Something here broke; `details["incident"]` is all the caller learns, and leads to the stack in the log."""

    kind = Kind.INTERNAL
    code = "internal"


class ProtocolFailure(BridgeError):
    """The backend answered with a JSON-RPC error, which is relayed as it is.

    Attributes:
        rpc_code: The JSON-RPC error code of the backend.
        data: The JSON-RPC error data of the backend, or None.
    """

    kind = Kind.INVALID
    code = "backend_error"

    def __init__(self, message: str, *, rpc_code: int, data: Any = None) -> None:
        super().__init__(message)
        self.rpc_code = rpc_code
        self.data = data
