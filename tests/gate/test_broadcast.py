"""Calls as they happen: every reader gets each record once, and none of them can hold a call up."""

from dataclasses import replace
from datetime import UTC, datetime

import anyio
import pytest

from bridgehead.core.errors import RateLimited
from bridgehead.gate import AuditRecord, Broadcast
from bridgehead.gate.broadcast import MOST_READERS, QUEUED
from tests.gate.parts import ListAudit

RECORD = AuditRecord(
    call_id="call_0",
    at=datetime(2026, 1, 1, tzinfo=UTC),
    caller="owner",
    surface="mcp",
    method="tools/call",
    target="fs__read",
    group=None,
    backend="fs",
    arguments={},
    verdict="ok",
    code=None,
    duration_s=0.1,
)


def numbered(number: int) -> AuditRecord:
    return replace(RECORD, call_id=f"call_{number}")


async def test_a_record_goes_to_the_log_and_to_every_reader() -> None:
    log = ListAudit()
    live = Broadcast(log)
    live.append(numbered(0))

    with live.follow() as one, live.follow() as other:
        live.append(numbered(1))
        live.append(numbered(2))
        assert await one.take() == ([numbered(1), numbered(2)], 0)
        assert await other.take() == ([numbered(1), numbered(2)], 0)
    live.append(numbered(3))

    assert log.records == [numbered(number) for number in range(4)]


async def test_a_reader_that_waits_is_woken_and_let_go_when_the_bridge_stops() -> None:
    live = Broadcast(ListAudit())
    taken: list[object] = []

    async def read() -> None:
        with live.follow() as reader:
            while (got := await reader.take()) is not None:
                taken.append(got)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            live.append(numbered(1))
            await anyio.wait_all_tasks_blocked()
            live.append(numbered(2))
            live.end()

    assert taken == [([numbered(1)], 0), ([numbered(2)], 0)]


async def test_a_slow_reader_loses_the_oldest_and_is_told_how_many() -> None:
    log = ListAudit()
    live = Broadcast(log)

    with live.follow() as reader:
        for number in range(QUEUED + 5):
            live.append(numbered(number))
        got = await reader.take()
        live.append(RECORD)

        assert got is not None
        assert (len(got[0]), got[0][0], got[1]) == (QUEUED, numbered(5), 5)
        assert await reader.take() == ([RECORD], 0)
    assert len(log.records) == QUEUED + 6


async def test_there_are_only_so_many_readers_and_a_place_is_given_back() -> None:
    live = Broadcast(ListAudit())
    held = [live.follow() for _ in range(MOST_READERS)]
    for each in held:
        each.__enter__()

    with pytest.raises(RateLimited), live.follow():
        pass
    held[0].__exit__(None, None, None)
    with live.follow():
        pass
