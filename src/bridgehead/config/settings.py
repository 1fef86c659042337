"""The settings as frozen, typed values. Knows nothing of files, environment variables or what the settings are for.

A field marked `exclude` is no key of the configuration: the loader fills it in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, model_validator

from bridgehead.config.secrets import Secret

BUILTIN = "builtin"
"""The backend that the bridge itself is: groups may name it, the configuration may not define it."""

MIB = 1024 * 1024
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_NEVER_FORWARDED = {
    "authorization": "the caller's token is for this bridge and never leaves it; put the server's own into `headers`",
    "cookie": "it holds the caller's sessions with others",
    "set-cookie": "it is no header of a request",
    "host": "it names this bridge",
    "origin": "it names the caller's page, not this bridge's",
}
_CONNECTIONS_OWN = re.compile(
    r"(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|accept-encoding|last-event-id"
    r"|mcp-.*|content-.*)"
)
"""Headers of one connection or one message (RFC 9110, section 7.6.1, and MCP's own), which the bridge makes for its own."""


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _variable_names(table: Mapping[str, Secret]) -> Mapping[str, Secret]:
    for name in table:
        if not name or "=" in name or "\0" in name:
            raise ValueError(f"holds {name!r}, which cannot be the name of an environment variable")
    return table


def _header_names(table: Mapping[str, Secret]) -> Mapping[str, Secret]:
    for name in table:
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"holds {name!r}, which cannot be the name of an HTTP header")
    return table


def _forwardable(names: tuple[str, ...]) -> tuple[str, ...]:
    seen: set[str] = set()
    for name in names:
        lower = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"holds {name!r}, which cannot be the name of an HTTP header")
        if lower in _NEVER_FORWARDED:
            raise ValueError(f"holds {name!r}, which is never forwarded: {_NEVER_FORWARDED[lower]}")
        if _CONNECTIONS_OWN.fullmatch(lower):
            raise ValueError(f"holds {name!r}, which is never forwarded: it belongs to the caller's own connection")
        if lower in seen:
            raise ValueError(f"holds {name!r} twice")
        seen.add(lower)
    return names


Port = Annotated[int, Strict(), Field(ge=0, le=65_535)]
Count = Annotated[int, Strict(), Field(ge=1)]
CountOrOff = Annotated[int, Strict(), Field(ge=0)]
Seconds = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
Grace = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
Switch = Annotated[bool, Strict()]
Text = Annotated[str, Field(min_length=1)]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)]
LogFormat = Annotated[Literal["text", "json"], BeforeValidator(_lower)]
Variables = Annotated[Mapping[str, Secret], AfterValidator(_variable_names)]
Headers = Annotated[Mapping[str, Secret], AfterValidator(_header_names)]
ForwardedHeaders = Annotated[tuple[str, ...], AfterValidator(_forwardable)]


class _Table(BaseModel):
    """One table of the configuration: it does not change, and knows all its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class ServerSettings(_Table):
    """Where the bridge listens, and how.

    Attributes:
        port: 0 takes any free port.
        allowed_hosts: Host names accepted besides the loopback ones.
        allowed_origins: Browser origins that may call.
        ungrouped: Whether tools that are in no group are visible.
        log_format: `text` for people, `json` for programs: one object a line.
        fast_lane: Off: every call goes through the MCP SDK, which costs several times as much and gives the same answers.
        parallel_starts: How many backends may be starting at one time; the others wait for their turn.
        secret_store: Where secrets are kept; `auto` is where they were first kept, the system's keyring where it can be used.
    """

    host: Text = "127.0.0.1"
    port: Port = 3001
    allowed_hosts: tuple[Text, ...] = ()
    allowed_origins: tuple[Text, ...] = ()
    max_body_bytes: Count = 16 * MIB
    shutdown_grace_s: Grace = 10.0
    ungrouped: Literal["show", "hide"] = "show"
    parallel_starts: Count = 8
    log_level: LogLevel = "info"
    log_format: LogFormat = "text"
    fast_lane: Switch = True
    secret_store: Annotated[Literal["auto", "keyring", "file"], BeforeValidator(_lower)] = "auto"  # noqa: S105  a place, not a secret


class LimitSettings(_Table):
    """What one call, one caller and one backend may use up.

    Attributes:
        calls_per_minute: Per caller and tool; 0 is no limit.
        backend_concurrency: Calls in flight per backend, unless the backend says otherwise.
        result_bytes: Largest result handed on whole, unless the backend says otherwise.
        identical_failures: The how-manieth identical failing call in a row is not run; 0 never stops one.
        identical_failures_window_s: How long after the last of them that holds.
    """

    calls_per_minute: CountOrOff = 0
    backend_concurrency: Count = 64
    result_bytes: Count = 8 * MIB
    identical_failures: CountOrOff = 3
    identical_failures_window_s: Seconds = 60.0


class BackendSettings(_Table):
    """One source of tools: a program to start (`command`) or a server to reach (`url`), never both.

    Texts hold their placeholders as written; `resolve` fills them in.

    Attributes:
        cwd: Where the program starts; relative to `directory`. None: where the bridge was started.
        transport: For `url` only; `auto` tries Streamable HTTP first.
        forward_headers: Headers of the caller's request that the server gets too, by name, for `url` only.
        namespace: Whether tools are shown as `{backend}__{tool}` or under their own names.
        tool_timeouts_s: Seconds by original tool name, where `timeout_s` does not fit.
        max_timeout_s: How long a call may take that reports progress, each report of which gives it its time anew; 0: progress
            gives no more time.
        sharing: `per-caller` gives every caller a session with the server, and a process where it is a program, of its own.
        idle_limit_s: How long a session besides the shared one is kept without a call.
        concurrency: Calls in flight; None: `limits.backend_concurrency`.
        result_bytes: Largest result handed on whole; None: `limits.result_bytes`.
        max_message_bytes: Largest message read from the server; a larger one fails its own call.
        name: The name it is configured under.
        directory: The directory of the configuration file.
    """

    command: Text | None = None
    args: tuple[str, ...] = ()
    env: Variables = Field(default_factory=dict[str, Secret])
    cwd: Text | None = None
    url: Text | None = None
    headers: Headers = Field(default_factory=dict[str, Secret])
    transport: Literal["auto", "http", "sse"] = "auto"
    forward_headers: ForwardedHeaders = ()
    namespace: Literal["prefix", "none"] = "prefix"
    enabled: Switch = True
    start_timeout_s: Seconds = 60.0
    timeout_s: Seconds = 30.0
    tool_timeouts_s: Mapping[str, Seconds] = Field(default_factory=dict[str, float])
    max_timeout_s: Grace = 600.0
    sharing: Literal["shared", "per-caller"] = "shared"
    idle_limit_s: Seconds = 600.0
    concurrency: Count | None = None
    result_bytes: Count | None = None
    max_message_bytes: Count = 64 * MIB
    name: str = Field(default="", exclude=True)
    directory: Path | None = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if self.command is not None and self.url is not None:
            raise ValueError("has both `command` and `url`: keep the one that is meant")
        if self.command is None and self.url is None:
            raise ValueError("needs `command` (a program to start) or `url` (a server to reach)")
        alien = ("args", "env", "cwd") if self.url is not None else ("headers", "transport", "forward_headers")
        stray = [f"`{key}`" for key in alien if key in self.model_fields_set]
        if stray:
            kind, other = ("url", "command") if self.url is not None else ("command", "url")
            raise ValueError(f"has `{kind}`, so {' and '.join(stray)} cannot be there: they belong to `{other}`")
        configured = {name.lower() for name in self.headers}
        if both := [f"`{name}`" for name in self.forward_headers if name.lower() in configured]:
            raise ValueError(
                f"names {' and '.join(both)} in `forward_headers` and in `headers`: keep the one that is meant"
            )
        if self.url is not None and "${" not in self.url and not is_http_url(self.url):
            raise ValueError("needs a `url` that begins with http:// or https:// and names a host")
        return self


class GroupMember(_Table):
    """Some tools of one backend, chosen by their original names; with no choice at all, every tool of it."""

    backend: Text
    prefixes: tuple[Text, ...] = ()
    names: tuple[Text, ...] = ()
    globs: tuple[Text, ...] = ()


class GroupSettings(_Table):
    """A named set of tools that can be switched on and off.

    Attributes:
        title: The name people read; None: made from the group's name.
        notes: Guidance on when and how to use these tools, written by the owner for agents.
    """

    title: Text | None = None
    description: str = ""
    enabled: Switch = True
    notes: str | None = None
    members: tuple[GroupMember, ...] = ()


class Settings(_Table):
    """The whole configuration, in configured order; every value knows where it came from.

    Attributes:
        source: The file it was read from, or None where there was none.
        warnings: What was ignored or looks wrong, one sentence each.
        origins: Where each value that is not a default came from, by dotted key; ask `origin`.
        pinned: Dotted keys of `server` that stay as they are at the start, since the command line decides about them.
    """

    server: ServerSettings = ServerSettings()
    limits: LimitSettings = LimitSettings()
    backends: Mapping[str, BackendSettings] = Field(default_factory=dict[str, BackendSettings])
    groups: Mapping[str, GroupSettings] = Field(default_factory=dict[str, GroupSettings])
    source: Path | None = Field(default=None, exclude=True)
    warnings: tuple[str, ...] = Field(default=(), exclude=True)
    origins: Mapping[str, str] = Field(default_factory=dict[str, str], exclude=True, repr=False)
    pinned: frozenset[str] = Field(default=frozenset(), exclude=True)

    def wants(self, backend: str) -> bool:
        """Whether any tool of `backend` could be visible, so that it is worth starting.

        It is not when tools in no group are hidden and no group that names the backend is on.
        """
        return self.server.ungrouped == "show" or any(
            group.enabled and any(member.backend == backend for member in group.members)
            for group in self.groups.values()
        )

    @cached_property
    def forwarded_headers(self) -> frozenset[str]:
        """The names, in lower case, of the callers' headers that some backend wants."""
        return frozenset(
            name.lower() for backend in self.backends.values() if backend.enabled for name in backend.forward_headers
        )

    def origin(self, dotted_key: str) -> str:
        """Where the value of `dotted_key` (as in `server.port`) came from.

        A file's name, `environment PORT`, or `default`.
        """
        return self.origins.get(dotted_key, "default")


def known_keys(model: type[BaseModel]) -> tuple[str, ...]:
    """The keys that a table of the configuration may have."""
    return tuple(name for name, field in model.model_fields.items() if not field.exclude)


def is_http_url(url: str) -> bool:
    """Whether this is an absolute http or https URL with a host and a legal port."""
    try:
        parts = urlsplit(url)
        legal_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and legal_port and not re.search(r"\s", url)
