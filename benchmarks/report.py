"""The figures as tables, and whether they meet the marks. Ratios are taken within a round, and their median is shown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.lanes import ALONE, BRIDGE_HTTP, BRIDGE_PIPE, PIPE, SDK, Lane

IN_FLIGHT = (1, 8, 32)
LIST = "list"
LARGE = "1 MB"
MARK_PIPE_RATIO = 2.5
MARK_HTTP_MS = 0.2
MARK_LIST_MS = 0.5
MARK_TAIL_RATIO = 3.0
MARK_LARGE_RATIO = 0.5
MARK_IDLE_MB = 90
MARK_START_S = 1.2


@dataclass(frozen=True)
class Sample:
    """One workload on one lane in one round.

    Attributes:
        workload: `echo ×N` with N in flight, `list`, or `1 MB`.
        cpu_ms: CPU of the gateway for each call, in milliseconds.
        rate: Calls a second; for `1 MB` these are megabytes a second.
    """

    round: int
    lane: str
    generation: str
    workload: str
    cpu_ms: float
    p50_ms: float
    p99_ms: float
    rate: float


@dataclass(frozen=True)
class Checked:
    """How many answers were looked at, and what the wrong ones were."""

    answers: int
    wrong: list[str]


def echo_of(in_flight: int) -> str:
    """The name of the workload with so many calls in flight."""
    return f"echo ×{in_flight}"


class Figures:
    """All samples of a run."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples

    @property
    def workloads(self) -> list[str]:
        """In the order in which they were measured."""
        return list(dict.fromkeys(sample.workload for sample in self._samples))

    @property
    def generations(self) -> list[str]:
        """In the order in which they were measured."""
        return list(dict.fromkeys(sample.generation for sample in self._samples))

    def of(self, workload: str, lane: str, generation: str) -> dict[int, Sample]:
        """The samples of one line of the table, by round."""
        key = (workload, lane, generation)
        return {s.round: s for s in self._samples if (s.workload, s.lane, s.generation) == key}

    def median(self, workload: str, lane: str, generation: str, figure: Callable[[Sample], float]) -> float:
        """Over the rounds."""
        return statistics.median(figure(sample) for sample in self.of(workload, lane, generation).values())

    def ratios(
        self, workload: str, lane: str, generation: str, *, to: str, figure: Callable[[Sample], float]
    ) -> list[float]:
        """The lane's figure beside another lane's in the same round, for each round."""
        others = self.of(workload, to, generation)
        return [
            figure(sample) / figure(others[number])
            for number, sample in self.of(workload, lane, generation).items()
            if figure(others[number]) > 0
        ]


def cpu_ms(sample: Sample) -> float:
    """The figure that is steadiest."""
    return sample.cpu_ms


def p50_ms(sample: Sample) -> float:
    """The figure that a caller feels."""
    return sample.p50_ms


def calls_table(figures: Figures, lanes: Sequence[Lane]) -> str:
    """One line for each workload, lane and generation."""
    lines = [
        "workload  generation  lane                CPU ms   × SDK (least–most)  × pipe   p50 ms  × alone   p99 ms   per s"
    ]
    for workload in figures.workloads:
        lines += [
            _calls_line(figures, workload, lane.name, generation)
            for generation in figures.generations
            for lane in lanes
        ]
        lines.append("")
    return "\n".join(lines[:-1])


def _calls_line(figures: Figures, workload: str, lane: str, generation: str) -> str:
    gateway = lane != ALONE
    sdk = figures.ratios(workload, lane, generation, to=SDK, figure=cpu_ms) if gateway and lane != SDK else []
    pipe = figures.ratios(workload, lane, generation, to=PIPE, figure=cpu_ms) if gateway and lane != PIPE else []
    alone = figures.ratios(workload, lane, generation, to=ALONE, figure=p50_ms) if gateway else []
    beside = f"{_ratio(statistics.median(sdk))} ({_ratio(min(sdk))}–{_ratio(max(sdk))})" if sdk else "–"
    cpu, p50 = (figures.median(workload, lane, generation, figure) for figure in (cpu_ms, p50_ms))
    p99 = figures.median(workload, lane, generation, lambda sample: sample.p99_ms)
    rate = figures.median(workload, lane, generation, lambda sample: sample.rate)
    return (
        f"{workload:<8}  {generation:<10}  {lane:<17}  {cpu:>7.3f}  {beside:>19}  {_shown(pipe):>6}  "
        f"{p50:>7.3f}  {_shown(alone):>7}  {p99:>7.2f}  {rate:>6.0f}"
    )


def starts_table(lanes: Sequence[Lane]) -> str:
    """One line for each lane: its start and its memory."""
    lines = [f"{'lane':<17}  {'cold start s':>12}  {'with state s':>12}  {'idle MB':>7}  {'loaded MB':>9}"]
    for lane in lanes:
        cold = f"{statistics.median(lane.cold_s):.2f}"
        warm = f"{statistics.median(lane.warm_s):.2f}" if lane.warm_s else "–"
        lines.append(f"{lane.name:<17}  {cold:>12}  {warm:>12}  {lane.idle_mb:>7.0f}  {lane.program.rss_mb():>9.0f}")
    return "\n".join(lines)


def marks(figures: Figures, tools: int, lanes: Sequence[Lane]) -> str:
    """Whether the marks are met, each with its figures."""
    lines: list[str] = []
    for generation in figures.generations:
        beside = partial(figures.ratios, lane=BRIDGE_PIPE, generation=generation, to=PIPE)
        ratios = [statistics.median(beside(echo_of(n), figure=cpu_ms)) for n in IN_FLIGHT]
        flights = ", ".join(map(str, IN_FLIGHT))
        lines.append(
            _line(f"{generation}: CPU at most {MARK_PIPE_RATIO} × the bare pipe at {flights}", MARK_PIPE_RATIO, *ratios)
        )
        busiest = echo_of(IN_FLIGHT[-1])
        http = figures.median(busiest, BRIDGE_HTTP, generation, cpu_ms)
        lines.append(_line(f"{generation}: {MARK_HTTP_MS} ms over HTTP at {IN_FLIGHT[-1]}", MARK_HTTP_MS, http))
        tails = [sample.p99_ms / sample.p50_ms for sample in figures.of(busiest, BRIDGE_PIPE, generation).values()]
        lines.append(
            _line(
                f"{generation}: p99 at most {MARK_TAIL_RATIO:g} × p50 at {IN_FLIGHT[-1]}",
                MARK_TAIL_RATIO,
                statistics.median(tails),
            )
        )
        rates = beside(LARGE, figure=lambda sample: sample.rate)
        lines.append(
            _line(
                f"{generation}: 1 MB at {MARK_LARGE_RATIO} × the pipe's rate or better",
                MARK_LARGE_RATIO,
                statistics.median(rates),
                least=True,
            )
        )
        listed = max(figures.median(LIST, lane, generation, cpu_ms) for lane in (BRIDGE_PIPE, BRIDGE_HTTP))
        lines.append(_line(f"{generation}: {tools:,} tools listed in {MARK_LIST_MS} ms of CPU", MARK_LIST_MS, listed))
    bridge = next(lane for lane in lanes if lane.name == BRIDGE_PIPE)
    lines.append(_line(f"{MARK_IDLE_MB} MB of memory, idle", MARK_IDLE_MB, bridge.idle_mb))
    lines.append(_line(f"first list {MARK_START_S} s after the start, with state", MARK_START_S, *bridge.warm_s))
    return "\n".join(lines)


def _line(what: str, mark: float, *figures: float, least: bool = False) -> str:
    met = all(figure >= mark if least else figure <= mark for figure in figures)
    return f"{what}: {'yes' if met else 'no'} ({', '.join(f'{figure:.3g}' for figure in figures)})"


def answers_line(checked: Checked) -> str:
    """How many answers were wrong, and the first of them."""
    line = f"wrong answers: {len(checked.wrong)} of {checked.answers:,}"
    return "\n".join([line, *checked.wrong[:5]])


def _shown(ratios: Iterable[float]) -> str:
    known = list(ratios)
    return _ratio(statistics.median(known)) if known else "–"


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"
