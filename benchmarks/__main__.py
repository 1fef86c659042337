"""`python -m benchmarks [--quick] [--rounds N] [--tools N] [--json FILE]`: measure, and say whether the marks are met."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import report
from benchmarks.lanes import Lane, lanes
from benchmarks.load import GENERATIONS, Generation, Load, Measured, Questions, blob, echo, listing, run
from benchmarks.report import IN_FLIGHT, LARGE, LIST, Checked, Figures, Sample, echo_of

LARGE_BYTES = 1_000_000
MIXING = Load(callers=8, times=25, shared=False)
"""Callers of different sessions with the same ids: whose answers get mixed up, it shows here."""


@dataclass(frozen=True)
class Plan:
    """How long a run takes.

    Attributes:
        seconds: For each number of calls in flight.
        lists: How many lists are asked for in a round.
        larges: How many large results.
    """

    rounds: int
    seconds: float
    lists: int
    larges: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when every answer was right."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="half a minute, for a first look")
    parser.add_argument("--rounds", type=int, help="how often each lane is measured, in turn; 6, or 1 with --quick")
    parser.add_argument("--tools", type=int, default=1_000, help="how many tools each backend lists, at least 2")
    parser.add_argument("--json", type=Path, help="write every sample there")
    options = parser.parse_args(arguments)
    plan = Plan(options.rounds or 1, 0.3, 10, 10) if options.quick else Plan(options.rounds or 6, 0.8, 20, 10)
    with tempfile.TemporaryDirectory() as folder:
        everyone = lanes(Path(folder), options.tools)
        try:
            samples, checked = asyncio.run(measure(everyone, plan))
            figures = Figures(samples)
            print(report.calls_table(figures, everyone), report.starts_table(everyone), sep="\n\n")
        finally:
            for lane in reversed(everyone):
                lane.stop()
    print(f"\nrounds: {plan.rounds}; tools listed: {options.tools:,}; {report.answers_line(checked)}")
    print(report.marks(figures, options.tools, everyone))
    if options.json is not None:
        starts = {lane.name: {"cold_s": lane.cold_s, "warm_s": lane.warm_s} for lane in everyone}
        kept = {"tools": options.tools, "starts": starts, **asdict(checked), "samples": [asdict(s) for s in samples]}
        options.json.write_text(json.dumps(kept, indent=1))
    return 1 if checked.wrong else 0


async def measure(everyone: Sequence[Lane], plan: Plan) -> tuple[list[Sample], Checked]:
    """All rounds, in each of which all lanes do the same in turn, and every other time in the opposite order."""
    samples: list[Sample] = []
    all_measured: list[Measured] = []
    for lane in everyone:
        await lane.start()
    for number in range(plan.rounds):
        order = everyone if number % 2 == 0 else everyone[::-1]
        for generation in GENERATIONS:
            for workload in (*(echo_of(n) for n in IN_FLIGHT), LIST, LARGE):
                for lane in order:
                    measured = await ask(lane, generation, *asked(workload, lane, plan))
                    all_measured.append(measured)
                    samples.append(sample(measured, number, lane, generation, workload))
            all_measured += [await ask(lane, generation, echo(f"{lane.prefix}echo"), MIXING) for lane in order]
    wrong = [text for measured in all_measured for text in measured.wrong]
    return samples, Checked(sum(measured.calls for measured in all_measured), wrong)


async def ask(lane: Lane, generation: Generation, questions: Questions, load: Load) -> Measured:
    """Put a load on a lane."""
    return await run(lane.door(generation), questions, load, lane.program.cpu_s)


def asked(workload: str, lane: Lane, plan: Plan) -> tuple[Questions, Load]:
    """What a workload asks of a lane, and how often."""
    match workload:
        case report.LIST:
            return listing(lane.prefix, lane.tools), Load(times=plan.lists)
        case report.LARGE:
            return blob(f"{lane.prefix}blob", LARGE_BYTES), Load(times=plan.larges)
        case _:
            callers = next(n for n in IN_FLIGHT if echo_of(n) == workload)
            return echo(f"{lane.prefix}echo"), Load(callers=callers, seconds=plan.seconds)


def sample(measured: Measured, number: int, lane: Lane, generation: Generation, workload: str) -> Sample:
    """The figures of one workload on one lane."""
    p50, p99 = measured.percentile_ms(0.5), measured.percentile_ms(0.99)
    # What the load spends on checking large answers says nothing about the lane; small ones are checked while others wait.
    busy_s = sum(measured.latencies_s) if workload in {LIST, LARGE} else measured.wall_s
    cpu_ms, rate = measured.cpu_s / measured.calls * 1_000, len(measured.latencies_s) / busy_s if busy_s else 0.0
    return Sample(number, lane.name, generation, workload, cpu_ms, p50, p99, rate)


if __name__ == "__main__":
    sys.exit(main())
