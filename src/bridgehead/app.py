"""The composition root: settings become adapters, adapters become rooms, rooms become a running bridge.

The only module that picks adapters. It decides nothing about calls.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import structlog
from starlette.requests import Request

from bridgehead import __version__
from bridgehead.backends.builtin import BuiltinBackend
from bridgehead.backends.mcp import DEPTH_VARIABLE, McpBackend, SharedPool, Surroundings
from bridgehead.catalog import BUILTIN, BackendStatus, Catalog, DiscreetCatalog, Rules, State, discreet
from bridgehead.config import (
    BackendSettings,
    Concealment,
    LaunchInvalid,
    ResolvedBackend,
    SecretReader,
    Secrets,
    Settings,
    StdioLaunch,
    resolve,
)
from bridgehead.core import Call, Clock, Outcome, SystemClock
from bridgehead.core.errors import BackendNotFound, BackendUnavailable, ConfigInvalid, Forbidden
from bridgehead.core.logs import configure_logs
from bridgehead.gate import AllowAll, Backend, Gate, GateParts, build_gate
from bridgehead.guidance import instructions
from bridgehead.identity import LOCAL_OWNER, Authenticator, OwnerPolicy, ensure_local_token
from bridgehead.store import OnDemand, SqlAuditLog, SqlListingStore, SqlShelf, claim, open_engine, open_store
from bridgehead.surfaces.front import Front
from bridgehead.surfaces.health import health_routes
from bridgehead.surfaces.listener import Listener, listen, run_until_signalled
from bridgehead.surfaces.mcp import Authenticator as KnowsCallers
from bridgehead.surfaces.mcp import Doors, Inside, McpEndpoints, Seal, is_loopback, serve_on_stdio

log = structlog.get_logger(__name__)

_DATABASE = "bridgehead.db"
_KEY_FILE = "request-state.key"
_KEY_BYTES = 32
_ADDRESS_FILE = "address"
_KEYRING_S = 3.0
"""How long a start waits for the keyring."""
_PERSON_S = 30.0
"""How long a command waits for it, since it may ask a person to unlock it."""


class CountingGate:
    """The gate, with a count of the calls inside it, for a clean stop. Implements the surfaces' `Gate`."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._inside: set[anyio.CancelScope] = set()
        self._empty = anyio.Event()

    async def run(self, call: Call) -> Outcome:
        """Run the call.

        Raises:
            BackendUnavailable: The bridge stops, and the call has had its grace.
        """
        scope = anyio.CancelScope()
        self._inside.add(scope)
        try:
            with scope:
                return await self._gate.run(call)
        finally:
            self._inside.discard(scope)
            if not self._inside:
                self._empty.set()
        raise BackendUnavailable(
            "The bridge was stopped while the call ran. The call may or may not have had its effect.",
            hint="look at its effect before you repeat it.",
        )

    def give_up(self) -> None:
        """End every call that is inside; each is answered, and on record."""
        for scope in tuple(self._inside):
            scope.cancel()

    async def wait_empty(self) -> None:
        """Return as soon as no call is inside."""
        while self._inside:
            self._empty = anyio.Event()
            await self._empty.wait()


@dataclass(frozen=True, slots=True)
class Bridge:
    """The parts of a running bridge."""

    settings: Settings
    catalog: Catalog
    gate: CountingGate
    inside: Inside
    backends: Mapping[str, McpBackend]


@dataclass(frozen=True, slots=True)
class Vault:
    """Where a bridge's secrets are.

    Attributes:
        state_dir: The state directory that the store belongs to.
        conceal: Learns each value that is read from it; whoever writes anything for the bridge takes them out with it.
    """

    state_dir: Path
    conceal: Concealment


@dataclass(frozen=True, slots=True)
class Probe:
    """What trying one backend showed.

    Attributes:
        seconds: From the start of the process or connection to the complete listing.
        tools: The tools' original names.
    """

    name: str
    ok: bool
    cause: str | None
    seconds: float
    protocol: str | None = None
    server: str | None = None
    tools: tuple[str, ...] = ()
    resources: int = 0
    prompts: int = 0
    stderr: tuple[str, ...] = field(default=())


def open_secrets(settings: Settings, state_dir: Path) -> Secrets:
    """The store of secrets that this configuration and state directory have. Blocks while a person unlocks the keyring.

    Raises:
        SecretsUnusable: It cannot be opened.
    """
    return open_store(settings.server.secret_store, state_dir, patience_s=_PERSON_S)


def secret_reader(settings: Settings, state_dir: Path) -> SecretReader:
    """The same store for reading, opened with the first secret; its values are read anew each time."""
    return OnDemand(settings.server.secret_store, state_dir, patience_s=_KEYRING_S)


@asynccontextmanager
async def running(
    settings: Settings,
    state_dir: Path,
    environ: Mapping[str, str],
    *,
    own_url: str | None = None,
    vault: Vault | None = None,
) -> AsyncGenerator[Bridge]:
    """A bridge with its backends coming up behind it, for as long as the context lasts.

    On leaving, every backend and all that it started has ended, and the audit log is written.

    Args:
        settings: The configuration.
        state_dir: Where its state is kept.
        environ: What placeholders and children get variables from.
        own_url: Where it listens, so that it never becomes a backend of itself.
        vault: Where its secrets are; None: in `state_dir`, and nobody else has to keep them out of anything.
    """
    vault = vault or Vault(state_dir, Concealment())
    conceal = vault.conceal
    clock = SystemClock()
    await anyio.Path(state_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = open_engine(state_dir / _DATABASE)
    audit = SqlAuditLog(engine)
    shelf = SqlShelf(engine, clock)
    catalog = Catalog(_rules(settings))
    pool = SharedPool()
    around = Surroundings(DiscreetCatalog(catalog, conceal), SqlListingStore(engine), pool, clock, environ)
    # In a thread, since a keyring may take its time.
    launches = await anyio.to_thread.run_sync(_launches, settings, environ, secret_reader(settings, vault.state_dir))
    for launch in launches.values():
        if isinstance(launch, ResolvedBackend):
            conceal.learn(launch.secrets)
    backends = _backends(settings, launches, around, own_url)
    builtin = BuiltinBackend(lambda: catalog.snapshot, lambda: catalog.statuses, shelf)
    catalog.publish(BUILTIN, builtin.listing())
    callable_backends: dict[str, Backend] = {BUILTIN: builtin, **backends}
    gate = CountingGate(
        build_gate(
            GateParts(
                snapshot=lambda: catalog.snapshot,
                policy=OwnerPolicy(),
                audit=audit,
                confirmer=AllowAll(),
                shelf=shelf,
                clock=clock,
                backends=callable_backends,
                limits=settings.limits,
                starting=lambda: _never_listed(catalog),
                overrides=settings.backends,
                conceal=conceal,
            )
        )
    )
    seal = Seal(_secret_key(state_dir), clock)
    inside = Inside(catalog, gate, seal, instructions, clock)
    try:
        async with anyio.create_task_group() as tasks:
            for backend in backends.values():
                tasks.start_soon(backend.run_forever)
            try:
                yield Bridge(settings, catalog, gate, inside, backends)
            finally:
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await pool.shut()
            await anyio.to_thread.run_sync(audit.close)
            await anyio.to_thread.run_sync(engine.dispose)


def _never_listed(catalog: Catalog) -> list[str]:
    """The backends that are starting and of which nothing is known."""
    return [
        name
        for name, status in catalog.statuses.items()
        if status.state is State.STARTING and name not in catalog.snapshot.listings
    ]


def _rules(settings: Settings) -> Rules:
    return Rules(
        order=(BUILTIN, *settings.backends),
        unprefixed=frozenset(name for name, backend in settings.backends.items() if backend.namespace == "none"),
        groups=settings.groups,
        ungrouped=settings.server.ungrouped == "show",
    )


def _launches(
    settings: Settings, environ: Mapping[str, str], secrets: SecretReader
) -> dict[str, ResolvedBackend | LaunchInvalid]:
    """How each backend that is wanted is launched, or why it cannot be. Blocks while secrets are read."""
    launches: dict[str, ResolvedBackend | LaunchInvalid] = {}
    for name, backend in settings.backends.items():
        if backend.enabled and settings.wants(name):
            try:
                launches[name] = resolve(backend, environ, secrets)
            except LaunchInvalid as error:
                launches[name] = error
    return launches


def _backends(
    settings: Settings,
    launches: Mapping[str, ResolvedBackend | LaunchInvalid],
    around: Surroundings,
    own_url: str | None,
) -> dict[str, McpBackend]:
    """The backends that can be started; the others are reported with the reason."""
    backends: dict[str, McpBackend] = {}
    for name, backend in settings.backends.items():
        cause: str | None = None
        state = State.DISABLED
        if not backend.enabled:
            cause = f"Switched off by `enabled = false` under [backends.{name}]."
        elif not settings.wants(name):
            cause = "None of its tools can be seen: no group that names it is on, and tools in no group are hidden."
        else:
            try:
                launch = launches[name]
                if isinstance(launch, LaunchInvalid):
                    raise launch
                _refuse_itself(name, launch, own_url, around.environ)
            except LaunchInvalid as error:
                cause, state = error.sentence(), State.BROKEN
            else:
                backends[name] = McpBackend(launch, backend, around, name=name, fingerprint=_fingerprint(launch))
                around.shelf.report(BackendStatus(name, State.STARTING, around.clock.now()))
                continue
        around.shelf.report(BackendStatus(name, state, around.clock.now(), cause))
        log.warning("backend is not started", backend=name, cause=cause)
    return backends


def _refuse_itself(name: str, resolved: ResolvedBackend, own_url: str | None, environ: Mapping[str, str]) -> None:
    """Refuse a backend that is this bridge: it would list its own tools, and those again, without end.

    A client's configuration, taken over as it is, may well hold the bridge.

    Raises:
        LaunchInvalid: It is.
    """
    launch = resolved.launch
    if isinstance(launch, StdioLaunch):
        itself = Path(launch.command).name.startswith("bridgehead") and environ.get(DEPTH_VARIABLE, "0") != "0"
    else:
        there, here = urlsplit(launch.url), urlsplit(own_url or "")
        itself = is_loopback(there.hostname or "") and is_loopback(here.hostname or "") and there.port == here.port
    if itself:
        raise LaunchInvalid(
            f"Backend {name} is this bridge itself.", hint=f"remove [backends.{name}], or set `enabled = false` there."
        )


def _fingerprint(resolved: ResolvedBackend) -> str:
    """What identifies how a backend is launched, without the values of secrets."""
    launch = resolved.written
    if isinstance(launch, StdioLaunch):
        parts = ["stdio", launch.command, *launch.args, str(launch.cwd), *sorted(launch.env)]
    else:
        parts = [launch.transport, launch.url, *sorted(launch.headers)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _secret_key(state_dir: Path) -> bytes:
    """The key that seals what callers carry; made once, readable by the owner alone."""
    path = state_dir / _KEY_FILE
    try:
        if path.exists() and len(kept := path.read_bytes()) == _KEY_BYTES:
            return kept
        # Renamed into place, so that a crash leaves no half a key. A damaged one is replaced: only open rounds are lost by it.
        key, new = secrets.token_bytes(_KEY_BYTES), path.with_suffix(f".{secrets.token_hex(4)}")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
        new.replace(path)
    except OSError as error:
        raise ConfigInvalid(
            f"The key {path} can be neither read nor made: {error.strerror}.",
            hint="make the state directory one of your own that you may write, or choose another with --state-dir.",
        ) from error
    return key


def serve(settings: Settings, state_dir: Path, host: str, port: int) -> int:
    """Serve over HTTP until told to stop; the exit code.

    Raises:
        Forbidden: `host` is not loopback, which needs authentication that this bridge does not have yet.
        ConfigInvalid: The port cannot be had.
        StateInUse: Another bridge serves from the state directory.
    """
    if not is_loopback(host):
        raise Forbidden(
            f"Listening on {host} would let other machines in, and they cannot be authenticated yet.",
            hint="use 127.0.0.1, and a tunnel that ends on this machine.",
        )
    vault = Vault(state_dir, Concealment())
    configure_logs(settings.server.log_level, vault.conceal)
    listener = listen(host, port)
    authenticator = Authenticator(ensure_local_token(state_dir))
    with claim(state_dir):
        return run_until_signalled(
            lambda stop: serve_on(listener, settings, state_dir, authenticator, stop=stop, vault=vault)
        )


async def serve_on(  # noqa: PLR0913  the parts of a bridge that are there before it runs
    listener: Listener,
    settings: Settings,
    state_dir: Path,
    authenticator: KnowsCallers,
    *,
    stop: anyio.Event,
    vault: Vault | None = None,
) -> None:
    """Serve on a socket that listens already, until `stop` is set, letting in whom `authenticator` knows."""
    server = settings.server
    doors = Doors(hosts=server.allowed_hosts, origins=server.allowed_origins)

    def authorised(request: Request) -> None:
        peer = request.client
        authenticator.caller(
            request.headers.get("authorization"), peer_is_loopback=peer is not None and is_loopback(peer.host)
        )

    address = state_dir / _ADDRESS_FILE
    async with running(settings, state_dir, os.environ, own_url=listener.url, vault=vault) as bridge:
        endpoints = McpEndpoints(bridge.inside, authenticator, doors, max_body_bytes=server.max_body_bytes)
        front = Front(endpoints, health_routes(bridge.catalog, __version__, authorised), doors)
        # Renamed into place, so that nobody reads half an address.
        await anyio.Path(address.with_suffix(".new")).write_text(listener.url)
        await anyio.Path(address.with_suffix(".new")).replace(address)
        log.info("listening", url=listener.url, mcp=f"{listener.url}/mcp", backends=len(bridge.settings.backends))
        try:
            async with endpoints.running():
                await listener.serve(front, stop, grace_s=server.shutdown_grace_s, calls=bridge.gate)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.Path(address).unlink(missing_ok=True)


def serve_stdio(settings: Settings, state_dir: Path, group: str | None = None) -> int:
    """Serve the one client on standard input and output until it closes its end; the exit code.

    Args:
        settings: The configuration.
        state_dir: Where the bridge keeps its state.
        group: The only group that is shown, or None for all that is switched on.
    """
    vault = Vault(state_dir, Concealment())
    configure_logs(settings.server.log_level, vault.conceal)

    async def main(stop: anyio.Event) -> None:
        bridge_runs = running(settings, state_dir, os.environ, vault=vault)
        async with bridge_runs as bridge, anyio.create_task_group() as tasks:

            async def leave() -> None:
                await stop.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave)
            await serve_on_stdio(bridge.inside, LOCAL_OWNER, group=group)
            tasks.cancel_scope.cancel()

    return run_until_signalled(main)


def probe(settings: Settings, state_dir: Path, name: str) -> Probe:
    """Start one backend, list it, and end it again.

    Raises:
        BackendNotFound: There is no backend of that name.
    """
    if name not in settings.backends:
        known = ", ".join(settings.backends) or "none"
        raise BackendNotFound(f"No backend {name!r} is configured.", hint=f"configured are: {known}.")
    vault = Vault(state_dir, Concealment())
    configure_logs("error", vault.conceal)
    return anyio.run(_probe, settings, name, vault, backend_options={"use_uvloop": os.name != "nt"})


async def _probe(settings: Settings, name: str, vault: Vault) -> Probe:
    backend: BackendSettings = settings.backends[name]
    # Groups are left out, so that a backend can be tried whatever is switched on.
    server = settings.server.model_copy(update={"ungrouped": "show"})
    alone = settings.model_copy(update={"backends": {name: backend}, "groups": {}, "server": server})
    clock: Clock = SystemClock()
    began = clock.monotonic()
    async with running(alone, vault.state_dir / "probe", os.environ, vault=vault) as bridge:
        with anyio.move_on_after(backend.start_timeout_s + 5):
            while bridge.catalog.statuses[name].state is State.STARTING:  # noqa: ASYNC110 – statuses are not announced
                await anyio.sleep(0.02)
        status = bridge.backends[name].status if name in bridge.backends else bridge.catalog.statuses[name]
        status = discreet(status, vault.conceal)
        listing = bridge.catalog.snapshot.listings.get(name)
        return Probe(
            name=name,
            ok=status.state is State.READY,
            cause=status.cause,
            seconds=clock.monotonic() - began,
            protocol=status.protocol,
            server=status.server,
            tools=tuple(str(tool["name"]) for tool in listing.tools) if listing is not None else (),
            resources=len(listing.resources) + len(listing.templates) if listing is not None else 0,
            prompts=len(listing.prompts) if listing is not None else 0,
            stderr=status.stderr,
        )
