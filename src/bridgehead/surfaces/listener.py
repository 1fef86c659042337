"""The HTTP server and the process around it: a socket, signals, and a stop that loses nothing.

A stop goes in order: no new connections, calls in flight get their grace, streams that would last for ever are cut, and
whoever called cleans up.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, cast

import anyio
import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bridgehead.core import BridgeError
from bridgehead.core.errors import ConfigInvalid

log = structlog.get_logger(__name__)

_FLUSH_S = 1
_BACKLOG = 2048
MOST_HEADER_BYTES = 256 * 1024


class InFlightCalls(Protocol):
    """The calls that run."""

    async def wait_empty(self) -> None:
        """Return once none does."""
        ...

    def give_up(self) -> None:
        """End each with an answer."""
        ...


class _OneWrite:
    """A transport that writes what it is given in one turn of the loop in one go: head and body of an answer, that is.

    A system call costs as much as a stage of the gate.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Write `data` before the next turn."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)

    def close(self) -> None:
        """Write what is held, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, []
        if held and not self._transport.is_closing():
            self._transport.writelines(held)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the transport's own."""
        return getattr(self._transport, name)


class _BoundedProtocol(HttpToolsProtocol):
    """uvicorn's parser, with a bound on request headers that it lacks: they are kept in memory before anyone is known."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Write over `transport` in as few pieces as there can be."""
        super().connection_made(cast("asyncio.Transport", _OneWrite(transport)))

    _in_headers = False
    _header_bytes = 0

    def on_message_begin(self) -> None:
        """Begin to count."""
        self._in_headers, self._header_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop counting."""
        self._in_headers = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take what came in, and hang up on headers without end."""
        super().data_received(data)
        if self._in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > MOST_HEADER_BYTES:
                log.warning("a request's headers were too long; hung up", bytes=self._header_bytes)
                self.transport.close()


class _QuietServer(uvicorn.Server):
    """uvicorn without signal handlers of its own: it would end the process before the bridge has cleaned up."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone."""
        yield


@dataclass(frozen=True, slots=True)
class Listener:
    """A bound socket, listening already."""

    sock: socket.socket
    url: str

    async def serve(
        self, app: ASGIApp, stop: anyio.Event, *, grace_s: Callable[[], float], calls: InFlightCalls
    ) -> None:
        """Serve `app` until `stop` is set, then stop in order.

        Args:
            app: The application.
            stop: Set from outside.
            grace_s: How long calls in flight may go on after the stop began; asked then.
            calls: Those in flight.
        """
        server = _QuietServer(
            uvicorn.Config(
                app,
                http=_BoundedProtocol,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                # Nothing in front of the bridge is trusted to say where a caller is.
                proxy_headers=False,
                timeout_graceful_shutdown=_FLUSH_S,
            )
        )
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                await server.serve(sockets=[self.sock])
                # It ends by itself only when it could not start.
                stop.set()

            tasks.start_soon(run)
            await stop.wait()
            for accepting in getattr(server, "servers", ()):
                accepting.close()
            patience_s = grace_s()
            with anyio.move_on_after(patience_s) as patience:
                await calls.wait_empty()
            if patience.cancelled_caught:
                log.warning("calls were still in flight when the grace ran out", grace_s=patience_s)
                calls.give_up()
            # uvicorn is asked to leave, not cancelled in the middle of an answer.
            server.should_exit = True


def listen(host: str, port: int) -> Listener:
    """Bind and listen, so that clients can connect before anything else is up.

    Raises:
        ConfigInvalid: The address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise ConfigInvalid(
            f"Port {port} on {host} cannot be had: {error.strerror}.",
            hint="stop what listens there, or choose another with --port, and --state-dir if that is a bridge.",
        ) from error
    sock.settimeout(0)
    shown = f"[{host}]" if ":" in host else host
    return Listener(sock, f"http://{shown}:{sock.getsockname()[1]}")


def run_until_signalled(main: Callable[[anyio.Event], Awaitable[None]]) -> int:
    """Run `main` with an event that SIGINT and SIGTERM set.

    A second signal cancels `main`, which then only cleans up; a third ends the process at once.

    Returns:
        The exit code: 0, since being told to stop is no failure.

    Raises:
        BridgeError: What went wrong, out of whatever groups the task groups have put around it.
    """

    async def supervise() -> None:
        async with anyio.create_task_group() as tasks:
            stop = anyio.Event()
            tasks.start_soon(_watch_signals, stop, tasks.cancel_scope)
            await main(stop)
            tasks.cancel_scope.cancel()

    try:
        anyio.run(supervise, backend_options={"use_uvloop": os.name != "nt"})
    except BaseExceptionGroup as group:
        ours = group.subgroup(BridgeError)
        while isinstance(ours, BaseExceptionGroup):
            ours = ours.exceptions[0]
        if ours is not None:
            raise ours from group
        raise
    return 0


async def _watch_signals(stop: anyio.Event, everything: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            if stop.is_set():
                log.warning("stopping at once; calls that run are given up", signal=number.name)
                everything.cancel()
                break
            log.info("stopping", signal=number.name)
            stop.set()
