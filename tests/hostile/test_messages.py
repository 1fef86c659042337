"""What a server writes, well or badly, harms no other answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.hostile.bench import code, rough, said
from tests.hostile.servers.rough import NAMES, TEXT
from tests.spine.bridge import Bridge, running_bridge, wait_until


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    whole = "result_bytes = 40_000_000\n"
    config = "".join(
        [
            rough("good"),
            rough("r", more=whole),
            rough("noisy"),
            rough("flooding"),
            rough("deaf"),
            rough("endless", "new-cursors"),
            rough('"awslabs.aws-documentation-mcp-server-with-a-very-long-name"', "names"),
        ]
    )
    with running_bridge(tmp_path_factory.mktemp("bridge"), config) as running:
        running.wait_ready("good", "r", "noisy", "flooding", "deaf")
        yield running


@pytest.mark.parametrize(("size", "step"), [(70_000, 4_093), (70_000, 7), (12 << 20, 65_521)])
def test_a_long_line_arrives_whole_wherever_it_is_split(bridge: Bridge, size: int, step: int) -> None:
    """The steps fall within characters of two, three and four bytes."""
    answer = bridge.call("r__big", {"bytes": size, "step": step})

    assert said(answer) == TEXT * (size // len(TEXT.encode()))


def test_every_tool_can_be_called_whatever_it_is_called(bridge: Bridge) -> None:
    bridge.wait_ready("awslabs.aws-documentation-mcp-server-with-a-very-long-name")
    shown = [name for name in bridge.tools() if name.startswith("awslabs")]

    assert len(set(shown)) == len(NAMES)
    assert all(len(name) <= 64 for name in shown)
    assert all(name.replace("_", "").replace("-", "").isalnum() and name.isascii() for name in shown)
    assert sorted(said(bridge.call(name)) for name in shown) == sorted(NAMES)


def test_noise_around_an_answer_is_passed_over(bridge: Bridge) -> None:
    assert said(bridge.call("noisy__noise")) == "said"
    assert said(bridge.call("noisy__read", {"text": "still there"})) == "still there"
    assert bridge.backend("noisy")["restarts"] == 0
    wait_until(lambda: bridge.backend("noisy")["skipped_lines"] >= 7)
    assert "(on standard output)" in bridge.get("/health").text


@pytest.mark.parametrize("to", ["stdout", "stderr"])
def test_a_flood_drowns_neither_its_own_answer_nor_anyone_elses(bridge: Bridge, to: str) -> None:
    before = bridge.log.stat().st_size
    with ThreadPoolExecutor() as threads:
        flooding = threads.submit(bridge.call, "flooding__flood", {"to": to})
        assert said(bridge.call("good__read", {"text": "dry"})) == "dry"
        assert said(flooding.result()) == "flooded"
    assert bridge.log.stat().st_size - before < 1_000_000


def test_a_call_to_a_server_that_stopped_reading_ends_soon_and_the_server_is_replaced(bridge: Bridge) -> None:
    assert said(bridge.call("deaf__deaf")) == "not listening any more"
    began = time.monotonic()
    answer = bridge.call("deaf__write")
    assert time.monotonic() - began < 8
    assert "no longer reads its input" in said(answer)
    wait_until(lambda: bridge.backend("deaf")["restarts"] == 1)
    assert said(bridge.call("deaf__read", {"text": "heard"})) == "heard"


def test_a_list_that_never_ends_is_cut_off_and_costs_nobody_else(bridge: Bridge) -> None:
    bridge.wait_ready("endless")
    assert said(bridge.call("good__read")) == "read"
    assert "a list has no end" in bridge.log.read_text()


def test_a_client_that_leaves_ends_its_own_call_and_nothing_else(bridge: Bridge) -> None:
    with ThreadPoolExecutor() as threads:
        left = threads.submit(bridge.modern, "tools/call", {"name": "r__hang", "arguments": {}}, timeout_s=0.5)
        stays = threads.submit(bridge.call, "r__sleep", {"seconds": 1})
        assert left.exception() is not None
        assert said(stays.result()) == "slept"
    assert "r__read" in bridge.tools()
    assert code(bridge.call("r__read")) is None
    assert bridge.backend("r")["restarts"] == 0
