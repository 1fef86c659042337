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
        backends: By configured name; read at each call, so backends may come and go.
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


def build_gate(parts: GateParts) -> Gate:
    """The gate over these parts, its stages in `ORDER`."""
    routed: dict[str, str] = {}
    limits = Limits.of(parts.limits, parts.overrides)
    failures = Failures(parts.clock, stop_at=limits.identical_failures, window_s=limits.identical_failures_window_s)
    stages: dict[type[Stage], Stage] = {
        Audit: Audit(parts.audit, parts.clock, routed, parts.conceal),
        Authorise: Authorise(parts.snapshot, parts.policy, routed, parts.starting),
        Validate: Validate(failures),
        Limit: Limit(Rate(parts.clock, limits.calls_per_minute), failures, Overflow(parts.shelf, limits)),
        Confirm: Confirm(parts.confirmer),
    }
    return Gate([stages[stage] for stage in ORDER], Dispatch(parts.backends, limits))
