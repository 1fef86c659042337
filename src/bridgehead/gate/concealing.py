"""Errors made fit to leave: what a server says goes into them, and it may say a secret that it was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from bridgehead.core import BridgeError
from bridgehead.core.errors import ProtocolFailure

_MOST_DEPTH = 64


def conceal_error(error: BridgeError, conceal: Callable[[str], str]) -> None:
    """Put every text of the error through `conceal`, its machine-readable parts included."""
    error.message = conceal(error.message)
    error.args = (error.message,)
    if error.hint is not None:
        error.hint = conceal(error.hint)
    error.details = {conceal(key): _concealed(value, conceal, 1) for key, value in error.details.items()}
    if isinstance(error, ProtocolFailure):
        error.data = _concealed(error.data, conceal, 0)


def _concealed(value: Any, conceal: Callable[[str], str], depth: int) -> Any:
    """The value with every text in it concealed, keys too; nothing is left of what is nested too deep to be looked at."""
    if isinstance(value, str):
        return conceal(value)
    if isinstance(value, Mapping | list | tuple):
        if depth >= _MOST_DEPTH:
            return None
        if isinstance(value, Mapping):
            table = cast("Mapping[object, Any]", value)
            return {
                conceal(key) if isinstance(key, str) else key: _concealed(one, conceal, depth + 1)
                for key, one in table.items()
            }
        return [_concealed(one, conceal, depth + 1) for one in cast("list[Any]", value)]
    return value
