"""What an import would do: every server found, under which name it comes, which secrets are lifted, and what stays behind.

Nothing is written here, and the secret store is only read. `Taken` tables hold no credential that was recognised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath, PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

from bridgehead.config.clients.credentials import Lifting
from bridgehead.config.clients.entries import FoundServer, NotTaken, Translated, translate
from bridgehead.config.clients.places import Machine
from bridgehead.config.parse import Parsing, backend_name_fault
from bridgehead.config.settings import BackendSettings
from bridgehead.core.errors import BridgeError, Kind

_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")
_NAME_LENGTH = 64
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class ServerNotFound(BridgeError):
    """No server of that name is in the clients' files, or it cannot be taken over."""

    kind = Kind.NOT_FOUND
    code = "unknown_server"


class Verdict(StrEnum):
    """What becomes of a server."""

    TAKE = "take"
    DUPLICATE = "duplicate"
    """The same one comes already, from another client or in the configuration."""
    CONFLICT = "conflict"
    """The configuration has another one of that name; it is only taken when it is picked, under a name of its own."""
    OFF = "off"
    """Its client does not use it; it is only taken when it is picked, and then switched off."""
    ITSELF = "itself"
    """It is this bridge."""
    UNKNOWN = "unknown"
    """It means something that there is no equal for."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One server of one client, and what becomes of it.

    Attributes:
        name: What it is called here.
        table: The backend to write; empty where it cannot be taken over.
        secrets: What goes into the secret store, by name.
        reason: Why it is not simply taken, or None.
        notes: What was left out, or has to be done by hand.
    """

    server: FoundServer
    verdict: Verdict
    name: str
    transport: str = ""
    table: Mapping[str, Any] = field(default_factory=dict[str, Any])
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    reason: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def can_be_taken(self) -> bool:
        """Whether it is taken when it is picked by name."""
        return self.verdict in {Verdict.TAKE, Verdict.CONFLICT, Verdict.OFF}

    @property
    def starts(self) -> str:
        """What it starts or reaches, in one line and without its secrets."""
        if "url" in self.table:
            return str(self.table["url"])
        return " ".join([str(self.table.get("command", "")), *self.table.get("args", [])]).strip()


@dataclass(slots=True)
class Planner:
    """Goes through the servers in their order, and remembers what has come before.

    Attributes:
        existing: The backends that the configuration has.
        read_secret: The secret store's value of a name, or None.
        bridge_url: Where this bridge listens.
    """

    machine: Machine
    existing: Mapping[str, BackendSettings]
    read_secret: Callable[[str], str | None]
    bridge_url: str
    _seen: list[tuple[Planned, dict[str, Any]]] = field(default_factory=list[tuple[Planned, dict[str, Any]]])
    _secrets: dict[str, str] = field(default_factory=dict[str, str])

    def plan(self, servers: Iterable[FoundServer]) -> list[Planned]:
        """What becomes of each of them. Those in use come first, so that the same one, switched off elsewhere, is the twin."""
        ordered = list(servers)
        planned = {id(server): self._planned(server) for server in sorted(ordered, key=lambda one: one.off is not None)}
        return [planned[id(server)] for server in ordered]

    def _planned(self, server: FoundServer) -> Planned:
        name = legal_name(server.name)
        try:
            made = translate(server, self.machine)
        except NotTaken as error:
            return Planned(server, Verdict.UNKNOWN, name, reason=str(error))
        if is_bridge(made.table, self.bridge_url):
            return Planned(server, Verdict.ITSELF, name, made.transport, reason="it is this bridge itself")
        twin = next((one for one, table in self._seen if _same(table, made.table)), None)
        if twin is not None:
            reason = f"the same as {twin.name} from {twin.server.place.client}"
            return Planned(server, Verdict.DUPLICATE, twin.name, made.transport, twin.table, reason=reason)
        planned = self._lifted(server, made, name)
        self._seen.append((planned, made.table))
        if planned.can_be_taken:
            self._secrets |= planned.secrets
        return planned

    def _lifted(self, server: FoundServer, made: Translated, name: str) -> Planned:
        taken = {one.name for one, _ in self._seen}
        if name in taken:
            other, name = name, _free(f"{name}-{server.place.client}", taken)
            made.notes.insert(0, f"called {name}, since another server is called {other}")
        lifting = Lifting(name, self._known)
        table = lifting.table(made.table)
        problem = _problem(name, table)
        if problem is not None:
            return Planned(server, Verdict.UNKNOWN, name, made.transport, reason=problem)
        verdict, reason = Verdict.TAKE, None
        twin = next((other for other, there in self.existing.items() if _same(written_table(there), table)), None)
        if twin is not None:
            reason = f"it is in the configuration already, as {twin}"
            return Planned(server, Verdict.DUPLICATE, twin, made.transport, table, reason=reason)
        if name in self.existing:
            own = _free(f"{name}-{server.place.client}", {*taken, *self.existing})
            reason = f"the configuration has another {name}; picked by name, it is called {own}"
            verdict, name = Verdict.CONFLICT, own
        if server.off is not None:
            verdict, reason = Verdict.OFF, server.off
            table = {**table, "enabled": False}
        return Planned(server, verdict, name, made.transport, table, lifting.secrets, reason, tuple(made.notes))

    def _known(self, name: str) -> str | None:
        known = self._secrets.get(name)
        return known if known is not None else self.read_secret(name)


def chosen(planned: list[Planned], picks: Iterable[str]) -> list[Planned]:
    """Those that are picked by name, as the client or as we call them, or as CLIENT:NAME.

    Raises:
        ServerNotFound: A name fits none that can be taken over.
    """
    found: list[Planned] = []
    for pick in picks:
        fitting = [one for one in planned if pick in _names(one)]
        taken = [one for one in fitting if one.can_be_taken]
        if not taken:
            why = next((one.reason for one in fitting if one.reason), None)
            raise ServerNotFound(
                f"{pick} cannot be taken over: {why}." if why else f"No server {pick!r} was found.",
                hint="bridgehead import shows what there is.",
            )
        found.extend(one for one in taken if one not in found)
    return found


def _names(planned: Planned) -> Iterator[str]:
    for name in (planned.server.name, planned.name):
        yield name
        yield f"{planned.server.place.client}:{name}"


def legal_name(name: str) -> str:
    """The name as a backend may have it, and as its tools' names begin."""
    cleaned = _ILLEGAL.sub("-", name).strip("-_")[:_NAME_LENGTH] or "server"
    return cleaned if backend_name_fault(cleaned) is None else f"{cleaned}-server"


def is_bridge(table: Mapping[str, Any], bridge_url: str) -> bool:
    """Whether this backend is the bridge that it would be put behind."""
    words = [str(table.get("command", "")), *table.get("args", [])]
    if any(_own_address(str(one), bridge_url) for one in (table.get("url", ""), *words)):
        return True
    stems = [PureWindowsPath(PurePath(word).name).stem for word in words]
    return any(stem == "bridgehead" and "mcp" in words[index + 1 : index + 2] for index, stem in enumerate(stems))


def _problem(name: str, table: Mapping[str, Any]) -> str | None:
    """Why the configuration could not be used with this backend, or None if it could."""
    parsing = Parsing("")
    parsing.settings({"backends": {name: table}})
    return "; ".join(f"{one.key} {one.message}" for one in parsing.problems) or None


def _own_address(text: str, bridge_url: str) -> bool:
    try:
        there, here = urlsplit(text), urlsplit(bridge_url)
        same_port = there.port == here.port
    except ValueError:
        return False
    if there.scheme not in {"http", "https"} or not same_port:
        return False
    return there.hostname == here.hostname or {there.hostname, here.hostname} <= _LOOPBACK


def written_table(backend: BackendSettings) -> dict[str, Any]:
    """The backend as a table of the configuration, for comparing; placeholders stay as they are."""
    table: dict[str, Any] = {
        key: getattr(backend, key) for key in ("command", "cwd", "url") if getattr(backend, key) is not None
    }
    table["args"] = list(backend.args)
    table["env"] = {key: value.reveal() for key, value in backend.env.items()}
    table["headers"] = {key: value.reveal() for key, value in backend.headers.items()}
    return table


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether both launch the same thing."""
    return _launch(one) == _launch(other)


def _launch(table: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        table.get("command"),
        tuple(table.get("args") or ()),
        dict(table.get("env") or {}),
        table.get("cwd"),
        str(table.get("url") or "").rstrip("/"),
        {key.lower(): value for key, value in dict(table.get("headers") or {}).items()},
    )


def _free(name: str, taken: set[str]) -> str:
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
