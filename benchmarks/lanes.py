"""The ways from the load to the backend: the backend alone, the floors, and the bridge with each kind of backend."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from sys import executable

from benchmarks.load import MODERN_GENERATION, Caller, Door, Generation, WrongAnswer, listing
from benchmarks.processes import Program, backend_command, free_port

ALONE = "backend alone"
PIPE = "bare pipe"
SDK = "SDK on both sides"
BRIDGE_PIPE = "bridgehead, pipe"
BRIDGE_HTTP = "bridgehead, http"
_START_S = 60
_SETTLE_S = 1.0


@dataclass
class Lane:
    """One way to the backend, and the program that is measured on it.

    Attributes:
        name: As it stands in the report.
        command: What starts the gateway, or the backend itself where there is no gateway.
        tools: How many tools the backend lists.
        prefix: What the names of its tools begin with.
        state_dir: Where the bridge keeps its state; None for what keeps none.
        cold_s: Seconds from the start of the process to the first complete list, with an empty state directory.
        warm_s: The same with the state that a run has left.
        idle_mb: Resident memory after the start, before the first call.
    """

    name: str
    port: int
    command: list[str]
    tools: int
    prefix: str = ""
    state_dir: Path | None = None
    cold_s: list[float] = field(default_factory=list[float])
    warm_s: list[float] = field(default_factory=list[float])
    idle_mb: float = 0.0
    _program: Program | None = None

    @property
    def program(self) -> Program:
        """What is running.

        Raises:
            RuntimeError: It was not started.
        """
        if self._program is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._program

    def door(self, generation: Generation) -> Door:
        """Where this lane is entered; the bridge only with the token that it has written."""
        token = None if self.state_dir is None else (self.state_dir / "local-token").read_text().strip()
        return Door(f"http://127.0.0.1:{self.port}/mcp", generation, token)

    async def start(self) -> None:
        """Start with nothing kept, and where something is kept, once more with it; leave it running."""
        self.cold_s.append(await self._start())
        if self.state_dir is not None:
            self.stop()
            self.warm_s.append(await self._start())
        await asyncio.sleep(_SETTLE_S)
        self.idle_mb = self.program.rss_mb()

    def stop(self) -> None:
        """End it, if it was started."""
        if self._program is not None:
            self._program.stop()
            self._program = None

    async def _start(self) -> float:
        began = time.perf_counter()
        self._program = Program(self.command, {"BRIDGEHEAD_LOG_LEVEL": "warning"})
        while not await self._listed():
            self._program.check()
            if time.perf_counter() - began > _START_S:
                raise RuntimeError(f"{self.name} did not list its tools in time")
            await asyncio.sleep(0.005)
        return time.perf_counter() - began

    async def _listed(self) -> bool:
        """Whether the list is complete now."""
        question = listing(self.prefix, self.tools)(0, 0)
        try:
            caller = Caller(self.door(MODERN_GENERATION))
            await caller.open()
        except OSError:
            return False
        try:
            await caller.ask(question)
        except (WrongAnswer, OSError, asyncio.IncompleteReadError):
            return False
        finally:
            await caller.close()
        return True


def lanes(folder: Path, tools: int) -> list[Lane]:
    """Every lane, in the order in which they start; the bridge's HTTP backend is the one that is also measured alone."""
    alone, pipe, sdk = free_port(), free_port(), free_port()
    return [
        Lane(ALONE, alone, backend_command(tools, alone), tools),
        Lane(PIPE, pipe, [executable, "-m", "benchmarks.floor_pipe", str(pipe), *backend_command(tools)], tools),
        Lane(SDK, sdk, [executable, "-m", "benchmarks.floor_sdk", str(sdk), *backend_command(tools)], tools),
        _bridge(BRIDGE_PIPE, folder / "pipe", tools, None),
        _bridge(BRIDGE_HTTP, folder / "http", tools, alone),
    ]


def _bridge(name: str, folder: Path, tools: int, backend_port: int | None) -> Lane:
    """The bridge in front of one backend.

    A limit is set, though one that nobody reaches, because without any the gate has nothing to count.
    """
    folder.mkdir(parents=True)
    config, state_dir, port = folder / "bridgehead.toml", folder / "state", free_port()
    command, *args = backend_command(tools)
    backend = (
        f"command = {json.dumps(command)}\nargs = {json.dumps(args)}\ncwd = {json.dumps(str(Path.cwd()))}\n"
        if backend_port is None
        else f'url = "http://127.0.0.1:{backend_port}/mcp"\n'
    )
    config.write_text(f"[limits]\ncalls_per_minute = 1000000000\n[backends.bench]\n{backend}")
    serve = [str(Path(executable).parent / "bridgehead"), "serve", "--config", str(config)]
    serve += ["--port", str(port), "--state-dir", str(state_dir)]
    return Lane(name, port, serve, tools, "bench__", state_dir)
