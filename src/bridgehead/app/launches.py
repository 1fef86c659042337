"""What the configuration makes of each backend: how it is launched, or why it is not. Starts nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bridgehead.backends.mcp import DEPTH_VARIABLE
from bridgehead.catalog import State
from bridgehead.config import (
    BackendSettings,
    LaunchInvalid,
    ResolvedBackend,
    SecretReader,
    Settings,
    StdioLaunch,
    resolve,
)
from bridgehead.core.addresses import is_loopback

_LAUNCHED = frozenset({"command", "args", "env", "cwd", "url", "headers", "transport", "name", "directory"})
"""Settings that are compared as they are resolved: placeholders filled in, paths absolute."""
_ADJUSTABLE = frozenset(
    {
        "namespace",
        "enabled",
        "start_timeout_s",
        "timeout_s",
        "tool_timeouts_s",
        "max_timeout_s",
        "concurrency",
        "result_bytes",
        "forward_headers",
    }
)
"""Settings that can change while the backend runs. Any other takes a restart of the backend."""


@dataclass(frozen=True, slots=True)
class Startable:
    """A backend that can be launched.

    Attributes:
        fingerprint: What identifies how it is launched, without the values of secrets.
    """

    settings: BackendSettings
    launch: ResolvedBackend
    fingerprint: str

    def runs_on_as(self, other: Startable) -> bool:
        """Whether the backend that was launched so can go on under the other settings."""
        fixed = BackendSettings.model_fields.keys() - _LAUNCHED - _ADJUSTABLE
        return self.launch == other.launch and all(
            getattr(self.settings, field) == getattr(other.settings, field) for field in fixed
        )


@dataclass(frozen=True, slots=True)
class NotStarted:
    """A backend that is configured and not launched, with the reason."""

    state: State
    cause: str


Plan = Mapping[str, Startable | NotStarted]
"""Every configured backend, in configured order."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where backends are launched from.

    Attributes:
        environ: What placeholders and children get variables from.
        store: Gives the store of secrets that settings mean, opened anew.
        own_url: Where this bridge listens, if it does, so that it never becomes a backend of itself.
    """

    environ: Mapping[str, str]
    store: Callable[[Settings], SecretReader]
    own_url: str | None = None


def plan_backends(settings: Settings, place: Place) -> Plan:
    """What is to become of each backend. May block, since placeholders are looked up, secrets among them."""
    secrets = place.store(settings)
    return {name: _planned(name, settings, place, secrets) for name in settings.backends}


def _planned(name: str, settings: Settings, place: Place, secrets: SecretReader) -> Startable | NotStarted:
    backend = settings.backends[name]
    if not backend.enabled:
        return NotStarted(State.DISABLED, f"Switched off by `enabled = false` under [backends.{name}].")
    if not settings.wants(name):
        return NotStarted(
            State.DISABLED,
            "None of its tools can be seen: no group that names it is on, and tools in no group are hidden.",
        )
    try:
        launch = resolve(backend, place.environ, secrets)
        _refuse_itself(name, launch, place)
    except LaunchInvalid as error:
        return NotStarted(State.BROKEN, error.sentence())
    return Startable(backend, launch, fingerprint(launch))


def _refuse_itself(name: str, resolved: ResolvedBackend, place: Place) -> None:
    """Refuse a backend that is this bridge: it would list its own tools, and those again, without end.

    A client's configuration, taken over as it is, may well hold the bridge.

    Raises:
        LaunchInvalid: It is.
    """
    launch = resolved.launch
    if isinstance(launch, StdioLaunch):
        itself = Path(launch.command).name.startswith("bridgehead") and place.environ.get(DEPTH_VARIABLE, "0") != "0"
    else:
        there, here = urlsplit(launch.url), urlsplit(place.own_url or "")
        itself = is_loopback(there.hostname or "") and is_loopback(here.hostname or "") and there.port == here.port
    if itself:
        raise LaunchInvalid(
            f"Backend {name} is this bridge itself.", hint=f"remove [backends.{name}], or set `enabled = false` there."
        )


def fingerprint(resolved: ResolvedBackend) -> str:
    """What identifies how a backend is launched, without the values of secrets."""
    launch = resolved.written
    if isinstance(launch, StdioLaunch):
        parts = ["stdio", launch.command, *launch.args, str(launch.cwd), *sorted(launch.env)]
    else:
        parts = [launch.transport, launch.url, *sorted(launch.headers)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
