"""One configured MCP server: started, listed, watched, started again, and called.

Its life is one loop: wait for a turn to start, open the main session, list everything, publish, follow changes until the
session ends, wait a little longer after each failure in a row, and again. Callers wait for a start that is under way, and are
told at once when there is nothing to wait for; a call to a backend that would be left alone for long has it tried again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import structlog

from bridgehead.backends.mcp.changes import Changes
from bridgehead.backends.mcp.connection import Agreement, Connection, Link, NotSent
from bridgehead.backends.mcp.facts import Facts
from bridgehead.backends.mcp.faults import innermost, transport_fault
from bridgehead.backends.mcp.http import HttpTarget, SharedPool, open_http
from bridgehead.backends.mcp.in_flight import InFlight
from bridgehead.backends.mcp.listing import list_everything
from bridgehead.backends.mcp.parking import ParkingLot
from bridgehead.backends.mcp.ports import Memory, Shelf
from bridgehead.backends.mcp.processes import Processes
from bridgehead.backends.mcp.rounds import answer_rounds, is_repeatable, params_of, request_meta
from bridgehead.backends.mcp.sdk import MCPError
from bridgehead.backends.mcp.sessions import NOTHING_FORWARDED, Sessions, askable
from bridgehead.backends.mcp.starts import Starts, Turn, pause_s
from bridgehead.backends.mcp.stdio import open_child
from bridgehead.catalog import BackendStatus, Listing, State
from bridgehead.config import BackendSettings, HttpLaunch, ResolvedBackend, StdioLaunch
from bridgehead.core import Call, Channel, Clock, Era, Method, Outcome
from bridgehead.core.errors import BackendFaulty, BackendUnavailable

log = structlog.get_logger(__name__)

_STABLE_AFTER_S = 10.0
_SHORT_PAUSE_S = 1.0
"""A pause that is worth waiting for, and the least time between two tries that calls have asked for."""
_PATIENCE_S = 5.0
"""How long a call waits for a start whose forerunners all failed."""
_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all MCP backends share."""

    shelf: Shelf
    memory: Memory
    pool: SharedPool
    clock: Clock
    environ: Mapping[str, str]
    processes: Processes = field(default_factory=Processes)
    starts: Starts = field(default_factory=Starts)
    fast_lane: bool = True


class McpBackend:
    """Implements the catalog's `Provider`, the gate's `Backend`, and the `Source` of its own sessions."""

    def __init__(
        self,
        launch: ResolvedBackend,
        settings: BackendSettings,
        surroundings: Surroundings,
        *,
        name: str,
        fingerprint: str,
    ) -> None:
        self.name = name
        self.facts = Facts()
        self._launch = launch.launch
        self._settings = settings
        self._around = surroundings
        self._fingerprint = fingerprint
        self._status = BackendStatus(name, State.STARTING, surroundings.clock.now())
        self._listing = Listing()
        self._main: Connection | None = None
        self._ready_since = 0.0
        self._latest: Connection | None = None
        """The last main session that was begun, whatever came of it."""
        self._reported = anyio.Event()
        """Set, and replaced, with every change of state."""
        self._failures = 0
        """Failures in a row."""
        self._returning = False
        """Whether it was ready until now, and will be tried again at once."""
        self._next_try = 0.0
        self._asked_for_try = 0.0
        self._wanted = anyio.Event()
        self._sessions = Sessions(self, idle_limit_s=settings.idle_limit_s)
        self._lot = ParkingLot()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._changes = Changes(name, surroundings.shelf)
        self._asked_pause_s = 0.0
        """How long the server wants to be left alone, where it said so."""

    @property
    def status(self) -> BackendStatus:
        """What is known of it now."""
        return self._with_words(self._main)

    def adjust(self, settings: BackendSettings) -> None:
        """Go by these settings from now on, as far as they can change while it runs: its times.

        Calls in flight keep the deadlines that they have.
        """
        self._settings = settings

    async def run_forever(self) -> None:
        """Live until cancelled."""
        self._around.shelf.report(self._status)
        await self._recall()
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._sessions.end_idle_forever)
            while True:
                await self._pause(await self._supervised_life())

    async def _pause(self, cause: str) -> None:
        """Take note of the end of a life, and wait until the next may begin."""
        now = self._around.clock.monotonic()
        lost = self._main is not None
        stable = lost and now - self._ready_since >= _STABLE_AFTER_S
        self._failures = 1 if stable else self._failures + 1
        pause = max(pause_s(self._failures), self._asked_pause_s)
        self._next_try = now + pause
        self._returning = lost and pause <= _SHORT_PAUSE_S
        self._main = None
        if not isinstance(self._launch, StdioLaunch):
            # Sessions with a program each have a process of their own, which lives on.
            self._sessions.close_all()
        self._listing = replace(self._listing, stale=True)
        self._around.shelf.publish(self.name, self._listing)
        self._status = self._with_words(self._latest)
        self._report(State.DOWN, cause=cause, next_try=self._around.clock.now() + timedelta(seconds=pause))
        log.warning("backend is down", backend=self.name, cause=cause, next_try_s=round(pause, 1))
        self._wanted = anyio.Event()
        with anyio.move_on_after(pause):
            await self._wanted.wait()
        self._report(State.STARTING, restarts=self._status.restarts + 1, next_try=None)

    async def _supervised_life(self) -> str:
        """One life, whose failures of whatever kind are this backend's alone; why it ended."""
        try:
            return await self._one_life()
        except Exception as error:
            log.exception("backend failed in a way that nobody foresaw", backend=self.name)
            return f"Backend {self.name} failed unexpectedly ({type(innermost(error)).__name__}); the log has it."

    async def _one_life(self) -> str:
        """From opening the main session to its end; why it ended."""
        connection: Connection | None = None
        turn = await self._around.starts.turn(urgent=self._returning)
        self._asked_pause_s = 0.0
        try:
            if self._tasks is not None:
                self._tasks.start_soon(turn.end_in_time)
            connection = await self._open_main()
            return await self._live_on(connection, turn)
        except BackendUnavailable as error:
            self._asked_pause_s = error.details.get("retry_after_s", 0.0)
            return error.sentence()
        finally:
            turn.end()
            # However it ended: a session that nobody holds any more keeps its process.
            if connection is not None:
                connection.close()

    async def _live_on(self, connection: Connection, turn: Turn) -> str:
        """The life of an open session; why it ended."""
        try:
            await self._list(connection)
        except (MCPError, TimeoutError) as error:
            if (fault := transport_fault(error)) is not None:
                self._asked_pause_s = fault.details.get("retry_after_s", 0.0)
                return fault.sentence()
            if self.facts.discovered is not None:
                # What was kept no longer holds: the server was changed. Ask again next time.
                await self._keep(replace(self.facts, discovered=None, legacy=None))
            return f"Backend {self.name} could not list what it offers: {innermost(error)}."
        turn.end()
        self._main = connection
        self._ready_since = self._around.clock.monotonic()
        self._returning = False
        session = connection.session
        server = session.server_info if session is not None else None
        self._report(
            State.READY,
            cause=None,
            stderr=(),
            skipped_lines=0,
            protocol=session.protocol_version if session is not None else None,
            server=f"{server.name} {server.version}".strip() if server is not None else None,
        )
        log.info("backend is ready", backend=self.name, tools=len(self._listing.tools), protocol=self._status.protocol)
        async with anyio.create_task_group() as following:
            following.start_soon(self._changes.follow_lists, lambda: self._list(connection))
            following.start_soon(self._report_words, connection)
            if connection.is_modern:
                following.start_soon(self._changes.listen, connection, self._listing.capabilities)
            else:
                following.start_soon(self._changes.watch_again, connection)
            await connection.wait_closed()
            following.cancel_scope.cancel()
        return connection.cause or f"The session with backend {self.name} ended."

    # --- sessions

    async def _open_main(self) -> Connection:
        facts = self.facts
        agreement = Agreement(legacy=facts.legacy is True, discovered=facts.discovered)
        try:
            connection = await self._begin(agreement)
        except BackendUnavailable as error:
            connection = await self._second_try(agreement, error)
        session = connection.session
        if session is not None:
            result = session.discover_result
            discovered = result.model_dump(by_alias=True, mode="json", exclude_none=True) if result else None
            await self._keep(replace(self.facts, legacy=not session.is_modern, discovered=discovered))
        return connection

    async def _second_try(self, agreement: Agreement, error: BackendUnavailable) -> Connection:
        """Begin in another way, where the failure may have come of the way."""
        if agreement.discovered is not None:
            await self._keep(replace(self.facts, discovered=None, legacy=None))
            return await self._begin(Agreement())
        if isinstance(self._launch, StdioLaunch):
            # Some older servers exit on a first message that they do not know.
            died_on_probe = not agreement.legacy and error.details.get("exited") is True
            if not died_on_probe:
                raise error
            return await self._begin(Agreement(legacy=True))
        if self._launch.transport != "auto" or self.facts.sse is not None or error.details.get("refused") is not True:
            raise error
        try:
            connection = await self._begin(Agreement(legacy=True), sse=True)
        except BackendUnavailable:
            # That the older transport does not answer either says less than the first failure.
            raise error from None
        await self.learn(sse=True)
        return connection

    async def _begin(self, agreement: Agreement, *, sse: bool = False) -> Connection:
        connection = Connection(self.name, lambda: self._transport(sse=sse), agreement=agreement, capabilities={})
        connection.on_notification = self._changes.told
        connection.has_lane = self._around.fast_lane
        self._latest = connection
        await self._start(connection)
        return connection

    async def open(
        self,
        capabilities: Mapping[str, Any],
        *,
        legacy: bool,
        opened_for: Channel | None,
        forwarded: Mapping[str, str] = NOTHING_FORWARDED,
    ) -> Connection:
        """Open a further session, which declares these capabilities and sends these headers of its caller.

        Raises:
            BackendUnavailable: It cannot be opened.
        """
        connection = Connection(
            self.name,
            lambda: self._transport(sse=False, forwarded=forwarded),
            agreement=Agreement(legacy=legacy, discovered=None if legacy else self.facts.discovered),
            capabilities=capabilities,
            opened_for=opened_for,
        )
        connection.on_notification = self._changes.told
        connection.has_lane = self._around.fast_lane
        await self._start(connection)
        main = self._main
        if connection.session is not None and main is not None and main.session is not None:
            connection.session.share_headers(main.session)
        return connection

    async def _start(self, connection: Connection) -> None:
        if self._tasks is None:
            raise BackendUnavailable(f"Backend {self.name} is not running.")
        # `start` runs the session in the backend's own task group, so it outlives the call that needed it.
        await self._tasks.start(connection.live, self._settings.start_timeout_s)

    @asynccontextmanager
    async def _transport(self, *, sse: bool, forwarded: Mapping[str, str] = NOTHING_FORWARDED) -> AsyncGenerator[Link]:
        if isinstance(self._launch, StdioLaunch):
            around, limit = self._around, self._settings.max_message_bytes
            async with open_child(
                self.name, self._launch, around.environ, around.processes, max_message_bytes=limit
            ) as (streams, child):
                yield Link(streams, child)
            return
        launch: HttpLaunch = self._launch
        if sse or self.facts.sse:
            launch = replace(launch, transport="sse")
        target = HttpTarget(self.name, launch, self._settings.max_message_bytes, forwarded)
        async with open_http(target, self._around.pool) as session:
            yield Link(session.streams, lane=session.lane)

    # --- what it offers

    async def _list(self, connection: Connection) -> None:
        session = connection.session
        if session is None:
            raise BackendUnavailable(connection.cause or f"Backend {self.name} ended during its start.")
        with anyio.fail_after(self._settings.start_timeout_s):
            listing = await list_everything(self.name, session)
        session.learn_headers(listing.tools)
        self._listing = listing
        self._around.shelf.publish(self.name, listing)
        await self._remember(self._around.memory.save, listing)

    # --- calls

    async def run(self, call: Call) -> Outcome:
        """Run a call that the gate has let through."""
        try:
            return await self._run_on(await self._ready(call), call)
        except NotSent:
            if not is_repeatable(call):
                raise
        log.info("a call that its server cannot have seen is sent over the next session", backend=self.name)
        return await self._run_on(await self._ready(call), call)

    async def _run_on(self, main: Connection, call: Call) -> Outcome:
        if call.method in (Method.SUBSCRIBE, Method.UNSUBSCRIBE):
            return await self._changes.subscribe(call, main, self._settings.timeout_s)
        asked_in_the_middle = not main.is_modern and call.channel.era is Era.MODERN
        if asked_in_the_middle and self._tasks is not None and (call.state or askable(call.channel.capabilities)):
            return await self._lot.run(call, self._tasks, lambda channel: self._send(call, main, channel))
        return await self._send(call, main, call.channel)

    async def _send(self, call: Call, main: Connection, channel: Channel) -> Outcome:
        caller = (call.caller.id, channel.session) if self._settings.sharing == "per-caller" else None
        forwarded = self._forwarded(call)
        if caller is None and not forwarded and self._sessions.is_for_all(main, channel):
            return await self._send_over(call, main, channel)
        async with self._sessions.lease(main, channel, caller, forwarded) as connection:
            return await self._send_over(call, connection, channel)

    async def _send_over(self, call: Call, connection: Connection, channel: Channel) -> Outcome:
        flight = InFlight(channel, self._settings.max_timeout_s)
        if connection.is_modern:
            return await answer_rounds(call, connection, flight, self._timeout_s(call))
        outcome = await connection.run(
            call.method,
            params_of(call),
            flight=flight,
            timeout_s=self._timeout_s(call),
            meta=request_meta(call, channel, modern=False),
        )
        if outcome.needs_input:
            raise BackendFaulty(
                f"Backend {self.name} answered in a way that its protocol version does not have.",
                hint="this is a mistake in that server.",
            )
        return outcome

    def _forwarded(self, call: Call) -> Mapping[str, str]:
        """The caller's headers that this backend's configuration names; nothing else of a caller goes to the server."""
        if not call.forwarded:
            return NOTHING_FORWARDED
        wanted = {name.lower() for name in self._settings.forward_headers}
        return {name: value for name, value in call.forwarded.items() if name in wanted}

    def _timeout_s(self, call: Call) -> float:
        name = call.route.name if call.route is not None else ""
        return self._settings.tool_timeouts_s.get(name, self._settings.timeout_s)

    async def _ready(self, call: Call) -> Connection:
        """The main session, once a start that is under way has come to something."""
        main = self._main
        if main is not None and main.is_open:
            return main
        patience_s = min(self._settings.start_timeout_s, self._timeout_s(call))
        if self._failures and not self._returning and self._main is None:
            patience_s = min(patience_s, _PATIENCE_S)
        with anyio.move_on_after(patience_s):
            while True:
                main = self._main
                if main is not None and main.is_open:
                    return main
                if main is None and not self._returning and self._status.state is not State.STARTING:
                    break
                await self._reported.wait()
        raise self._unavailable()

    def _unavailable(self) -> BackendUnavailable:
        """That it cannot be called now, why, and when it is tried next; a try that is far off is made now."""
        cause = self._status.cause or f"Backend {self.name} is starting."
        hint = f"it is tried again by itself; `bridgehead backend test {self.name}` shows what is wrong."
        if self._status.state is State.STARTING:
            return BackendUnavailable(f"{cause} It is being started again." if self._status.cause else cause, hint=hint)
        now = self._around.clock.monotonic()
        left_s = self._next_try - now
        if left_s > _SHORT_PAUSE_S and now - self._asked_for_try >= _SHORT_PAUSE_S:
            self._asked_for_try, left_s = now, 0.0
            self._wanted.set()
        when = f"in {left_s:.0f} s" if left_s > _SHORT_PAUSE_S else "now"
        return BackendUnavailable(f"{cause} It is tried again {when}.", hint=hint)

    # --- memory and status

    async def _report_words(self, connection: Connection) -> None:
        """Keep in its status what a server writes beside its answers."""
        while True:
            await anyio.sleep(_LOOK_S)
            status = self._with_words(connection)
            if status != self._status:
                self._status = status
                self._around.shelf.report(status)

    def _with_words(self, connection: Connection | None) -> BackendStatus:
        child = connection.child if connection is not None else None
        if child is None:
            return self._status
        return replace(self._status, stderr=tuple(child.stderr), skipped_lines=child.skipped_lines)

    async def _recall(self) -> None:
        memory = self._around.memory
        try:
            kept = await anyio.to_thread.run_sync(memory.load, self.name, self._fingerprint)
            facts = await anyio.to_thread.run_sync(memory.load_facts, self.name, self._fingerprint)
        except Exception:
            log.exception("what was known of a backend cannot be read; it is learned anew", backend=self.name)
            return
        self.facts = Facts.from_dict(facts)
        if kept is not None:
            self._listing = kept
            self._around.shelf.publish(self.name, kept)

    async def learn(self, **facts: bool) -> None:
        """Keep these facts."""
        await self._keep(replace(self.facts, **facts))

    async def _keep(self, facts: Facts) -> None:
        if facts != self.facts:
            self.facts = facts
            await self._remember(self._around.memory.save_facts, facts.as_dict())

    async def _remember(self, save: Callable[[str, str, Any], None], what: object) -> None:
        """Keep something on disk; a disk that is full costs the next start some time, and nothing else."""
        try:
            await anyio.to_thread.run_sync(save, self.name, self._fingerprint, what)
        except Exception:
            log.exception("what was learned of a backend cannot be kept", backend=self.name)

    def _report(self, state: State, **changes: Any) -> None:
        self._status = replace(self._status, state=state, since=self._around.clock.now(), **changes)
        self._around.shelf.report(self._status)
        reported, self._reported = self._reported, anyio.Event()
        reported.set()
