"""The numbers behind the limits, as the stages read them: by backend, with the configuration's defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridgehead.catalog import BUILTIN
from bridgehead.config import BackendSettings, LimitSettings


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is too much.

    Attributes:
        calls_per_minute: Of one caller to one tool; 0 is no limit.
        identical_failures: The how-manieth identical failing call is stopped; 0 is never.
        identical_failures_window_s: How long a failure counts towards that.
        result_bytes: The largest result, as JSON, that is sent at once.
        result_bytes_of: The same by backend, where it differs.
        in_flight: Calls that may be running in one backend.
        in_flight_of: The same by backend, where it differs.
        queue_s: How long a call waits for a place among those.
    """

    calls_per_minute: float = 0
    identical_failures: int = 3
    identical_failures_window_s: float = 60
    result_bytes: int = 8 * 1024 * 1024
    result_bytes_of: Mapping[str, int] = field(default_factory=dict[str, int])
    in_flight: int = 64
    in_flight_of: Mapping[str, int] = field(default_factory=dict[str, int])
    queue_s: float = 30

    @classmethod
    def of(cls, limits: LimitSettings, backends: Mapping[str, BackendSettings]) -> Limits:
        """The limits as configured, with what single backends say otherwise."""
        caps = {name: backend.result_bytes for name, backend in backends.items() if backend.result_bytes is not None}
        places = {name: backend.concurrency for name, backend in backends.items() if backend.concurrency is not None}
        return cls(
            calls_per_minute=limits.calls_per_minute,
            identical_failures=limits.identical_failures,
            identical_failures_window_s=limits.identical_failures_window_s,
            result_bytes=limits.result_bytes,
            result_bytes_of=caps,
            in_flight=limits.backend_concurrency,
            in_flight_of=places,
        )

    def cap(self, backend: str) -> int | None:
        """The largest result of `backend`; None for the bridge's own tools, which bound their results themselves.

        `read_result` among them: if its pages were put on the shelf again, nobody would ever reach the end.
        """
        return None if backend == BUILTIN else self.result_bytes_of.get(backend, self.result_bytes)

    def places(self, backend: str) -> int:
        """The calls that may be running in `backend`."""
        return self.in_flight_of.get(backend, self.in_flight)
