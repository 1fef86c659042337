"""The figures as a table, and whether they meet the marks."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

MARK_CPU_RATIO = 1.5
MARK_LIST_MS = 2.0
FLOOR = "SDK on both sides"


@dataclass(frozen=True)
class Sample:
    """One workload on one lane in one round.

    Attributes:
        cpu_ms: CPU of the gateway for each call, in milliseconds.
        rate: Calls a second, or megabytes a second for large results.
    """

    round: int
    lane: str
    generation: str
    workload: str
    cpu_ms: float
    p50_ms: float
    p99_ms: float
    rate: float


def table(samples: list[Sample]) -> str:
    """Medians over the rounds, one line for each workload, lane and generation."""
    lines = [
        f"{'workload':<10} {'lane':<18} {'generation':<11} {'CPU ms':>8} {'× SDK':>6} {'p50 ms':>8} {'p99 ms':>8} {'per s':>9}"
    ]
    for workload, lane, generation in dict.fromkeys((s.workload, s.lane, s.generation) for s in samples):
        chosen = [s for s in samples if (s.workload, s.lane, s.generation) == (workload, lane, generation)]
        ratio = cpu_ratio(samples, workload, lane, generation)
        shown = f"{ratio:.2f}" if ratio is not None else "–"
        lines.append(
            f"{workload:<10} {lane:<18} {generation:<11} {_median(s.cpu_ms for s in chosen):>8.3f} {shown:>6} "
            f"{_median(s.p50_ms for s in chosen):>8.3f} {_median(s.p99_ms for s in chosen):>8.3f} "
            f"{_median(s.rate for s in chosen):>9.0f}"
        )
    return "\n".join(lines)


def cpu_ratio(samples: list[Sample], workload: str, lane: str, generation: str) -> float | None:
    """CPU a call beside the SDK's floor in the same round and generation; the median over the rounds."""
    floors = {
        s.round: s.cpu_ms
        for s in samples
        if (s.workload, s.lane, s.generation) == (workload, FLOOR, generation) and s.cpu_ms > 0
    }
    ratios = [
        s.cpu_ms / floors[s.round]
        for s in samples
        if (s.workload, s.lane, s.generation) == (workload, lane, generation) and s.round in floors
    ]
    return statistics.median(ratios) if ratios and lane != FLOOR else None


def marks(samples: list[Sample]) -> str:
    """Whether the marks are met, each with its figure."""
    lines: list[str] = []
    for workload in dict.fromkeys(s.workload for s in samples if s.workload.startswith("echo")):
        for generation in dict.fromkeys(s.generation for s in samples):
            ratio = cpu_ratio(samples, workload, "bridgehead, pipe", generation)
            if ratio is not None:
                verdict = "yes" if ratio <= MARK_CPU_RATIO else "no"
                lines.append(
                    f"CPU a call at most {MARK_CPU_RATIO} × the SDK on both sides, {workload}, {generation}: "
                    f"{verdict} ({ratio:.2f})"
                )
    listed = [s.cpu_ms for s in samples if s.workload == "list" and s.lane.startswith("bridgehead")]
    if listed:
        figure = statistics.median(listed)
        verdict = "yes" if figure <= MARK_LIST_MS else "no"
        lines.append(f"a list of all tools in at most {MARK_LIST_MS:g} ms of CPU: {verdict} ({figure:.2f} ms)")
    return "\n".join(lines)


def _median(values: Iterable[float]) -> float:
    return statistics.median(values)
