"""The order of the gate's stages, and how they are put together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from bridgehead.catalog import Snapshot
from bridgehead.config import BackendSettings, LimitSettings
from bridgehead.core import Clock
from bridgehead.gate.failures import Failures
from bridgehead.gate.limits import Limits
from bridgehead.gate.overflow import Overflow
from bridgehead.gate.pipeline import Gate, Stage
from bridgehead.gate.ports import AuditLog, Backend, Confirmer, Policy, Shelf
from bridgehead.gate.stages import Audit, Authorise, Confirm, Dispatch, Limit, Rate, Validate

ORDER: tuple[type[Stage], ...] = (Audit, Authorise, Validate, Limit, Confirm)
"""Outermost first, with dispatch inside them all.

Audit is outermost, because a refusal is the record that matters most. Limit stands before confirm, so that nobody can
flood a person with requests to agree.
"""


@dataclass(frozen=True, slots=True)
class GateParts:
    """What the gate is made of.

    Attributes:
        snapshot: Gives the catalog as it is now.
        backends: By configured name.
        starting: Names the backends that have never listed anything yet.
        overrides: What single backends say of their own limits.
        conceal: Gives a text without the values of secrets; every error that leaves and every record goes through it.
    """

    snapshot: Callable[[], Snapshot]
    backends: Mapping[str, Backend]
    policy: Policy
    audit: AuditLog
    confirmer: Confirmer
    shelf: Shelf
    clock: Clock
    limits: LimitSettings = field(default_factory=LimitSettings)
    starting: Callable[[], Collection[str]] = tuple
    overrides: Mapping[str, BackendSettings] = field(default_factory=dict[str, BackendSettings])
    conceal: Callable[[str], str] = str


class ConfiguredGate(Gate):
    """A gate whose configuration can change between two calls.

    A call ends under the configuration it began with: it looks its name up and meets the outermost stage without a pause in
    between, so a catalog that is swapped together with the gate is never seen through the other's. What the stages remember
    of callers, and the places that running calls hold, outlives a change.
    """

    def __init__(self, parts: GateParts) -> None:
        limits = Limits.of(parts.limits, parts.overrides)
        routed: dict[str, str] = {}
        self._shelf = parts.shelf
        self._failures = Failures(
            parts.clock, stop_at=limits.identical_failures, window_s=limits.identical_failures_window_s
        )
        self._rate = Rate(parts.clock, limits.calls_per_minute)
        self._dispatch = Dispatch(parts.backends, limits)
        self._audit = Audit(parts.audit, parts.clock, routed, parts.conceal)
        self._stages: Mapping[type[Stage], Stage] = {
            Audit: self._audit,
            Authorise: Authorise(parts.snapshot, parts.policy, routed, parts.starting),
            Validate: Validate(self._failures),
            Confirm: Confirm(parts.confirmer),
        }
        super().__init__(self._ordered(limits), self._dispatch)

    def change(self, backends: Mapping[str, Backend], limits: Limits) -> None:
        """Run the calls that come from now on in these backends, under these limits, and tell the log of them if it wants.

        Args:
            backends: By configured name. One that was there before keeps the places of its running calls.
            limits: For everyone at once, however much of them is used up.
        """
        self._audit.adjust()
        self._failures.adjust(stop_at=limits.identical_failures, window_s=limits.identical_failures_window_s)
        self._rate.adjust(limits.calls_per_minute)
        self._dispatch = self._dispatch.changed(backends, limits)
        self.swap(self._ordered(limits), self._dispatch)

    def _ordered(self, limits: Limits) -> list[Stage]:
        limit = Limit(self._rate, self._failures, Overflow(self._shelf, limits))
        stages = {**self._stages, Limit: limit}
        return [stages[stage] for stage in ORDER]


def build_gate(parts: GateParts) -> ConfiguredGate:
    """The gate over these parts, its stages in `ORDER`."""
    return ConfiguredGate(parts)
