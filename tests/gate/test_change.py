"""The gate's configuration changes between two calls, and every call ends under the one that it began with."""

from __future__ import annotations

import anyio
import pytest

from bridgehead.config import LimitSettings
from bridgehead.core import Call, Outcome
from bridgehead.core.errors import BackendBusy, LoopStopped, RateLimited
from bridgehead.gate import Limits
from bridgehead.gate.stages.dispatch import Places
from tests.gate.parts import FAILED, FINE, Answering, bench

pytestmark = pytest.mark.anyio


class Waiting:
    """A backend whose calls wait until they are let go, and a confirmer that waits likewise."""

    name = "fs"

    def __init__(self) -> None:
        self.go = anyio.Event()
        self.running = 0

    async def run(self, call: Call) -> Outcome:
        self.running += 1
        await self.go.wait()
        self.running -= 1
        return FINE

    async def confirm(self, call: Call) -> None:
        await self.go.wait()


async def test_a_call_that_waits_for_a_person_runs_in_the_backend_it_was_meant_for() -> None:
    """Agreed was a call of the old backend, whatever bears its name by then."""
    person = Waiting()
    gate = bench(confirmer=person)
    other = Answering("fs")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gate.run)
        await anyio.wait_all_tasks_blocked()
        gate.gate.change({"fs": other}, Limits())
        person.go.set()
    assert len(gate.answering["fs"].calls) == 1
    await gate.run()
    assert len(other.calls) == 1


async def test_a_backend_that_stays_keeps_count_of_its_running_calls_under_another_limit() -> None:
    backend = Waiting()
    gate = bench()
    gate.gate.change({"fs": backend}, Limits(in_flight=3))
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(gate.run)
        await anyio.wait_all_tasks_blocked()
        gate.gate.change({"fs": backend}, Limits(in_flight=3, queue_s=0))
        with pytest.raises(BackendBusy):
            await gate.run()
        gate.gate.change({"fs": backend}, Limits(in_flight=4, queue_s=0))
        tasks.start_soon(gate.run)
        await anyio.wait_all_tasks_blocked()
        assert backend.running == 4
        backend.go.set()


async def test_another_backend_of_the_same_name_begins_with_all_its_places() -> None:
    before, after = Waiting(), Waiting()
    gate = bench()
    limits = Limits(in_flight=1, queue_s=0)
    gate.gate.change({"fs": before}, limits)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gate.run)
        await anyio.wait_all_tasks_blocked()
        gate.gate.change({"fs": after}, limits)
        tasks.start_soon(gate.run)
        await anyio.wait_all_tasks_blocked()
        assert (before.running, after.running) == (1, 1)
        before.go.set()
        after.go.set()


async def test_fewer_places_hold_as_soon_as_calls_end_and_more_are_taken_by_those_who_wait() -> None:
    places = Places(3)
    for _ in range(3):
        assert await places.take(0)
    places.resize(1)
    places.give()
    places.give()
    assert not await places.take(0)
    taken: list[bool] = []

    async def wait() -> None:
        taken.append(await places.take(60))

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert not taken
        places.resize(2)
        await anyio.wait_all_tasks_blocked()
        assert taken == [True]
        places.give()
    assert taken == [True, True]


async def test_what_was_used_up_and_what_failed_is_remembered() -> None:
    gate = bench(FINE, FINE, FAILED, limits=LimitSettings(calls_per_minute=2))
    await gate.run()
    gate.gate.change(gate.answering, Limits(calls_per_minute=2))
    await gate.run()
    with pytest.raises(RateLimited):
        await gate.run()
    gate.gate.change(gate.answering, Limits())
    for _ in range(2):
        assert (await gate.run()).is_error
        gate.gate.change(gate.answering, Limits())
    with pytest.raises(LoopStopped):
        await gate.run()
