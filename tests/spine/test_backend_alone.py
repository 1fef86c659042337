"""A backend apart from the bridge, among neighbours that fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from bridgehead.backends.mcp import McpBackend, SharedPool, Surroundings
from bridgehead.catalog import BackendStatus, Listing, State
from bridgehead.config import BackendSettings, resolve
from bridgehead.core import SystemClock
from tests.spine.bridge import SERVERS


class FullDisk:
    """A memory that can neither read nor write."""

    def load(self, backend: str, fingerprint: str) -> Listing | None:
        raise OSError("input/output error")

    def save(self, backend: str, fingerprint: str, listing: Listing) -> None:
        raise OSError("no space left on device")

    def load_facts(self, backend: str, fingerprint: str) -> Mapping[str, Any]:
        raise OSError("input/output error")

    def save_facts(self, backend: str, fingerprint: str, facts: Mapping[str, Any]) -> None:
        raise OSError("no space left on device")


class Seen:
    """Keeps what a backend publishes; the first listing is refused with an error that nobody foresaw."""

    def __init__(self, *, stumbles: bool) -> None:
        self.ready = anyio.Event()
        self.listing = Listing()
        self.causes: list[str] = []
        self._stumbles = stumbles

    def publish(self, backend: str, listing: Listing) -> None:
        if self._stumbles:
            self._stumbles = False
            raise ZeroDivisionError
        self.listing = listing

    def report(self, status: BackendStatus) -> None:
        if status.cause:
            self.causes.append(status.cause)
        if status.state is State.READY:
            self.ready.set()

    def announce(self, backend: str, uri: str) -> None:
        """Nobody watches."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("stumbles", [False, True])
async def test_a_full_disk_or_an_error_nobody_foresaw_costs_a_backend_a_start_at_most(*, stumbles: bool) -> None:
    settings = BackendSettings(command=sys.executable, args=(str(SERVERS / "plain.py"),), name="b")
    seen, pool = Seen(stumbles=stumbles), SharedPool()
    around = Surroundings(seen, FullDisk(), pool, SystemClock(), os.environ)
    backend = McpBackend(resolve(settings, {}), settings, around, name="b", fingerprint="f")
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(backend.run_forever)
            await seen.ready.wait()
            tasks.cancel_scope.cancel()
    await pool.shut()
    assert any(tool["name"] == "echo" for tool in seen.listing.tools)
    assert any("ZeroDivisionError" in cause for cause in seen.causes) is stumbles
