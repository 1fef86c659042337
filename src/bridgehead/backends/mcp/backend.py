"""One configured MCP server: started, listed, watched, started again, and called.

Its life is one loop: open the main session, list everything, publish, follow changes until the session ends, wait a little
longer after each failure in a row, and again. Callers wait for a start that is under way, and are told at once when there is
nothing to wait for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import mcp_types as types
import structlog

from bridgehead.backends.mcp.connection import Agreement, Connection, InFlight, innermost
from bridgehead.backends.mcp.facts import Facts
from bridgehead.backends.mcp.http import SharedPool, open_http
from bridgehead.backends.mcp.listing import list_everything
from bridgehead.backends.mcp.parking import ParkingLot
from bridgehead.backends.mcp.pipe import Pipe
from bridgehead.backends.mcp.ports import Memory, Shelf
from bridgehead.backends.mcp.rounds import answer_rounds, params_of, request_meta
from bridgehead.backends.mcp.sdk import MCPError
from bridgehead.backends.mcp.sessions import Sessions, askable
from bridgehead.backends.mcp.stdio import open_child
from bridgehead.catalog import BackendStatus, Listing, State
from bridgehead.config import BackendSettings, HttpLaunch, ResolvedBackend, StdioLaunch
from bridgehead.core import Call, Channel, Clock, Era, Method, Outcome, as_mapping
from bridgehead.core.errors import BackendFaulty, BackendUnavailable

log = structlog.get_logger(__name__)

_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 30.0
_STABLE_AFTER_S = 10.0
_SETTLE_S = 0.05
_LISTEN_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all MCP backends share."""

    shelf: Shelf
    memory: Memory
    pool: SharedPool
    clock: Clock
    environ: Mapping[str, str]
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
        self._latest: Connection | None = None
        """The last main session that was begun, whatever came of it."""
        self._settled = anyio.Event()
        self._sessions = Sessions(self)
        self._lot = ParkingLot()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._watched: Counter[str] = Counter()
        self._changed = anyio.Event()
        self._rewatch = anyio.Event()

    @property
    def status(self) -> BackendStatus:
        """What is known of it now."""
        child = self._main.child if self._main is not None else None
        return replace(self._status, stderr=tuple(child.stderr)) if child is not None else self._status

    def adjust(self, settings: BackendSettings) -> None:
        """Go by these settings from now on, as far as they can change while it runs: its times.

        Calls in flight keep the deadlines that they have.
        """
        self._settings = settings

    async def run_forever(self) -> None:
        """Live until cancelled."""
        self._around.shelf.report(self._status)
        await self._recall()
        failures = 0
        async with anyio.create_task_group() as self._tasks:
            while True:
                began = self._around.clock.monotonic()
                cause, connection = await self._supervised_life()
                stable = connection is not None and self._around.clock.monotonic() - began >= _STABLE_AFTER_S
                failures = 0 if stable else failures + 1
                pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** max(0, failures - 1))
                self._main = None
                self._sessions.close_all()
                self._listing = replace(self._listing, stale=True)
                self._around.shelf.publish(self.name, self._listing)
                stderr = tuple(self._latest.child.stderr) if self._latest is not None and self._latest.child else ()
                self._report(State.DOWN, cause=cause, stderr=stderr)
                log.warning("backend is down", backend=self.name, cause=cause, next_try_s=pause_s)
                self._settled.set()
                await anyio.sleep(pause_s)
                self._settled = anyio.Event()
                self._report(State.STARTING, restarts=self._status.restarts + 1)

    async def _supervised_life(self) -> tuple[str, Connection | None]:
        """One life, whose failures of whatever kind are this backend's alone."""
        try:
            return await self._one_life()
        except Exception as error:
            log.exception("backend failed in a way that nobody foresaw", backend=self.name)
            return f"Backend {self.name} failed unexpectedly ({type(innermost(error)).__name__}); the log has it.", None

    async def _one_life(self) -> tuple[str, Connection | None]:
        """From opening the main session to its end; why it ended, and the session where there was one."""
        connection: Connection | None = None
        try:
            connection = await self._open_main()
            return await self._live_on(connection)
        except BackendUnavailable as error:
            return error.sentence(), connection
        finally:
            # However it ended: a session that nobody holds any more keeps its process.
            if connection is not None:
                connection.close()

    async def _live_on(self, connection: Connection) -> tuple[str, Connection | None]:
        """The life of an open session."""
        try:
            await self._list(connection)
        except (MCPError, TimeoutError) as error:
            if self.facts.discovered is not None:
                # What was kept no longer holds: the server was changed. Ask again next time.
                await self._keep(replace(self.facts, discovered=None, legacy=None))
            return f"Backend {self.name} could not list what it offers: {innermost(error)}.", connection
        self._main = connection
        session = connection.session
        server = session.server_info if session is not None else None
        self._report(
            State.READY,
            cause=None,
            stderr=(),
            protocol=session.protocol_version if session is not None else None,
            server=f"{server.name} {server.version}".strip() if server is not None else None,
        )
        log.info("backend is ready", backend=self.name, tools=len(self._listing.tools), protocol=self._status.protocol)
        self._settled.set()
        async with anyio.create_task_group() as following:
            following.start_soon(self._follow_lists, connection)
            if connection.is_modern:
                following.start_soon(self._listen, connection)
            await connection.wait_closed()
            following.cancel_scope.cancel()
        return connection.cause or f"The session with backend {self.name} ended.", connection

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
        connection.on_notification = self._told
        connection.has_lane = self._around.fast_lane
        self._latest = connection
        await self._start(connection)
        return connection

    async def open(self, capabilities: Mapping[str, Any], *, legacy: bool, opened_for: Channel | None) -> Connection:
        """Open a further session, which declares these capabilities.

        Raises:
            BackendUnavailable: It cannot be opened.
        """
        connection = Connection(
            self.name,
            lambda: self._transport(sse=False),
            agreement=Agreement(legacy=legacy, discovered=None if legacy else self.facts.discovered),
            capabilities=capabilities,
            opened_for=opened_for,
        )
        connection.on_notification = self._told
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
    async def _transport(self, *, sse: bool) -> AsyncGenerator[tuple[Any, Pipe | None]]:
        if isinstance(self._launch, StdioLaunch):
            limit = self._settings.max_message_bytes
            async with open_child(self.name, self._launch, self._around.environ, max_message_bytes=limit) as opened:
                yield opened
            return
        launch: HttpLaunch = self._launch
        if sse or self.facts.sse:
            launch = replace(launch, transport="sse")
        async with open_http(launch, self._around.pool) as streams:
            yield streams, None

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

    async def _told(self, method: str, params: Mapping[str, Any]) -> None:
        """Take note of what the server announces."""
        if method == "notifications/resources/updated":
            self._around.shelf.announce(self.name, str(params.get("uri", "")))
        elif method.endswith("/list_changed"):
            self._changed.set()

    async def _follow_lists(self, connection: Connection) -> None:
        """List again whenever something was announced; a failure to list leaves the last good listing."""
        while True:
            await self._changed.wait()
            await anyio.sleep(_SETTLE_S)
            self._changed = anyio.Event()
            try:
                await self._list(connection)
            except (MCPError, TimeoutError, BackendUnavailable) as error:
                log.warning("a changed list could not be read", backend=self.name, cause=str(innermost(error)))

    async def _listen(self, connection: Connection) -> None:
        """Keep a `subscriptions/listen` stream open with a modern server, where it offers one."""
        capabilities = self._listing.capabilities
        offers = any(
            as_mapping(capabilities.get(part)).get(promise)
            for part in ("tools", "prompts", "resources")
            for promise in ("listChanged", "subscribe")
        )
        while offers and connection.session is not None:
            self._rewatch = anyio.Event()
            try:
                async with (
                    connection.session.listen_for_changes(tuple(+self._watched)) as events,
                    anyio.create_task_group() as waiting,
                ):
                    waiting.start_soon(self._cancel_on_rewatch, waiting.cancel_scope)
                    async for event in events:
                        uri = getattr(event, "uri", None)
                        if uri is None:
                            self._changed.set()
                        else:
                            self._around.shelf.announce(self.name, str(uri))
                    waiting.cancel_scope.cancel()
            except Exception as error:  # noqa: BLE001 – whatever ended the stream, it is opened again
                reason = innermost(error)
                if isinstance(reason, MCPError) and reason.code == types.METHOD_NOT_FOUND:
                    return
                log.info("the stream of changes was lost", backend=self.name, cause=str(reason))
                await anyio.sleep(_LISTEN_AGAIN_S)
                # What changed while nobody listened is not told again, so look once.
                self._changed.set()

    async def _cancel_on_rewatch(self, scope: anyio.CancelScope) -> None:
        await self._rewatch.wait()
        scope.cancel()

    # --- calls

    async def run(self, call: Call) -> Outcome:
        """Run a call that the gate has let through."""
        main = await self._ready()
        if call.method in (Method.SUBSCRIBE, Method.UNSUBSCRIBE):
            return await self._subscribe(call, main)
        asked_in_the_middle = not main.is_modern and call.channel.era is Era.MODERN
        if asked_in_the_middle and self._tasks is not None and (call.state or askable(call.channel.capabilities)):
            return await self._lot.run(call, self._tasks, lambda channel: self._send(call, main, channel))
        return await self._send(call, main, call.channel)

    async def _send(self, call: Call, main: Connection, channel: Channel) -> Outcome:
        if self._sessions.is_for_all(main, channel):
            return await self._send_over(call, main, channel)
        async with self._sessions.lease(main, channel) as connection:
            return await self._send_over(call, connection, channel)

    async def _send_over(self, call: Call, connection: Connection, channel: Channel) -> Outcome:
        if connection.is_modern:
            return await answer_rounds(call, connection, channel, self._timeout_s(call))
        outcome = await connection.run(
            call.method,
            params_of(call),
            flight=InFlight(channel),
            timeout_s=self._timeout_s(call),
            meta=request_meta(call, channel, modern=False),
        )
        if outcome.needs_input:
            raise BackendFaulty(
                f"Backend {self.name} answered in a way that its protocol version does not have.",
                hint="this is a mistake in that server.",
            )
        return outcome

    def _timeout_s(self, call: Call) -> float:
        name = call.route.name if call.route is not None else ""
        return self._settings.tool_timeouts_s.get(name, self._settings.timeout_s)

    async def _ready(self) -> Connection:
        """The main session, once a start that is under way has come to something."""
        if not self._settled.is_set():
            with anyio.move_on_after(self._settings.start_timeout_s):
                await self._settled.wait()
        main = self._main
        if main is None or not main.is_open:
            cause = self._status.cause or f"Backend {self.name} is starting."
            raise BackendUnavailable(
                cause, hint=f"it is tried again by itself; `bridgehead backend test {self.name}` shows what is wrong."
            )
        return main

    async def _subscribe(self, call: Call, main: Connection) -> Outcome:
        """Count who watches a resource; the server is told of the first and the last."""
        params = params_of(call)
        uri = str(params["uri"])
        before = self._watched[uri]
        self._watched[uri] += 1 if call.method is Method.SUBSCRIBE else -1
        after = max(0, self._watched[uri])
        self._watched[uri] = after
        if bool(before) == bool(after):
            return Outcome({})
        if main.is_modern:
            self._rewatch.set()
            return Outcome({})
        meta = request_meta(call, call.channel, modern=False)
        flight = InFlight(call.channel)
        return await main.run(call.method, params, flight=flight, timeout_s=self._settings.timeout_s, meta=meta)

    # --- memory and status

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
