"""The settings as frozen, typed values. Knows nothing of files, environment variables or what the settings are for.

A field marked `exclude` is no key of the configuration: the loader fills it in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, model_validator

from bridgehead.config.secrets import Secret

BUILTIN = "builtin"
"""The backend that the bridge itself is: groups may name it, the configuration may not define it."""

MIB = 1024 * 1024
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2


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


Port = Annotated[int, Strict(), Field(ge=0, le=65_535)]
Count = Annotated[int, Strict(), Field(ge=1)]
CountOrOff = Annotated[int, Strict(), Field(ge=0)]
Seconds = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
Grace = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
Switch = Annotated[bool, Strict()]
Text = Annotated[str, Field(min_length=1)]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)]
Variables = Annotated[Mapping[str, Secret], AfterValidator(_variable_names)]
Headers = Annotated[Mapping[str, Secret], AfterValidator(_header_names)]


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
        secret_store: Where secrets are kept; `auto` is where they were first kept, the system's keyring where it can be used.
    """

    host: Text = "127.0.0.1"
    port: Port = 3001
    allowed_hosts: tuple[Text, ...] = ()
    allowed_origins: tuple[Text, ...] = ()
    max_body_bytes: Count = 16 * MIB
    shutdown_grace_s: Grace = 10.0
    ungrouped: Literal["show", "hide"] = "show"
    log_level: LogLevel = "info"
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
        namespace: Whether tools are shown as `{backend}__{tool}` or under their own names.
        tool_timeouts_s: Seconds by original tool name, where `timeout_s` does not fit.
        concurrency: Calls in flight; None: `limits.backend_concurrency`.
        result_bytes: Largest result handed on whole; None: `limits.result_bytes`.
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
    namespace: Literal["prefix", "none"] = "prefix"
    enabled: Switch = True
    start_timeout_s: Seconds = 60.0
    timeout_s: Seconds = 30.0
    tool_timeouts_s: Mapping[str, Seconds] = Field(default_factory=dict[str, float])
    concurrency: Count | None = None
    result_bytes: Count | None = None
    name: str = Field(default="", exclude=True)
    directory: Path | None = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if self.command is not None and self.url is not None:
            raise ValueError("has both `command` and `url`: keep the one that is meant")
        if self.command is None and self.url is None:
            raise ValueError("needs `command` (a program to start) or `url` (a server to reach)")
        alien = ("args", "env", "cwd") if self.url is not None else ("headers", "transport")
        stray = [f"`{key}`" for key in alien if key in self.model_fields_set]
        if stray:
            kind, other = ("url", "command") if self.url is not None else ("command", "url")
            raise ValueError(f"has `{kind}`, so {' and '.join(stray)} cannot be there: they belong to `{other}`")
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
    """

    server: ServerSettings = ServerSettings()
    limits: LimitSettings = LimitSettings()
    backends: Mapping[str, BackendSettings] = Field(default_factory=dict[str, BackendSettings])
    groups: Mapping[str, GroupSettings] = Field(default_factory=dict[str, GroupSettings])
    source: Path | None = Field(default=None, exclude=True)
    warnings: tuple[str, ...] = Field(default=(), exclude=True)
    origins: Mapping[str, str] = Field(default_factory=dict[str, str], exclude=True, repr=False)

    def wants(self, backend: str) -> bool:
        """Whether any tool of `backend` could be visible, so that it is worth starting.

        It is not when tools in no group are hidden and no group that names the backend is on.
        """
        return self.server.ungrouped == "show" or any(
            group.enabled and any(member.backend == backend for member in group.members)
            for group in self.groups.values()
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
