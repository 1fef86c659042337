"""How errors look on the command line: one sentence, a hint, and an exit code by kind."""

from __future__ import annotations

import sys

from bridgehead.core.errors import Kind

EXIT_FAILURE = 1
EXIT_USAGE = 2
"""The command line itself is wrong; typer's own code for that."""
EXIT_DENIED = 3
EXIT_CONFLICT = 4

_EXIT = {
    Kind.INVALID: EXIT_FAILURE,
    Kind.UNAUTHENTICATED: EXIT_DENIED,
    Kind.FORBIDDEN: EXIT_DENIED,
    Kind.NOT_FOUND: EXIT_FAILURE,
    Kind.CONFLICT: EXIT_CONFLICT,
    Kind.LIMITED: EXIT_FAILURE,
    Kind.UNAVAILABLE: EXIT_FAILURE,
    Kind.TIMEOUT: EXIT_FAILURE,
    Kind.INTERNAL: EXIT_FAILURE,
}


def exit_code(kind: Kind) -> int:
    """The exit code for an error of that kind."""
    return _EXIT[kind]


def print_error(message: str, hint: str | None = None, call_id: str | None = None) -> None:
    """Tell the error on standard error, with the id under which the bridge's log and records have the call."""
    sys.stderr.write(f"error: {message}\n")
    if hint:
        sys.stderr.write(f"hint: {hint}\n")
    if call_id:
        sys.stderr.write(f"call: {call_id}\n")
