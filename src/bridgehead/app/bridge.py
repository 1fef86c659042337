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
from bridgehead.app.launches import NotStarted, Place, Plan, Startable, plan_backends
from bridgehead.app.records import DATABASE
from bridgehead.app.vault import Vault, secret_reader
from bridgehead.backends.builtin import BuiltinBackend
from bridgehead.backends.mcp import McpBackend, Processes, SharedPool, Starts, Surroundings
from bridgehead.catalog import BUILTIN, BackendStatus, Catalog, DiscreetCatalog, Rules, State
from bridgehead.config import Concealment, Settings
from bridgehead.core import Clock, SystemClock
from bridgehead.gate import AllowAll, Broadcast, ConfiguredGate, GateParts, Limits, build_gate
from bridgehead.guidance import instructions
from bridgehead.identity import OwnerPolicy
from bridgehead.store import SqlAuditLog, SqlListingStore, SqlShelf, open_engine
from bridgehead.surfaces.mcp import Inside, Seal

log = structlog.get_logger(__name__)

_CHILDREN = "children"


@dataclass(frozen=True, slots=True)
class _Parts:
    """What outlives every change of the configuration."""

    catalog: Catalog
    gate: ConfiguredGate
    builtin: EndableBackend
    fleet: Fleet
    live: Broadcast
    conceal: Concealment
    clock: Clock


class Bridge:
    """A running bridge, and the one way in which its configuration changes: whole, between two calls."""

    def __init__(self, parts: _Parts, seal: Seal, plan: Callable[[Settings], Plan]) -> None:
        self._parts = parts
        self._plan = plan
        self.settings = Settings()
        self.catalog = parts.catalog
        self.live = parts.live
        self.gate = CountingGate(parts.gate, self._give_up_calls)
        self.inside = Inside(
            parts.catalog, self.gate, seal, instructions, parts.clock, lambda: self.settings.forwarded_headers
        )

    @property
    def clock(self) -> Clock:
        """The time, for all that runs."""
        return self._parts.clock

    @property
    def backends(self) -> Mapping[str, McpBackend]:
        """The MCP backends that run now, by name."""
        return self._parts.fleet.backends

    def plan(self, settings: Settings) -> Plan:
        """What these settings make of each backend here; nothing happens yet. Blocks while placeholders are looked up.

        The values of secrets are concealed from then on, those from before too, since a server that still runs may have them.
        """
        plan = self._plan(settings)
        for planned in plan.values():
            if isinstance(planned, Startable):
                self._parts.conceal.learn(planned.launch.secrets)
        return plan

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
        conceal = self._parts.conceal
        for name, planned in plan.items():
            if isinstance(planned, Startable):
                if name in change.started or name in change.restarted:
                    self.catalog.report(BackendStatus(name, State.STARTING, now))
                continue
            before, cause = known.get(name), conceal(planned.cause)
            if before is None or (before.state, before.cause) != (planned.state, cause):
                self.catalog.report(BackendStatus(name, planned.state, now, cause))
                log.warning("backend is not started", backend=name, cause=cause)

    def _give_up_calls(self) -> None:
        reason = "The bridge was stopped"
        self._parts.builtin.give_up(reason)
        self._parts.fleet.give_up_calls(reason)


@asynccontextmanager
async def running(
    settings: Settings,
    state_dir: Path,
    environ: Mapping[str, str],
    *,
    own_url: str | None = None,
    vault: Vault | None = None,
) -> AsyncGenerator[Bridge]:
    """A bridge with its backends coming up behind it, for as long as the context lasts.

    On leaving, every backend and all that it started has ended, and the audit log is written.

    Args:
        settings: The configuration to begin with.
        state_dir: Where its state is kept.
        environ: What placeholders and children get variables from.
        own_url: Where it listens, so that it never becomes a backend of itself.
        vault: Where its secrets are; None: in `state_dir`, and nobody else has to keep them out of anything.
    """
    vault = vault or Vault(state_dir, Concealment())
    conceal = vault.conceal
    clock = SystemClock()
    await anyio.Path(state_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = open_engine(state_dir / DATABASE)
    audit = SqlAuditLog(engine)
    live = Broadcast(audit)
    shelf = SqlShelf(engine, clock)
    catalog = Catalog(_rules(settings))
    pool = SharedPool()
    around = Surroundings(
        DiscreetCatalog(catalog, conceal),
        SqlListingStore(engine),
        pool,
        clock,
        environ,
        processes=Processes(state_dir / _CHILDREN),
        starts=Starts(settings.server.parallel_starts),
        fast_lane=settings.server.fast_lane,
    )
    own_tools = BuiltinBackend(lambda: catalog.snapshot, lambda: catalog.statuses, shelf)
    catalog.publish(BUILTIN, own_tools.listing())
    builtin = EndableBackend(own_tools)
    gate = build_gate(
        GateParts(
            snapshot=lambda: catalog.snapshot,
            policy=OwnerPolicy(),
            audit=live,
            confirmer=AllowAll(),
            shelf=shelf,
            clock=clock,
            backends={BUILTIN: builtin},
            limits=settings.limits,
            starting=catalog.never_listed,
            conceal=conceal,
        )
    )
    seal = Seal(sealing_key(state_dir), clock)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(around.processes.run_forever)
            parts = _Parts(catalog, gate, builtin, Fleet(tasks, around), live, conceal, clock)
            place = Place(environ, partial(secret_reader, state_dir=vault.state_dir), own_url)
            bridge = Bridge(parts, seal, partial(plan_backends, place=place))
            # In a thread, since a keyring may take its time.
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


def _rules(settings: Settings) -> Rules:
    return Rules(
        order=(BUILTIN, *settings.backends),
        unprefixed=frozenset(name for name, backend in settings.backends.items() if backend.namespace == "none"),
        groups=settings.groups,
        ungrouped=settings.server.ungrouped == "show",
    )
