"""The bridge in front of its clients: over HTTP, or for the one on standard input and output."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import anyio.abc
import structlog
from starlette.requests import Request

from bridgehead import __version__
from bridgehead.app.bridge import Bridge, running
from bridgehead.app.reload import Reloading
from bridgehead.app.vault import Vault
from bridgehead.backends.mcp import adopt_orphans
from bridgehead.catalog import Catalog, State
from bridgehead.config import Concealment, Settings
from bridgehead.core.addresses import is_loopback
from bridgehead.core.errors import Forbidden
from bridgehead.core.logs import configure_logs, set_log_level
from bridgehead.core.memory import spare_what_stays
from bridgehead.identity import LOCAL_OWNER, Authenticator, ensure_local_token
from bridgehead.store import claim
from bridgehead.surfaces.calls import calls_routes
from bridgehead.surfaces.front import Front
from bridgehead.surfaces.health import health_routes
from bridgehead.surfaces.listener import Listener, listen, run_until_signalled
from bridgehead.surfaces.mcp import Authenticator as KnowsCallers
from bridgehead.surfaces.mcp import Doors, McpEndpoints, serve_on_stdio

log = structlog.get_logger(__name__)

_ADDRESS_FILE = "address"
_START_S = 30.0
_LOOK_S = 0.5
_TERMINAL = "/dev/tty"
"""The terminal that a process belongs to, if it does (POSIX.1-2024, General Terminal Interface)."""


def serve(settings: Settings, state_dir: Path, *, host: str | None = None, port: int | None = None) -> int:
    """Serve over HTTP until told to stop; the exit code.

    Args:
        settings: The configuration to begin with; its file is followed.
        state_dir: Where the bridge keeps its state.
        host: What the command line says, whatever the configuration does.
        port: Likewise.

    Raises:
        Forbidden: The host is not loopback, which needs authentication that this bridge does not have yet.
        ConfigInvalid: The port cannot be had.
        StateInUse: Another bridge serves from the state directory.
    """
    listen_on = settings.server.host if host is None else host
    if not is_loopback(listen_on):
        raise Forbidden(
            f"Listening on {listen_on} would let other machines in, and they cannot be authenticated yet.",
            hint="use 127.0.0.1, and a tunnel that ends on this machine.",
        )
    vault = Vault(state_dir, Concealment())
    configure_logs(settings.server.log_level, settings.server.log_format, vault.conceal)
    adopt_orphans()
    listener = listen(listen_on, settings.server.port if port is None else port)
    authenticator = Authenticator(ensure_local_token(state_dir))
    pinned = frozenset(key for key, value in (("server.host", host), ("server.port", port)) if value is not None)
    pinning = settings.model_copy(update={"pinned": settings.pinned | pinned})
    with claim(state_dir):
        return run_until_signalled(
            lambda stop: serve_on(listener, pinning, state_dir, authenticator, stop=stop, vault=vault)
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
        endpoints = McpEndpoints(
            bridge.inside, authenticator, doors, max_body_bytes=server.max_body_bytes, fast_lane=server.fast_lane
        )

        def apply(changed: Settings) -> None:
            set_log_level(changed.server.log_level)
            doors.change(hosts=changed.server.allowed_hosts, origins=changed.server.allowed_origins)
            endpoints.adjust(max_body_bytes=changed.server.max_body_bytes)

        reloading = Reloading(bridge, os.environ, apply)
        routes = [
            *health_routes(bridge.catalog, __version__, authorised, lambda: reloading.status),
            *calls_routes(bridge.live, authorised),
        ]
        front = Front(endpoints, routes, doors)
        # Renamed into place, so that nobody reads half an address.
        await anyio.Path(address.with_suffix(".new")).write_text(listener.url)
        await anyio.Path(address.with_suffix(".new")).replace(address)
        try:
            async with endpoints.running(), anyio.create_task_group() as tasks:
                tasks.start_soon(reloading.run)
                # Until it hears them, a hangup is the end of the process.
                await tasks.start(_hear_hangups, reloading, stop)
                log.info(
                    "listening", url=listener.url, mcp=f"{listener.url}/mcp", backends=len(bridge.settings.backends)
                )
                tasks.start_soon(_spare_memory, bridge.catalog)
                tasks.start_soon(_end_following, bridge, stop)
                await listener.serve(
                    front, stop, grace_s=lambda: bridge.settings.server.shutdown_grace_s, calls=bridge.gate
                )
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.Path(address).unlink(missing_ok=True)


async def _spare_memory(catalog: Catalog) -> None:
    """Spare the collector what is there once every backend has come up, or has had its time."""
    with anyio.move_on_after(_START_S):
        while any(status.state is State.STARTING for status in catalog.statuses.values()):  # noqa: ASYNC110 – statuses are not announced
            await anyio.sleep(_LOOK_S)
    spare_what_stays()


async def _end_following(bridge: Bridge, stop: anyio.Event) -> None:
    """Let those go who follow the calls, once the last call is over."""
    await stop.wait()
    await bridge.gate.wait_empty()
    bridge.live.end()


def serve_stdio(settings: Settings, state_dir: Path, group: str | None = None) -> int:
    """Serve the one client on standard input and output until it closes its end; the exit code.

    Args:
        settings: The configuration to begin with; its file is followed.
        state_dir: Where the bridge keeps its state.
        group: The only group that is shown, or None for all that is switched on.
    """
    vault = Vault(state_dir, Concealment())
    configure_logs(settings.server.log_level, settings.server.log_format, vault.conceal)
    adopt_orphans()
    pinned = settings.pinned | {"server.host", "server.port"}
    listening_nowhere = settings.model_copy(update={"pinned": pinned})

    async def main(stop: anyio.Event) -> None:
        bridge_runs = running(listening_nowhere, state_dir, os.environ, vault=vault)
        async with bridge_runs as bridge, anyio.create_task_group() as tasks:
            reloading = Reloading(bridge, os.environ, lambda changed: set_log_level(changed.server.log_level))

            async def leave() -> None:
                await stop.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave)
            tasks.start_soon(reloading.run)
            tasks.start_soon(_hear_hangups, reloading, stop)
            await serve_on_stdio(bridge.inside, LOCAL_OWNER, group=group)
            tasks.cancel_scope.cancel()

    return run_until_signalled(main)


async def _hear_hangups(
    reloading: Reloading, stop: anyio.Event, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Reload on SIGHUP, but stop where it means what it is named for: that the terminal has gone."""
    if not hasattr(signal, "SIGHUP"):
        task_status.started()
        return
    # `nohup` starts a program that is to outlive its terminal with the signal ignored.
    bound_to_terminal = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and _has_terminal()
    with anyio.open_signal_receiver(signal.SIGHUP) as signals:
        task_status.started()
        async for _ in signals:
            if bound_to_terminal and not _has_terminal():
                log.info("stopping, since the terminal has gone")
                stop.set()
                return
            log.info("reading the configuration, as told by SIGHUP")
            await reloading.reload()


def _has_terminal() -> bool:
    try:
        os.close(os.open(_TERMINAL, os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
