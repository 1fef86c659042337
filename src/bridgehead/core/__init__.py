"""The words every room uses: calls, outcomes, errors, ids and clocks. Knows nothing of any other room."""

from bridgehead.core.call import (
    Call,
    Caller,
    CallerId,
    CallId,
    Channel,
    Era,
    Method,
    Outcome,
    Risk,
    Route,
    Silence,
)
from bridgehead.core.errors import BridgeError, Kind
from bridgehead.core.ids import Clock, SystemClock, new_id
from bridgehead.core.json import as_mapping

__all__ = [
    "BridgeError",
    "Call",
    "CallId",
    "Caller",
    "CallerId",
    "Channel",
    "Clock",
    "Era",
    "Kind",
    "Method",
    "Outcome",
    "Risk",
    "Route",
    "Silence",
    "SystemClock",
    "as_mapping",
    "new_id",
]
