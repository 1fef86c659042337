"""A call on its way through the gate, the way back to whoever made it, and what came of it.

Nothing here knows a protocol's transport, a catalog or a person's rights: a surface fills a `Call` in, the gate's stages narrow
it, a backend runs it. Tool definitions, results and parameters keep the field names of MCP, because every surface shows them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NewType, Protocol

CallId = NewType("CallId", str)
CallerId = NewType("CallerId", str)


class Method(StrEnum):
    """What can be asked of a backend on a caller's behalf; the MCP method names."""

    TOOL = "tools/call"
    RESOURCE = "resources/read"
    PROMPT = "prompts/get"
    COMPLETE = "completion/complete"
    SUBSCRIBE = "resources/subscribe"
    UNSUBSCRIBE = "resources/unsubscribe"


class Era(StrEnum):
    """The two protocol generations: `initialize` and sessions, or one self-contained request at a time."""

    LEGACY = "legacy"
    MODERN = "modern"


class Risk(StrEnum):
    """What a tool may do to the world, by its annotations; unannotated counts as destructive, as MCP has it."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling."""

    id: CallerId
    name: str


@dataclass(frozen=True, slots=True)
class Route:
    """Where a call goes: found in the catalog by the gate, never by a surface.

    Attributes:
        backend: The backend's configured name.
        name: The tool's or prompt's original name, or the resource's original URI.
        definition: The definition as the backend gave it (`inputSchema`, `annotations`, …).
        risk: For tools, what it may do.
    """

    backend: str
    name: str
    definition: Mapping[str, Any]
    risk: Risk = Risk.READ


class Channel(Protocol):
    """The way back to the caller while its call runs.

    Attributes of a request in the 2026-07-28 generation are its own; in the older one they are its session's.
    """

    @property
    def era(self) -> Era:
        """The generation the caller speaks."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The client capabilities declared for this request, wire names; a backend is never asked for more."""
        ...

    @property
    def session(self) -> Hashable | None:
        """What identifies the caller's session, or None where there are none."""
        ...

    @property
    def wants_progress(self) -> bool:
        """Whether the caller gave a progress token."""
        ...

    @property
    def log_level(self) -> str | None:
        """The least level of log message the caller wants, or None for no messages."""
        ...

    @property
    def can_ask(self) -> bool:
        """Whether `ask` can reach the caller now."""
        ...

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Report progress; a no-op where the caller gave no token."""
        ...

    async def log(self, params: Mapping[str, Any]) -> None:
        """Send one `notifications/message`."""
        ...

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Send a request to the caller (sampling, elicitation, roots) and return its result.

        Raises:
            ProtocolFailure: The caller refused, or cannot be asked.
        """
        ...

    def on_close(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Run `callback` when the caller's session ends; never, where there are no sessions."""
        ...

    def on_roots_changed(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Run `callback` whenever the caller says that its roots changed, for as long as its session lasts."""
        ...


class Silence:
    """The channel of a caller that can be told nothing: scripts, the command line, checks."""

    era = Era.MODERN
    capabilities: Mapping[str, Any] = {}
    session: Hashable | None = None
    wants_progress = False
    log_level: str | None = None
    can_ask = False

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Nobody listens."""

    async def log(self, params: Mapping[str, Any]) -> None:
        """Nobody listens."""

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Never reached, since `can_ask` is false and no capability is declared."""
        raise AssertionError(
            f"{method} ({len(params or {})} parameters) was sent to a caller that declared no capability"
        )

    def on_close(self, callback: Callable[[], Awaitable[None]]) -> None:
        """There is no session that could end."""

    def on_roots_changed(self, callback: Callable[[], Awaitable[None]]) -> None:
        """There are no roots."""


@dataclass(slots=True)
class Call:
    """One request of one caller, as it goes through the gate.

    Not frozen, because it is made for every call and freezing makes that twice as dear; only the gate changes one, and only
    its `route`.

    Attributes:
        target: The exposed tool or prompt name, or the resource URI, as the caller wrote it.
        arguments: The tool's or prompt's arguments; for completion the request's `ref`, `argument` and `context`.
        group: The group whose URL the caller used; it confines what can be seen and called. None: everything visible.
        surface: Where it came in, for the record: `mcp`, `cli`, …
        meta: The caller's `_meta` without the keys that belong to its own connection.
        answers: `inputResponses` of a further round (2026-07-28 multi round-trip requests), else None.
        state: The backend's own `requestState` of that round, already unsealed, else None.
        route: Set by the gate once the call is allowed.
        forwarded: Headers of the caller's request that some backend's configuration names, names in lower case. Each backend
            takes those that its own names.
    """

    id: CallId
    caller: Caller
    method: Method
    target: str
    arguments: Mapping[str, Any]
    channel: Channel
    surface: str
    group: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answers: Mapping[str, Any] | None = None
    state: str | None = None
    route: Route | None = None
    forwarded: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(slots=True)
class Outcome:
    """What came of a call: the result object as the backend wrote it. Nobody changes one; as with `Call`, freezing costs.

    `is_error` is the tool's own failure (`isError` of a tool result); our failures are exceptions.
    """

    result: Mapping[str, Any]
    is_error: bool = False

    @property
    def needs_input(self) -> bool:
        """Whether this is an interim result that asks the caller for input (`resultType: "input_required"`)."""
        return self.result.get("resultType") == "input_required"
