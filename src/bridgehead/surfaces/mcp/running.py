"""The calls that run in the fast lane, and the way back to their callers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp.server.connection import Connection
from starlette.types import Receive

from bridgehead.core import Era, as_mapping, new_id
from bridgehead.core.errors import ProtocolFailure
from bridgehead.core.json import dumps, nested_deeper_than
from bridgehead.surfaces.mcp.channel import DEFAULT_LOG_LEVEL, LEVEL_KEY, MOST_DEPTH, ROOTS_KEY
from bridgehead.surfaces.mcp.reply import Reply
from bridgehead.surfaces.mcp.transport import AdaptiveTransport


@dataclass(eq=False, slots=True)
class Client:
    """An initialized session of the older generation."""

    session_id: bytes
    connection: Connection
    transport: AdaptiveTransport
    capabilities: Mapping[str, Any]
    header: tuple[bytes, bytes]
    running: dict[int | str, Running] = field(default_factory=dict[int | str, "Running"])
    """The latest request under each of the client's ids."""
    all_running: set[Running] = field(default_factory=set["Running"])
    questions: dict[str, asyncio.Future[Mapping[str, Any]]] = field(
        default_factory=dict[str, asyncio.Future[Mapping[str, Any]]]
    )
    """What the client was asked, by our id, until it has answered."""
    touched: float = 0.0

    def begin(self, request_id: int | str, running: Running) -> None:
        """Take note of a call under the client's id, which another may have already."""
        self.running[request_id] = running
        self.all_running.add(running)

    def end(self, request_id: int | str, running: Running) -> None:
        """The call has ended."""
        self.all_running.discard(running)
        if self.running.get(request_id) is running:
            del self.running[request_id]

    @property
    def log_level(self) -> str:
        """What it set with `logging/setLevel`."""
        return self.connection.state.get(LEVEL_KEY, DEFAULT_LOG_LEVEL)


class Running:
    """One call on its way, and the way back to its caller. Implements `core.Channel`."""

    __slots__ = ("_client", "_token", "cancelled", "caps", "era", "level", "receive", "reply", "task", "watcher")

    def __init__(
        self,
        client: Client | None,
        reply: Reply,
        token: int | str | None,
        receive: Receive,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """A call of a session, or, without `client`, a single request of 2026-07-28."""
        self._client = client
        self._token = token
        self.era = Era.MODERN if client is None else Era.LEGACY
        self.caps: Mapping[str, Any] = client.capabilities if client is not None else {}
        self.level: str | None = None
        self.reply = reply
        self.receive = receive
        self.task = asyncio.current_task(loop)
        self.cancelled: str | None = None
        self.watcher: asyncio.Future[None] | None = None

    def cancel(self, why: str) -> None:
        """End the call."""
        if self.cancelled is None and self.task is not None:
            self.cancelled = why
            self.task.cancel()

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The client's capabilities, as it declared them."""
        return self.caps

    @property
    def session(self) -> Hashable | None:
        """The client's session, in the older generation."""
        return id(self._client.connection) if self._client is not None else None

    @property
    def wants_progress(self) -> bool:
        """Whether the request has a progress token."""
        return self._token is not None

    @property
    def log_level(self) -> str | None:
        """Per request in the modern generation, per session in the older one."""
        return self._client.log_level if self._client is not None else self.level

    @property
    def can_ask(self) -> bool:
        """Only the older generation has requests from server to client."""
        return self._client is not None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Send `notifications/progress` with the client's own token."""
        if self._token is None:
            return
        params: dict[str, Any] = {"progressToken": self._token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self._notify("notifications/progress", params)

    async def log(self, params: Mapping[str, Any]) -> None:
        """Send `notifications/message`."""
        await self._notify("notifications/message", params)

    async def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        await self.reply.say(dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Send a request to the client and wait for its answer.

        Raises:
            ProtocolFailure: It refused, or cannot be asked.
        """
        client = self._client
        if client is None:
            raise ProtocolFailure("the caller cannot be asked", rpc_code=types.INVALID_REQUEST)
        number = new_id("ask")
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        client.questions[number] = answer
        request: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            request["params"] = params
        try:
            await self.reply.say(dumps(request))
            message = await answer
        finally:
            del client.questions[number]
        problem = as_mapping(message.get("error"))
        if problem:
            code, text = problem.get("code"), problem.get("message")
            raise ProtocolFailure(
                text if isinstance(text, str) else "the client answered with an error",
                rpc_code=code if isinstance(code, int) else types.INTERNAL_ERROR,
                data=problem.get("data"),
            )
        if not isinstance(message.get("result"), dict):
            raise ProtocolFailure("the client's answer is no object", rpc_code=types.INTERNAL_ERROR)
        result = as_mapping(message["result"])
        if nested_deeper_than(result, MOST_DEPTH):
            raise ProtocolFailure(f"the answer is nested deeper than {MOST_DEPTH}", rpc_code=types.INVALID_PARAMS)
        return result

    def on_close(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Run `callback` when the session ends."""
        if self._client is not None:
            self._client.connection.exit_stack.push_async_callback(callback)

    def on_roots_changed(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Run `callback` whenever the client says so in its session."""
        if self._client is not None:
            self._client.connection.state.setdefault(ROOTS_KEY, []).append(callback)
