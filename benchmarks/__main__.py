"""`python -m benchmarks [--quick] [--rounds N] [--tools N] [--json FILE]`: measure, and say whether the marks are met."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.lanes import GENERATIONS, Lane, backend_command, free_port, start_bridge, start_plain
from benchmarks.load import Door, Generation, Measured, run_echo, run_one_by_one
from benchmarks.report import FLOOR, Sample, marks, table

IN_FLIGHT = (1, 8, 32)
BLOB_KB = 1_024


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when every answer was right."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round, for a first look")
    parser.add_argument("--rounds", type=int, default=3, help="how often each lane is measured, in turn")
    parser.add_argument("--tools", type=int, default=1_000, help="tools that each backend lists besides")
    parser.add_argument("--json", type=Path, help="write every sample there")
    options = parser.parse_args(arguments)
    rounds, seconds = (1, 0.4) if options.quick else (options.rounds, 2.0)
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory() as folder:
        lanes = start(Path(folder), options.tools)
        try:
            for number in range(rounds):
                for lane in lanes:
                    for generation in GENERATIONS:
                        samples += asyncio.run(measure(lane, generation, number, seconds=seconds))
            print(table(samples))
            print()
            bridge = next(lane for lane in lanes if lane.name.startswith("bridgehead"))
            cold = ", ".join(f"{seconds:.2f} s with {kept} state" for kept, seconds in bridge.cold_s.items())
            print(f"bridgehead: cold start to a complete list {cold}")
            print(f"bridgehead: RSS {bridge.idle_mb:.0f} MB idle, {bridge.rss_mb():.0f} MB now")
            print(f"tools listed by each backend: {options.tools + 2}; rounds: {rounds}; every answer was checked")
            print()
            print(marks(samples))
        finally:
            for lane in lanes:
                lane.stop()
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(sample) for sample in samples], indent=1))
    return 0


def start(folder: Path, tools: int) -> list[Lane]:
    """Start every lane: the backend alone, the two floors, and the bridge with both kinds of backend."""
    backend, pipe, sdk = free_port(), free_port(), free_port()
    floor = [sys.executable, "-m", "benchmarks.floors"]
    direct = start_plain("backend alone", backend_command(tools, backend), backend)
    return [
        direct,
        start_plain("bare pipe", [*floor, "pipe", str(pipe), *backend_command(tools)], pipe),
        start_plain(FLOOR, [*floor, "sdk", str(sdk), *backend_command(tools)], sdk),
        *start_bridge(folder / "bridge", tools, backend),
    ]


async def measure(lane: Lane, generation: Generation, number: int, *, seconds: float) -> list[Sample]:
    """All workloads on one lane."""
    samples: list[Sample] = []
    door = Door(lane.url, generation, lane.token)

    def sample(workload: str, before_s: float, measured: Measured, size: float = 1.0) -> None:
        count = len(measured.latencies_s)
        cpu_ms = (lane.cpu_s() - before_s) / count * 1_000
        p50, p99 = measured.percentile_ms(0.5), measured.percentile_ms(0.99)
        rate = count * size / measured.wall_s
        samples.append(Sample(number, lane.name, generation, workload, cpu_ms, p50, p99, rate))

    for callers in IN_FLIGHT:
        before = lane.cpu_s()
        echoed = await run_echo(door, f"{lane.prefix}echo", callers=callers, seconds=seconds, most=20_000)
        sample(f"echo ×{callers}", before, echoed)
    times = 100
    before = lane.cpu_s()
    listed, _ = await run_one_by_one(door, "tools/list", {}, times=times)
    sample("list", before, listed)
    before = lane.cpu_s()
    blob = {"name": f"{lane.prefix}blob", "arguments": {"kb": BLOB_KB}}
    large, result = await run_one_by_one(door, "tools/call", blob, times=20)
    if len(result["content"][0]["text"]) != BLOB_KB * 1_024:
        raise RuntimeError(f"a result of {BLOB_KB} kB came back in another size through {lane.name}")
    sample("1 MB", before, large, size=BLOB_KB / 1_000)
    return samples


if __name__ == "__main__":
    sys.exit(main())
