"""One backend tried on its own: started, listed, and ended again."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from bridgehead.app.bridge import running
from bridgehead.catalog import State
from bridgehead.config import BackendSettings, Settings
from bridgehead.core import Clock, SystemClock
from bridgehead.core.errors import BackendNotFound
from bridgehead.core.logs import configure_logs


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


def probe(settings: Settings, state_dir: Path, name: str) -> Probe:
    """Start one backend, list it, and end it again.

    Raises:
        BackendNotFound: There is no backend of that name.
    """
    if name not in settings.backends:
        known = ", ".join(settings.backends) or "none"
        raise BackendNotFound(f"No backend {name!r} is configured.", hint=f"configured are: {known}.")
    configure_logs("error")
    return anyio.run(_probe, settings, state_dir, name, backend_options={"use_uvloop": os.name != "nt"})


async def _probe(settings: Settings, state_dir: Path, name: str) -> Probe:
    backend: BackendSettings = settings.backends[name]
    # Groups are left out, so that a backend can be tried whatever is switched on.
    server = settings.server.model_copy(update={"ungrouped": "show"})
    alone = settings.model_copy(update={"backends": {name: backend}, "groups": {}, "server": server})
    clock: Clock = SystemClock()
    began = clock.monotonic()
    async with running(alone, state_dir / "probe", os.environ) as bridge:
        with anyio.move_on_after(backend.start_timeout_s + 5):
            while bridge.catalog.statuses[name].state is State.STARTING:  # noqa: ASYNC110 – statuses are not announced
                await anyio.sleep(0.02)
        status = bridge.backends[name].status if name in bridge.backends else bridge.catalog.statuses[name]
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
