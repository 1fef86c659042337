"""A running bridge: the adapters behind the rooms, and the one way in which its configuration changes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from bridgehead.app.calls import CountingGate, EndableBackend
from bridgehead.app.fleet import Change, Fleet
from bridgehead.app.keys import sealing_key
from bridgehead.app.launches import NotStarted, Plan, Startable, plan_backends
from bridgehead.backends.builtin import BuiltinBackend
from bridgehead.backends.mcp import McpBackend, SharedPool, Surroundings
from bridgehead.catalog import BUILTIN, BackendStatus, Catalog, Rules, State
from bridgehead.config import Settings
from bridgehead.core import Clock, SystemClock
from bridgehead.gate import AllowAll, ConfiguredGate, GateParts, Limits, build_gate
from bridgehead.guidance import instructions
from bridgehead.identity import OwnerPolicy
from bridgehead.store import SqlAuditLog, SqlListingStore, SqlShelf, open_engine
from bridgehead.surfaces.mcp import Inside, Seal

log = structlog.get_logger(__name__)

_DATABASE = "bridgehead.db"


@dataclass(frozen=True, slots=True)
class _Parts:
    """What outlives every change of the configuration."""

    catalog: Catalog
    gate: ConfiguredGate
    builtin: EndableBackend
    fleet: Fleet
    clock: Clock


class Bridge:
    """A running bridge, and the one way in which its configuration changes: whole, between two calls."""

    def __init__(self, parts: _Parts, seal: Seal, plan: Callable[[Settings], Plan]) -> None:
        self._parts = parts
        self._plan = plan
        self.settings = Settings()
        self.catalog = parts.catalog
        self.gate = CountingGate(parts.gate, self._give_up_calls)
        self.inside = Inside(parts.catalog, self.gate, seal, instructions, parts.clock)

    @property
    def clock(self) -> Clock:
        """The time, for all that runs."""
        return self._parts.clock

    @property
    def backends(self) -> Mapping[str, McpBackend]:
        """The MCP backends that run now, by name."""
        return self._parts.fleet.backends

    def plan(self, settings: Settings) -> Plan:
        """What these settings make of each backend here; nothing happens yet. Blocks while placeholders are looked up."""
        return self._plan(settings)

    def change(self, settings: Settings, plan: Plan) -> Change:
        """Put these settings in force, on the loop and without a pause, so that every call sees either all of them or none.

        Args:
            settings: The settings, checked.
            plan: What they make of each backend.

        Returns:
            What became of the backends; they start and end behind.
        """
        parts = self._parts
        change = parts.fleet.compare(plan)
        limits = Limits.of(settings.limits, settings.backends)
        parts.fleet.take_out(change)
        self._report(plan, change)
        # The gate before the catalog: whoever is told of the catalog's change finds the backends there.
        callable_backends = {name: member.calls for name, member in change.members.items()}
        parts.gate.change({BUILTIN: parts.builtin, **callable_backends}, limits)
        not_running = [name for name, planned in plan.items() if isinstance(planned, NotStarted)]
        same_server = [name for name in change.restarted if name not in change.moved]
        parts.catalog.change(_rules(settings), forget=(*not_running, *change.moved), doubt=same_server)
        parts.fleet.carry_out(change, plan, grace_s=settings.server.shutdown_grace_s)
        self.settings = settings
        return change

    def _report(self, plan: Plan, change: Change) -> None:
        """Say where each backend is that does not go on as it was."""
        known, now = self.catalog.statuses, self._parts.clock.now()
        for name, planned in plan.items():
            if isinstance(planned, Startable):
                if name in change.started or name in change.restarted:
                    self.catalog.report(BackendStatus(name, State.STARTING, now))
                continue
            before = known.get(name)
            if before is None or (before.state, before.cause) != (planned.state, planned.cause):
                self.catalog.report(BackendStatus(name, planned.state, now, planned.cause))
                log.warning("backend is not started", backend=name, cause=planned.cause)

    def _give_up_calls(self) -> None:
        reason = "The bridge was stopped"
        self._parts.builtin.give_up(reason)
        self._parts.fleet.give_up_calls(reason)


@asynccontextmanager
async def running(
    settings: Settings, state_dir: Path, environ: Mapping[str, str], *, own_url: str | None = None
) -> AsyncGenerator[Bridge]:
    """A bridge with its backends coming up behind it, for as long as the context lasts.

    On leaving, every backend and all that it started has ended, and the audit log is written.
    """
    clock = SystemClock()
    await anyio.Path(state_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = open_engine(state_dir / _DATABASE)
    audit = SqlAuditLog(engine)
    shelf = SqlShelf(engine, clock)
    catalog = Catalog(_rules(settings))
    pool = SharedPool()
    around = Surroundings(catalog, SqlListingStore(engine), pool, clock, environ)
    own_tools = BuiltinBackend(lambda: catalog.snapshot, lambda: catalog.statuses, shelf)
    catalog.publish(BUILTIN, own_tools.listing())
    builtin = EndableBackend(own_tools)
    gate = build_gate(
        GateParts(
            snapshot=lambda: catalog.snapshot,
            policy=OwnerPolicy(),
            audit=audit,
            confirmer=AllowAll(),
            shelf=shelf,
            clock=clock,
            backends={BUILTIN: builtin},
            limits=settings.limits,
            starting=lambda: _never_listed(catalog),
        )
    )
    seal = Seal(sealing_key(state_dir), clock)
    try:
        async with anyio.create_task_group() as tasks:
            parts = _Parts(catalog, gate, builtin, Fleet(tasks, around), clock)
            bridge = Bridge(parts, seal, partial(plan_backends, environ=environ, own_url=own_url))
            bridge.change(settings, await anyio.to_thread.run_sync(bridge.plan, settings))
            try:
                yield bridge
            finally:
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await pool.shut()
            await anyio.to_thread.run_sync(audit.close)
            await anyio.to_thread.run_sync(engine.dispose)


def _never_listed(catalog: Catalog) -> list[str]:
    """The backends that are starting and of which nothing is known."""
    return [
        name
        for name, status in catalog.statuses.items()
        if status.state is State.STARTING and name not in catalog.snapshot.listings
    ]


def _rules(settings: Settings) -> Rules:
    return Rules(
        order=(BUILTIN, *settings.backends),
        unprefixed=frozenset(name for name, backend in settings.backends.items() if backend.namespace == "none"),
        groups=settings.groups,
        ungrouped=settings.server.ungrouped == "show",
    )
