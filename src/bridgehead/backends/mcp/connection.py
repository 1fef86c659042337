"""One live MCP session with a backend, owned by the task that runs it.

Requests go out with a deadline of their own, which stands still while a person is being asked. What the server asks or
announces without saying for which call goes to the one call in flight, or, where several are, is refused: nothing is ever told
to a caller it may not be meant for.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import anyio.abc
import httpx2
import mcp_types as types
import structlog

from bridgehead.backends.mcp.lane import GivenUp, Lane, LaneClosed
from bridgehead.backends.mcp.pipe import Pipe
from bridgehead.backends.mcp.sdk import MCPError, RelaySession
from bridgehead.core import Channel, Outcome, as_mapping, new_id
from bridgehead.core.errors import BackendFaulty, BackendTimeout, BackendUnavailable, BridgeError, ProtocolFailure
from bridgehead.core.logs import CURRENT_CALL

log = structlog.get_logger(__name__)

_REAP_S = 1.0
_PROGRESS = "notifications/progress"
_NEEDED = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation"}
_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
Opener = Callable[[], AbstractAsyncContextManager[tuple[Any, Pipe | None]]]
"""Opens a transport: its stream pair, and the child process where there is one."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a session is begun.

    Attributes:
        legacy: Begin with `initialize` at once, without asking which generation the server speaks.
        discovered: The server's `server/discover` result of an earlier session, which makes asking unnecessary.
    """

    legacy: bool = False
    discovered: Mapping[str, Any] | None = None


@dataclass(eq=False, slots=True)
class InFlight:
    """A request on its way.

    Attributes:
        channel: Where its caller can be reached now; it changes when a parked call is taken up again.
        deadline: Until when an answer is waited for, by the loop's clock; infinite while a person is asked.
    """

    channel: Channel
    deadline: float = math.inf
    scope: anyio.CancelScope | None = None
    """Ends the wait for the answer, where the lane does not."""
    lane: Lane | None = None
    news: deque[tuple[str, Mapping[str, Any]]] = field(default_factory=deque[tuple[str, Mapping[str, Any]]])
    telling: anyio.Event | None = None
    """Set once everything in `news` has been told; None while there is nothing to tell."""
    lacks: str | None = None
    """The capability that the server needed and the caller had not declared."""

    async def tell(self) -> None:
        """Tell the caller all news, in order."""
        done = self.telling
        try:
            while self.news:
                method, params = self.news.popleft()
                if method == _PROGRESS:
                    total, message = params.get("total"), params.get("message")
                    await self.channel.progress(
                        float(params["progress"]),
                        float(total) if isinstance(total, int | float) else None,
                        message if isinstance(message, str) else None,
                    )
                else:
                    await self.channel.log(params)
        except Exception as error:  # noqa: BLE001 – a caller that cannot be told is no reason to end the session
            log.info("news could not be told", cause=str(error))
        finally:
            self.telling = None
            if done is not None:
                done.set()

    async def told(self) -> None:
        """Return once all news has been told."""
        while self.telling is not None:
            await self.telling.wait()

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the caller, with the deadline standing still meanwhile."""
        left_s = self.deadline - anyio.current_time()
        self.wait_until(math.inf)
        try:
            return await self.channel.ask(method, params)
        finally:
            self.wait_until(anyio.current_time() + left_s)

    def wait_until(self, deadline: float) -> None:
        """Wait for the answer until then, and no longer."""
        self.deadline = deadline
        if self.scope is not None:
            self.scope.deadline = deadline
        if self.lane is not None:
            self.lane.look_again(deadline)

    def give_up(self, reason: str) -> None:
        """Wait for the answer no longer."""
        if self.scope is not None:
            self.scope.cancel()
        if self.lane is not None:
            self.lane.give_up(self, reason)


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
        self.pushed: set[str] = set()
        """Methods that the server has asked by itself."""
        self.has_lane = True
        """Whether callers' requests go over the fast lane, where the transport has one."""
        self.leases = 0
        """Calls that use it now, the parked ones included."""
        self.on_notification: Callable[[str, Mapping[str, Any]], Awaitable[None]] | None = None
        self._opener = opener
        self._agreement = agreement
        self._capabilities = capabilities
        self._opened_for = opened_for
        self._in_flight: set[InFlight] = set()
        self._by_token: dict[str, InFlight] = {}
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

    def close(self, cause: str | None = None) -> None:
        """End the session; `live` then cleans up and returns."""
        self.cause = self.cause or cause
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
                async with self._opener() as (streams, self.child):
                    if self.child is not None:
                        self.child.heard = self.heard
                    session = RelaySession(streams, self, capabilities=self._capabilities, timeout_s=start_timeout_s)
                    async with session:
                        await self._agree(session)
                        patience.deadline = math.inf
                        self.session = session
                        started = True
                        task_status.started()
                        await self._until_over()
        except Exception as error:
            failure = await self._explain(error, start_timeout_s)
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
                await child.silent.wait()
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
            BackendUnavailable: The session is gone, or went while waiting.
            BackendTimeout: No answer in time; the server has been told to stop.
            ProtocolFailure: The server answered with an error.
        """
        session = self.session
        if session is None or self._over.is_set():
            raise BackendUnavailable(self.cause or f"Backend {self.name} is not connected.")
        self._in_flight.add(flight)
        token = None
        if flight.channel.wants_progress:
            token = new_id("progress")
            self._by_token[token] = flight
            meta = {**meta, "progressToken": token}
        flight.deadline = self._loop.time() + timeout_s
        try:
            result = await self._exchange(session, method, params, meta, flight)
            if not isinstance(result, GivenUp):
                return self._outcome(method, result)
        except MCPError as error:
            raise await self._failure(error) from error
        except LaneClosed as error:
            raise await self._lost(sent=error.sent) from error
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
            f"Backend {self.name} did not answer {method} within {timeout_s:g} s and was told to stop.",
            hint="raise `timeout_s` of the backend, or `tool_timeouts_s` for this tool, if it needs longer.",
        )

    async def _exchange(
        self, session: RelaySession, method: str, params: Mapping[str, Any], meta: Mapping[str, Any], flight: InFlight
    ) -> Any:
        """Send the request; its result as the server wrote it, or `GivenUp`. All news has been told by then.

        Raises:
            MCPError: The server answered with an error.
            LaneClosed: The session has ended.
        """
        lane = self.child.lane if self.child is not None and self.has_lane else None
        if lane is None:
            with anyio.CancelScope(deadline=flight.deadline) as flight.scope:
                result = await session.request(method, params, meta=meta)
                await flight.told()
                return result
            return GivenUp("it took too long")
        flight.lane = lane
        try:
            answer = await lane.request(method, session.stamped(params, meta), flight)
        except ValueError as error:
            raise MCPError(types.INVALID_PARAMS, f"The request was not sent: {error}.") from error
        if flight.telling is not None:
            with anyio.move_on_after(flight.deadline - anyio.current_time()):
                await flight.told()
        if isinstance(answer, GivenUp) or "result" in answer:
            return answer if isinstance(answer, GivenUp) else answer["result"]
        problem = as_mapping(answer.get("error"))
        code, message = problem.get("code"), problem.get("message")
        if not isinstance(code, int) or not isinstance(message, str):
            raise MCPError(types.INTERNAL_ERROR, "The server's answer is no JSON-RPC answer.")
        raise MCPError(code, message, problem.get("data"))

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
        if method == _PROGRESS:
            flight = self._by_token.get(str(params.get("progressToken")))
            if not isinstance(params.get("progress"), int | float):
                flight = None
        elif method == "notifications/message":
            if len(self._in_flight) == 1:
                (flight,) = self._in_flight
                if not _is_wanted(params.get("level"), flight.channel.log_level):
                    flight = None
        else:
            return False
        if flight is not None and self.session is not None:
            flight.news.append((method, params))
            if flight.telling is None:
                flight.telling = anyio.Event()
                self.session.spawn(flight.tell)
        return True

    async def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass everything else that is announced on to the backend."""
        if self.on_notification is not None:
            await self.on_notification(method, params)

    async def _failure(self, error: MCPError) -> BridgeError:
        """What an error of the session means to the caller."""
        session = self.session
        # "Session terminated" is what the SDK makes of a 404 to a request with a session id.
        forgotten = self.child is None and error.message == "Session terminated"
        if session is None or session.is_closed or self._over.is_set() or forgotten:
            return await self._lost(sent=True)
        return ProtocolFailure(error.message, rpc_code=error.code, data=error.data)

    async def _lost(self, *, sent: bool) -> BackendUnavailable:
        """What the end of the session means to a caller; `sent`: whether the request may have reached the server."""
        if self.child is not None:
            await self.child.exits(_REAP_S)
        cause = self._how_it_ended()
        self.close(cause)
        last = f" Its last words: {self.child.stderr[-1]}" if self.child is not None and self.child.stderr else ""
        if not sent:
            return BackendUnavailable(
                f"{cause}{last} The call was not run.",
                hint="the backend is being started again; repeat it in a moment.",
            )
        return BackendUnavailable(
            f"{cause}{last} The call may or may not have run.",
            hint="look at its effect before you repeat it; the backend is being started again.",
        )

    def _how_it_ended(self) -> str:
        if self.child is None:
            return f"The connection to backend {self.name} was lost."
        # Without its last words: a cause is shown to anyone, and what a server writes may hold anything.
        return f"Backend {self.name} {self.child.exit_cause or 'closed its output'}."

    async def _explain(self, error: Exception, start_timeout_s: float) -> BackendUnavailable:
        """Why the session could not be opened, in a sentence."""
        leaf = innermost(error)
        if isinstance(leaf, BackendUnavailable):
            return leaf
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
            f"Backend {self.name} cannot be reached: {_reason(leaf)}.", details={"refused": True} if refused else None
        )


def innermost(error: BaseException) -> BaseException:
    """The first leaf of an exception group, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _reason(error: BaseException) -> str:
    if isinstance(error, MCPError):
        return f"it answered the handshake with error {error.code}: {error.message[:200]}"
    if isinstance(error, httpx2.HTTPStatusError):
        return f"it answered with HTTP status {error.response.status_code}"
    text = str(error).strip() or type(error).__name__
    # An address may hold a key, and a cause is shown to anyone.
    return re.sub(r"https?://[^\s'\"]+", "its address", text)[:300].rstrip(".")


def _is_wanted(level: object, least: str | None) -> bool:
    """Whether a message of `level` reaches a caller that wants `least` and above (RFC 5424 levels)."""
    if least is None:
        return False
    if level not in _LEVELS or least not in _LEVELS:
        return True
    return _LEVELS.index(str(level)) >= _LEVELS.index(least)
