"""How backends get up, and how those that do not are told of."""

from __future__ import annotations

import socket
import time
import tomllib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridgehead.backends.mcp.starts import BREAK_AFTER, LONG_PAUSE_S, Starts, pause_s
from tests.hostile.bench import code, noted, rough, said
from tests.spine.bridge import Bridge, running_bridge, wait_until


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        yield silent.getsockname()[1]


def test_bad_backends_beside_a_good_one_cost_it_nothing_and_are_named(tmp_path: Path, silent_port: int) -> None:
    config = (
        rough("good")
        + rough("exits", "exit-3")
        + rough("mute", "mute", more="start_timeout_s = 30")
        + '[backends.dead]\ncommand = "no-such-program-anywhere"\n'
        + '[backends.refuses]\nurl = "http://127.0.0.1:9/mcp"\n'
        + f'[backends.silent]\nurl = "http://127.0.0.1:{silent_port}/mcp"\nstart_timeout_s = 30\n'
    )
    with running_bridge(tmp_path, config) as bridge:
        began = time.monotonic()
        wait_until(lambda: "good__read" in bridge.tools())
        wait_until(lambda: bridge.backend("exits")["cause"] is not None)
        # Against a machine that is busy with other things; in itself it is a tenth of that.
        assert time.monotonic() - began < 3
        assert said(bridge.call("good__read")) == "read"
        assert "exited with code 3" in bridge.backend("exits")["cause"]
        assert "my licence has run out" in bridge.get("/health").text
        wait_until(lambda: bridge.backend("dead")["state"] == "down" and bridge.backend("refuses")["state"] == "down")
        down = bridge.backend("dead")
        assert "no-such-program-anywhere" in down["cause"]
        assert down["next_try"] > down["since"]
        assert bridge.backend("mute")["state"] == bridge.backend("silent")["state"] == "starting"


def test_a_killed_server_is_back_within_a_second_and_a_reading_call_meanwhile_waits_for_it(tmp_path: Path) -> None:
    with running_bridge(tmp_path, rough("b", more="timeout_s = 10")) as bridge:
        bridge.wait_ready("b")
        took: list[float] = []
        for _ in range(3):
            bridge.call("b__die")
            began = time.monotonic()
            assert said(bridge.call("b__read", {"text": "back"})) == "back"
            took.append(time.monotonic() - began)
        assert min(took) < 1


def test_what_may_have_run_is_not_repeated(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with running_bridge(tmp_path, rough("b", journal=journal)) as bridge:
        bridge.wait_ready("b")
        answer = bridge.call("b__die")
        assert code(answer) == "backend_unavailable"
        assert "may or may not have run" in said(answer)
        bridge.wait_ready("b")
        assert [line["call"] for line in noted(journal) if "call" in line] == ["die"]


def test_a_call_to_a_backend_that_is_down_is_answered_at_once_and_has_it_tried(tmp_path: Path) -> None:
    """It is listed from before, and its program is gone."""
    journal, program = tmp_path / "journal", tmp_path / "program"
    program.write_text("#!/bin/sh\nexec " + " ".join(_command(rough("b", journal=journal))) + "\n")
    program.chmod(0o700)
    config = f'[backends.b]\ncommand = "{program}"\n'
    with running_bridge(tmp_path, config) as bridge:
        bridge.wait_ready("b")
        program.chmod(0o600)
        bridge.call("b__die")
        wait_until(lambda: _pause_of(bridge) > 2)
        began = time.monotonic()
        answer = bridge.call("b__read")
        assert time.monotonic() - began < 2
        assert "tried again" in said(answer)
        assert "permission denied" in said(answer)
        program.chmod(0o700)
        # The call itself has it tried; the pause would be longer.
        wait_until(lambda: code(bridge.call("b__read")) is None, within_s=10)


def _command(config: str) -> list[str]:
    (backend,) = tomllib.loads(config)["backends"].values()
    return [backend["command"], *backend["args"]]


def _pause_of(bridge: Bridge) -> float:
    down = bridge.backend("b")
    if down["next_try"] is None:
        return 0
    return (datetime.fromisoformat(down["next_try"]) - datetime.fromisoformat(down["since"])).total_seconds()


def test_pauses_double_then_stay_long_and_never_fall_together() -> None:
    whole = [pause_s(failures, lambda: 0.5) for failures in range(1, BREAK_AFTER + 3)]

    assert whole[:4] == pytest.approx([0.2, 0.4, 0.8, 1.6])
    assert whole[BREAK_AFTER - 1 :] == pytest.approx([LONG_PAUSE_S] * 3)
    assert len({pause_s(5) for _ in range(20)}) > 1


async def test_only_so_many_start_at_a_time_and_who_was_ready_before_goes_first() -> None:
    starts, order = Starts(2), list[Any]()
    first, second = await starts.turn(urgent=False), await starts.turn(urgent=False)

    async def start(name: str, *, urgent: bool) -> None:
        turn = await starts.turn(urgent=urgent)
        order.append(name)
        turn.end()
        turn.end()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: start("new", urgent=False))
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(lambda: start("returning", urgent=True))
        await anyio.wait_all_tasks_blocked()
        assert order == []
        first.end()
        second.end()
    assert order == ["returning", "new"]
    with anyio.fail_after(1):
        await starts.turn(urgent=False)
        await starts.turn(urgent=False)


async def test_one_that_leaves_while_it_waits_takes_no_place() -> None:
    starts = Starts(1)
    held = await starts.turn(urgent=False)
    with anyio.move_on_after(0.01):
        await starts.turn(urgent=False)
    held.end()
    with anyio.fail_after(1):
        await starts.turn(urgent=False)
