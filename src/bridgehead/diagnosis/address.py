"""Whether the bridge can listen where it is told to, and who is there already."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bridgehead.config import ServerSettings
from bridgehead.core import as_mapping
from bridgehead.core.addresses import is_loopback
from bridgehead.diagnosis.model import Finding, Level

_ADDRESS_FILE = "address"
_PATIENCE_S = 2.0
_LISTENING = "0A"
"""The state of a listening socket in /proc/net/tcp (Linux, `tcp_states.h`)."""


@dataclass(frozen=True, slots=True)
class RunningBridge:
    """A bridge that answers.

    Attributes:
        states: The state of each of its backends, by name.
    """

    url: str
    version: str
    states: Mapping[str, str] = field(default_factory=dict[str, str])


def running_bridge(state_dir: Path) -> RunningBridge | None:
    """The bridge that serves from the state directory, where one answers."""
    try:
        url = (state_dir / _ADDRESS_FILE).read_text(encoding="utf-8").strip()
        parts = urlsplit(url)
        if parts.scheme != "http" or not is_loopback(parts.hostname or "") or parts.port is None:
            return None
    except (OSError, ValueError):
        return None
    return _ask(parts.hostname or "", parts.port)


def bridge_findings(bridge: RunningBridge) -> list[Finding]:
    """How the running bridge is, by its own word."""
    sick = [name for name, state in bridge.states.items() if state not in ("ready", "disabled")]
    told = f"running at {bridge.url}, version {bridge.version}, {len(bridge.states) - len(sick)} of"
    told = f"{told} {len(bridge.states)} backends as they should be"
    if not sick:
        return [Finding(Level.WELL, "bridge", f"{told}.")]
    return [Finding(Level.WARNING, "bridge", f"{told}; not {', '.join(sick)}.", "bridgehead backend list")]


def port_findings(server: ServerSettings, bridge: RunningBridge | None) -> list[Finding]:
    """Whether the port is free, or ours; nothing for an address that is refused anyway."""
    host, port = server.host, server.port
    if not is_loopback(host):
        return []
    if port == 0:
        return [Finding(Level.WELL, "port", "any free port is taken.")]
    if bridge is not None and urlsplit(bridge.url).port == port:
        return [Finding(Level.WELL, "port", f"{port} is in use by your own bridge.")]
    cause = _cannot_bind(host, port)
    if cause is None:
        return [Finding(Level.WELL, "port", f"{port} on {host} is free.")]
    other = _ask(host, port)
    holder = "another bridge, which has another state directory" if other is not None else _holder(port)
    # A bridge that runs elsewhere has been told where to listen; the next one may not be.
    level = Level.PROBLEM if bridge is None else Level.WARNING
    return [
        Finding(
            level,
            "port",
            f"{port} on {host} cannot be had: {cause}; {holder} is there.",
            "stop it, or listen elsewhere: bridgehead serve --port 0 takes a free port, `port` under [server] names one.",
        )
    ]


def _cannot_bind(host: str, port: int) -> str | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            # As the listener does, so that a port of a bridge that has just ended counts as free.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
            sock.listen(1)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None


def _ask(host: str, port: int) -> RunningBridge | None:
    """The bridge at that address, or None where what answers is none."""
    connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE_S)
    try:
        connection.request("GET", "/health", headers={"Accept": "application/json"})
        answer: Mapping[str, Any] = as_mapping(json.loads(connection.getresponse().read()))
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    if answer.get("service") != "bridgehead":
        return None
    backends: Any = as_mapping(answer.get("backends")).get("list") or []
    states = {str(each.get("name")): str(each.get("state")) for each in map(as_mapping, backends)}
    shown = f"[{host}]" if ":" in host else host
    return RunningBridge(f"http://{shown}:{port}", str(answer.get("version")), states)


def _holder(port: int) -> str:
    """Who listens on the port, as far as the system tells us."""
    inodes: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").glob("[0-9]*") if inodes else ():
        with suppress(OSError):
            if any(str(handle.readlink()) in inodes for handle in (process / "fd").iterdir()):
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return f"{name} (process {process.name})"
    return "another program"
