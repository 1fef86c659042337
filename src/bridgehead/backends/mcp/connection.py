"""One live MCP session with a backend, owned by the task that runs it.

Requests go out with a deadline of their own, which stands still while a person is being asked. What the server asks or
announces without saying for which call goes to the one call in flight, or, where several are, is refused: nothing is ever told
to a caller it may not be meant for.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, cast

import anyio
import anyio.abc
import mcp_types as types
import structlog

from bridgehead.backends.mcp.faults import innermost, reason, result_of, transport_fault
from bridgehead.backends.mcp.http import Lane as HttpLane
from bridgehead.backends.mcp.in_flight import PROGRESS, InFlight
from bridgehead.backends.mcp.lane import GivenUp, LaneClosed
from bridgehead.backends.mcp.pipe import Pipe
from bridgehead.backends.mcp.sdk import MCPError, RelaySession
from bridgehead.core import Channel, Outcome, as_mapping, new_id
from bridgehead.core.errors import BackendFaulty, BackendTimeout, BackendUnavailable, BridgeError, ProtocolFailure
from bridgehead.core.json import dumps, loads
from bridgehead.core.logs import CURRENT_CALL

log = structlog.get_logger(__name__)

_REAP_S = 1.0
_HAUNTED_S = 60.0
"""How long a server may go on with a call that it was told to give up."""
_NEEDED = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation"}
_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


@dataclass(frozen=True, slots=True)
class Link:
    """An open transport.

    Attributes:
        streams: What the server says and where to write, as the SDK's messages.
        child: The process, where there is one; its pipe is the lane.
        lane: The lane of a transport without a process.
    """

    streams: Any
    child: Pipe | None = None
    lane: HttpLane | None = None


Opener = Callable[[], AbstractAsyncContextManager[Link]]
"""Opens a transport."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a session is begun.

    Attributes:
        legacy: Begin with `initialize` at once, without asking which generation the server speaks.
        discovered: The server's `server/discover` result of an earlier session, which makes asking unnecessary.
    """

    legacy: bool = False
    discovered: Mapping[str, Any] | None = None


class NotSent(BackendUnavailable):
    """The session had ended before the request was written, so the server has surely not seen it."""


class Connection:
    """A session. `live` runs it; everything else may be used once `live` has said that it started."""

    def __init__(
        self,
        name: str,
        opener: Opener,
        *,
        agreement: Agreement,
        capabilities: Mapping[str, Any],
        opened_for: Channel | None = None,
    ) -> None:
        """Prepare a session with backend `name`.

        Args:
            name: The backend.
            opener: Opens the transport.
            agreement: How to begin.
            capabilities: What is declared to a legacy server for the session's whole life.
            opened_for: The caller to ask when the server asks outside any call; None: such requests are refused.
        """
        self.name = name
        self.session: RelaySession | None = None
        self.child: Pipe | None = None
        self._http: HttpLane | None = None
        self.pushed: set[str] = set()
        """Methods that the server has asked by itself."""
        self.has_lane = True
        """Whether callers' requests go over the fast lane, where the transport has one."""
        self.leases = 0
        """Calls that use it now, the parked ones included."""
        self.idle_since = 0.0
        """When the last of them ended."""
        self.on_notification: Callable[[str, Mapping[str, Any]], Awaitable[None]] | None = None
        self._opener = opener
        self._agreement = agreement
        self._capabilities = capabilities
        self._opened_for = opened_for
        self._in_flight: set[InFlight] = set()
        self._by_token: dict[str, InFlight] = {}
        self.is_ones_own = False
        """Whether only one caller has calls on it."""
        self._haunted_until = 0.0
        self._over = anyio.Event()
        self._loop = asyncio.get_running_loop()
        self.cause: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self.session is not None and not self._over.is_set()

    @property
    def is_modern(self) -> bool:
        """Whether it speaks the 2026-07-28 generation."""
        return self.session is not None and self.session.is_modern

    @property
    def is_haunted(self) -> bool:
        """Whether a call was given up on it of which its server may still ask or tell something, and so of another's call."""
        return not self.is_ones_own and self._haunted_until > self._loop.time()

    def close(self, cause: str | None = None) -> None:
        """End the session; `live` then cleans up and returns."""
        self.cause = self.cause or cause
        if self.child is not None:
            self.child.lane.close()
        self._over.set()

    async def wait_closed(self) -> None:
        """Return once the session has ended."""
        await self._over.wait()

    async def live(
        self, start_timeout_s: float, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Open the session, say that it started, and stay until it ends.

        Raises:
            BackendUnavailable: Before it started, with the cause.
        """
        started = False
        # A session outlives the call that needed it first.
        CURRENT_CALL.set(None)
        try:
            # One scope around everything, whose deadline ends with the start: scopes have to nest.
            with anyio.fail_after(start_timeout_s) as patience:
                async with self._opener() as link:
                    self.child, self._http = link.child, link.lane
                    for lane in (link.child, link.lane):
                        if lane is not None:
                            lane.heard = self.heard
                    session = RelaySession(
                        link.streams, self, capabilities=self._capabilities, timeout_s=start_timeout_s
                    )
                    async with session:
                        await self._agree(session)
                        patience.deadline = math.inf
                        self.session = session
                        started = True
                        task_status.started()
                        await self._until_over()
        except Exception as error:
            failure = await self._explained(error, start_timeout_s)
            self.cause = failure.message
            if not started:
                raise failure from error
            log.warning("session ended", backend=self.name, cause=failure.message)
        finally:
            self.session = None
            self._over.set()

    async def _agree(self, session: RelaySession) -> None:
        if self._agreement.discovered is not None:
            session.adopt(types.DiscoverResult.model_validate(self._agreement.discovered))
        elif self._agreement.legacy:
            await session.initialize()
        else:
            await session.negotiate()

    async def _until_over(self) -> None:
        child = self.child
        if child is None:
            await self._over.wait()
            return
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await child.ends()
                await child.exits(_REAP_S)
                self.close(self._how_it_ended())

            tasks.start_soon(watch)
            await self._over.wait()
            tasks.cancel_scope.cancel()

    async def run(
        self, method: str, params: Mapping[str, Any], *, flight: InFlight, timeout_s: float, meta: Mapping[str, Any]
    ) -> Outcome:
        """Send a request of a caller and wait for its result.

        Raises:
            NotSent: The session is gone.
            BackendUnavailable: The session went while waiting.
            BackendTimeout: No answer in time; the server has been told to stop.
            ProtocolFailure: The server answered with an error.
        """
        session = self.session
        if session is None or session.is_closed or self._over.is_set():
            raise await self._not_sent()
        self._in_flight.add(flight)
        token = None
        if flight.channel.wants_progress:
            token = new_id("progress")
            self._by_token[token] = flight
            meta = {**meta, "progressToken": token}
        flight.begin(self._loop.time(), timeout_s)
        try:
            result = await self._settled(self._exchange(session, method, params, meta, flight))
            if not isinstance(result, GivenUp):
                return self._outcome(method, result)
            self._haunted_until = self._loop.time() + _HAUNTED_S
        except asyncio.CancelledError:
            self._haunted_until = self._loop.time() + _HAUNTED_S
            raise
        finally:
            self._in_flight.discard(flight)
            if token is not None:
                del self._by_token[token]
        if flight.lacks is not None:
            raise ProtocolFailure(
                f"Backend {self.name} needs the client capability {flight.lacks!r} for this, which was not declared.",
                rpc_code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                data={"requiredCapabilities": {flight.lacks: {}}},
            )
        raise BackendTimeout(
            f"Backend {self.name} did not answer {method} {flight.overtime()} and was told to stop.",
            hint="raise `timeout_s` of the backend, or `tool_timeouts_s` for this tool, if it needs longer;"
            " `max_timeout_s` where it reports progress.",
        )

    async def _settled(self, exchange: Awaitable[Any]) -> Any:
        """What comes of an exchange, with what went wrong in the caller's terms.

        Raises:
            BridgeError: As `run` does.
        """
        try:
            return await exchange
        except BackendUnavailable as error:
            if error.details.get("sent") is False:
                raise NotSent(error.message, hint=error.hint, details=error.details) from error
            raise
        except LaneClosed as error:
            raise await (self._lost() if error.sent else self._not_sent()) from error
        except MCPError as error:
            if isinstance(error.__context__, anyio.BrokenResourceError | anyio.ClosedResourceError):
                # Nobody took the request from the session any more, let alone wrote it.
                raise await self._not_sent() from error
            raise await self._failure(error) from error

    async def _exchange(
        self, session: RelaySession, method: str, params: Mapping[str, Any], meta: Mapping[str, Any], flight: InFlight
    ) -> Any:
        """Send the request; its result as the server wrote it, or `GivenUp`. All news has been told by then.

        Raises:
            MCPError: The server answered with an error.
            LaneClosed: The session has ended.
        """
        pipe = self.child.lane if self.child is not None and self.has_lane else None
        if pipe is None:
            with anyio.CancelScope(deadline=flight.deadline) as flight.scope:
                result = await self._over_session(session, method, params, meta)
                if flight.telling is not None:
                    await flight.told()
                return result
            return GivenUp("it took too long")
        flight.lane = pipe
        try:
            answer = await pipe.request(method, session.stamped(params, meta), flight)
        except ValueError as error:
            raise MCPError(types.INVALID_PARAMS, f"The request was not sent: {error}.") from error
        if flight.telling is not None:
            with anyio.move_on_after(flight.deadline - anyio.current_time()):
                await flight.told()
        return answer if isinstance(answer, GivenUp) else result_of(answer)

    async def _over_session(
        self, session: RelaySession, method: str, params: Mapping[str, Any], meta: Mapping[str, Any]
    ) -> Any:
        """Send the request over the lane of the HTTP transport, or, where there is none, as the SDK does."""
        if self._http is not None and self.has_lane:
            stamped = session.stamped(params, meta)
            try:
                body = dumps(stamped)
            except ValueError as error:
                raise MCPError(types.INVALID_PARAMS, f"The request was not sent: {error}.") from error
            headers = session.headers_of(method, params)
            raw = await self._http.request(method, body, headers=headers, timeout_s=None)
            if raw is not None:
                return result_of(as_mapping(loads(raw)))
        return await session.request(method, params, meta=meta)

    def _outcome(self, method: str, result: Any) -> Outcome:
        if not isinstance(result, dict):
            raise BackendFaulty(
                f"Backend {self.name} answered {method} with a result that is no object.",
                hint="this is a mistake in that server; other tools of it may work.",
            )
        answered = as_mapping(cast("dict[str, Any]", result))
        return Outcome(answered, is_error=answered.get("isError") is True)

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Relay what a legacy server asks to the caller it is meant for."""
        self.pushed.add(method)
        needed = _NEEDED.get(method)
        if len(self._in_flight) > 1:
            raise MCPError(
                types.INTERNAL_ERROR,
                "several calls are in flight on this session, so it cannot be known whom this request is meant for; "
                "further calls get a session each",
            )
        if self.is_haunted:
            raise MCPError(
                types.INTERNAL_ERROR, "a call was given up on this session, which this request may belong to"
            )
        try:
            if self._in_flight:
                (flight,) = self._in_flight
                if needed is not None and needed not in flight.channel.capabilities:
                    flight.lacks = needed
                    flight.give_up(f"the client has not declared {needed}")
                    raise MCPError(types.INVALID_REQUEST, f"the client has not declared {needed}")
                return await flight.ask(method, params)
            if self._opened_for is not None:
                return await self._opened_for.ask(method, params)
        except ProtocolFailure as error:
            raise MCPError(error.rpc_code, error.message, error.data) from error
        raise MCPError(types.INVALID_REQUEST, f"no call is in flight that {method} could belong to")

    def heard(self, method: str, params: Mapping[str, Any]) -> bool:
        """Keep progress and log messages for the callers they are meant for, in the order in which they came."""
        flight: InFlight | None = None
        if method == PROGRESS:
            flight = self._by_token.get(str(params.get("progressToken")))
            if not isinstance(params.get("progress"), int | float):
                flight = None
        elif method == "notifications/message":
            if len(self._in_flight) == 1 and not self.is_haunted:
                (flight,) = self._in_flight
                if not _is_wanted(params.get("level"), flight.channel.log_level):
                    flight = None
        else:
            return False
        if flight is not None and self.session is not None:
            if method == PROGRESS:
                flight.extend()
            flight.hear(method, params)
            if flight.telling is None:
                flight.telling = anyio.Event()
                self.session.spawn(flight.tell)
        return True

    async def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass everything else that is announced on to the backend."""
        if self.on_notification is not None:
            await self.on_notification(method, params)

    async def _not_sent(self) -> NotSent:
        """That the session is over, which it may not have been told yet."""
        if not self._over.is_set():
            if self.child is not None:
                await self.child.exits(_REAP_S)
            self.close(self._how_it_ended())
        cause = self.cause or f"Backend {self.name} is not connected."
        return NotSent(f"{cause} The call was not sent.", hint="send it again.")

    async def _failure(self, error: MCPError) -> BridgeError:
        """What an error of the session means to the caller."""
        if (fault := transport_fault(error)) is not None:
            return fault
        session = self.session
        if session is None or session.is_closed or self._over.is_set():
            return await self._lost()
        return ProtocolFailure(error.message, rpc_code=error.code, data=error.data)

    async def _lost(self) -> BackendUnavailable:
        """That the session went while the server had the call."""
        if self.child is not None:
            await self.child.exits(_REAP_S)
        cause = self._how_it_ended()
        self.close(cause)
        last = f" Its last words: {self.child.stderr[-1]}" if self.child is not None and self.child.stderr else ""
        return BackendUnavailable(
            f"{cause}{last} The call may or may not have run.",
            hint="look at its effect before you repeat it; the backend is being started again.",
        )

    def _how_it_ended(self) -> str:
        if self.child is None:
            return f"The connection to backend {self.name} was lost."
        # Without its last words: a cause is shown to anyone, and what a server writes may hold anything.
        closed = "no longer reads its input" if self.child.deaf else "closed its output"
        return f"Backend {self.name} {self.child.exit_cause or closed}."

    async def _explained(self, error: Exception, start_timeout_s: float) -> BackendUnavailable:
        """As `_explain`, whatever goes wrong with that: the end of one session must not be the end of anything else."""
        try:
            return await self._explain(error, start_timeout_s)
        except Exception:
            log.exception("the end of a session could not be explained", backend=self.name)
            return BackendUnavailable(
                f"The session with backend {self.name} ended; the log has the cause.",
                hint="look at its effect before you repeat a call; the backend is being started again.",
            )

    async def _explain(self, error: Exception, start_timeout_s: float) -> BackendUnavailable:
        """Why the session could not be opened, in a sentence."""
        leaf = innermost(error)
        fault = transport_fault(leaf)
        if isinstance(fault, BackendUnavailable):
            return fault
        if fault is not None:
            return BackendUnavailable(fault.message, hint=fault.hint, details=fault.details)
        if self.child is not None:
            if self.child.silent.is_set():
                await self.child.exits(_REAP_S)
            if self.child.exit_cause is not None:
                return BackendUnavailable(self._how_it_ended(), details={"exited": True})
        if isinstance(leaf, TimeoutError):
            return BackendUnavailable(
                f"Backend {self.name} did not finish its handshake within {start_timeout_s:g} s.",
                hint="raise its `start_timeout_s` if it needs longer.",
            )
        refused = isinstance(leaf, MCPError)
        return BackendUnavailable(
            f"Backend {self.name} cannot be reached: {reason(leaf)}.", details={"refused": True} if refused else None
        )


def _is_wanted(level: object, least: str | None) -> bool:
    """Whether a message of `level` reaches a caller that wants `least` and above (RFC 5424 levels)."""
    if least is None:
        return False
    if level not in _LEVELS or least not in _LEVELS:
        return True
    return _LEVELS.index(str(level)) >= _LEVELS.index(least)
