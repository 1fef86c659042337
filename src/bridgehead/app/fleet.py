"""The MCP backends that run, each in a task of its own, and how one set of them becomes another.

A backend that is launched as before runs on, with its process, its sessions and its calls. One that is taken out takes no new
calls, gives those in flight their grace, and then ends; one that is launched in another way does so too, and its successor
starts beside it. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import anyio
import anyio.abc
import structlog

from bridgehead.app.calls import EndableBackend
from bridgehead.app.launches import Plan, Startable
from bridgehead.backends.mcp import McpBackend, Shelf, Surroundings
from bridgehead.catalog import BackendStatus, Listing

log = structlog.get_logger(__name__)

_HANDOVER_S = 0.5
"""How long a successor waits for its forerunner to be gone, which may hold a lock or a port that both need."""
_ANSWERED_S = 1.0
"""How long calls that were given up may take to be answered before the process goes."""


class Outlet:
    """A backend's way into the catalog, until its place there is another's. Implements the backends' `Shelf`."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf: Shelf | None = shelf

    def close(self) -> None:
        """Let nothing more through."""
        self._shelf = None

    def publish(self, backend: str, listing: Listing) -> None:
        """Replace what the backend offers."""
        if self._shelf is not None:
            self._shelf.publish(backend, listing)

    def report(self, status: BackendStatus) -> None:
        """Replace what is known of the backend."""
        if self._shelf is not None:
            self._shelf.report(status)

    def announce(self, backend: str, uri: str) -> None:
        """Say that a resource has changed."""
        if self._shelf is not None:
            self._shelf.announce(backend, uri)


@dataclass(eq=False, slots=True)
class Member:
    """One backend that runs, or is about to."""

    startable: Startable
    backend: McpBackend
    calls: EndableBackend
    outlet: Outlet
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    over: anyio.Event = field(default_factory=anyio.Event)
    """Set once it has ended, and all that it started."""


@dataclass(frozen=True, slots=True)
class Change:
    """What another plan makes of the members; nothing has happened yet.

    Attributes:
        members: Those that are to run from then on, by name.
        started: Names that did not run before.
        restarted: Names whose launch is another.
        adjusted: Names whose settings changed, and that run on.
        ended: Names that are to run no more.
        moved: The restarted ones that are not the same server any more, as far as one can tell.
    """

    members: Mapping[str, Member]
    started: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    adjusted: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()


class Fleet:
    """The members, by name. They run in the task group for as long as it does."""

    def __init__(self, tasks: anyio.abc.TaskGroup, around: Surroundings) -> None:
        self._tasks = tasks
        self._around = around
        self._members: Mapping[str, Member] = {}
        self._leaving: set[Member] = set()

    @property
    def backends(self) -> Mapping[str, McpBackend]:
        """The backends that run now."""
        return {name: member.backend for name, member in self._members.items()}

    def compare(self, plan: Plan) -> Change:
        """What the plan changes; its new members are made, and do nothing yet."""
        members: dict[str, Member] = {}
        started: list[str] = []
        restarted: list[str] = []
        adjusted: list[str] = []
        for name, planned in plan.items():
            if not isinstance(planned, Startable):
                continue
            before = self._members.get(name)
            if before is not None and before.startable.runs_on_as(planned):
                members[name] = before
                if before.startable.settings != planned.settings:
                    adjusted.append(name)
                continue
            members[name] = self._member(name, planned)
            (started if before is None else restarted).append(name)
        moved = [
            name
            for name in restarted
            if self._members[name].startable.fingerprint != members[name].startable.fingerprint
        ]
        return Change(
            members=members,
            started=tuple(started),
            restarted=tuple(restarted),
            adjusted=tuple(adjusted),
            ended=tuple(name for name in self._members if name not in members),
            moved=tuple(moved),
        )

    def take_out(self, change: Change) -> None:
        """Close the catalog to those that will end, so that nothing of theirs comes in any more."""
        for name in (*change.restarted, *change.ended):
            self._members[name].outlet.close()

    def carry_out(self, change: Change, plan: Plan, *, grace_s: float) -> None:
        """Start what is new and end what is not wanted any more, both behind.

        Args:
            change: What `compare` made of the plan.
            plan: The plan.
            grace_s: How long calls in flight may go on in a backend that ends.
        """
        before, self._members = self._members, change.members
        for name in change.ended:
            reason = f"Backend {name} was taken out by a change of the configuration"
            self._tasks.start_soon(self._end, before[name], reason, grace_s)
        for name in change.restarted:
            reason = f"Backend {name} was started anew by a change of the configuration"
            self._tasks.start_soon(self._end, before[name], reason, grace_s)
            self._tasks.start_soon(self._run, change.members[name], before[name].over)
        for name in change.started:
            self._tasks.start_soon(self._run, change.members[name], None)
        for name, member in change.members.items():
            planned = plan[name]
            if isinstance(planned, Startable):
                member.startable = planned
                member.backend.adjust(planned.settings)

    def give_up_calls(self, reason: str) -> None:
        """End all calls that run; `reason` is a sentence without its full stop."""
        for member in (*self._members.values(), *self._leaving):
            member.calls.give_up(reason)

    def _member(self, name: str, planned: Startable) -> Member:
        outlet = Outlet(self._around.shelf)
        around = replace(self._around, shelf=outlet)
        backend = McpBackend(planned.launch, planned.settings, around, name=name, fingerprint=planned.fingerprint)
        return Member(planned, backend, EndableBackend(backend), outlet)

    async def _run(self, member: Member, forerunner: anyio.Event | None) -> None:
        try:
            with member.scope:
                if forerunner is not None:
                    with anyio.move_on_after(_HANDOVER_S):
                        await forerunner.wait()
                await member.backend.run_forever()
        finally:
            member.over.set()

    async def _end(self, member: Member, reason: str, grace_s: float) -> None:
        self._leaving.add(member)
        try:
            with anyio.move_on_after(grace_s):
                await member.calls.wait_empty()
            member.calls.give_up(reason)
            with anyio.move_on_after(_ANSWERED_S):
                await member.calls.wait_empty()
            member.scope.cancel()
            await member.over.wait()
        finally:
            self._leaving.discard(member)
        log.info("backend was ended", backend=member.backend.name)
