"""How often, how stubbornly and how much."""

from typing import Any

import pytest

from bridgehead.catalog import BUILTIN, Listing
from bridgehead.config import BackendSettings, LimitSettings
from bridgehead.core import Caller, CallerId, Method, Outcome
from bridgehead.core.errors import (
    BackendTimeout,
    BackendUnavailable,
    BridgeError,
    LoopStopped,
    ProtocolFailure,
    RateLimited,
)
from tests.gate.parts import FAILED, FINE, Answering, Bench, DictShelf, bench, catalog_of, tool


async def attempts(gate: Bench, count: int, arguments: Any = None) -> list[str]:
    codes: list[str] = []
    for _ in range(count):
        try:
            outcome = await gate.run(arguments=arguments)
        except BridgeError as error:
            codes.append(error.code)
        else:
            codes.append("tool_error" if outcome.is_error else "ok")
    return codes


async def test_calls_past_the_rate_wait_for_the_bucket_to_fill() -> None:
    gate = bench(limits=LimitSettings(calls_per_minute=2))
    assert await attempts(gate, 3) == ["ok", "ok", "rate_limited"]
    gate.clock.seconds += 30
    assert await attempts(gate, 2) == ["ok", "rate_limited"]


async def test_one_callers_rate_is_not_anothers() -> None:
    gate = bench(limits=LimitSettings(calls_per_minute=1))
    await gate.run()
    await gate.run(caller=Caller(CallerId("other"), "other"))
    with pytest.raises(RateLimited) as caught:
        await gate.run()
    assert caught.value.details["retry_after_s"] == 60


async def test_the_third_identical_failing_call_is_stopped_and_not_run() -> None:
    gate = bench(FAILED)
    assert await attempts(gate, 4) == ["tool_error", "tool_error", "loop_stopped", "loop_stopped"]
    assert len(gate.answering["fs"].calls) == 2


async def test_a_protocol_error_counts_as_a_failure() -> None:
    gate = bench(ProtocolFailure("bad", rpc_code=-32602))
    assert await attempts(gate, 3) == ["backend_error", "backend_error", "loop_stopped"]


@pytest.mark.parametrize("error", [BackendUnavailable("gone"), BackendTimeout("late")])
async def test_what_may_mend_itself_is_never_stopped(error: BridgeError) -> None:
    gate = bench(error)
    assert "loop_stopped" not in await attempts(gate, 6)


async def test_other_arguments_end_the_row() -> None:
    gate = bench(FAILED)
    assert await attempts(gate, 2, {"a": 1}) == ["tool_error", "tool_error"]
    assert await attempts(gate, 1, {"a": 2}) == ["tool_error"]
    assert await attempts(gate, 1, {"a": 1}) == ["tool_error"]


async def test_a_success_ends_the_row() -> None:
    gate = bench(FAILED, FINE, FAILED)
    assert await attempts(gate, 5) == ["tool_error", "ok", "tool_error", "tool_error", "loop_stopped"]


async def test_a_stopped_call_is_run_again_after_the_window() -> None:
    gate = bench(FAILED, limits=LimitSettings(identical_failures_window_s=60.0))
    await attempts(gate, 3)
    gate.clock.seconds += 59
    assert await attempts(gate, 1) == ["loop_stopped"]
    gate.clock.seconds += 2
    assert await attempts(gate, 3) == ["tool_error", "tool_error", "loop_stopped"]


async def test_the_order_of_keys_does_not_make_a_call_another() -> None:
    gate = bench(FAILED)
    await gate.run(arguments={"a": 1, "b": 2})
    await gate.run(arguments={"b": 2, "a": 1})
    with pytest.raises(LoopStopped):
        await gate.run(arguments={"a": 1, "b": 2})


async def test_the_loop_breaker_can_be_switched_off() -> None:
    gate = bench(FAILED, limits=LimitSettings(identical_failures=0))
    assert await attempts(gate, 5) == ["tool_error"] * 5


async def test_failures_of_many_callers_do_not_pile_up() -> None:
    gate = bench(FAILED)
    for number in range(5000):
        await gate.run(caller=Caller(CallerId(f"c{number}"), "c"))
    assert await attempts(gate, 3) == ["tool_error", "tool_error", "loop_stopped"]


def long(text: str, **more: Any) -> Outcome:
    return Outcome({"content": [{"type": "text", "text": text}], **more}, is_error=more.get("isError", False))


async def test_a_result_over_the_cap_is_kept_whole_and_its_head_comes_back() -> None:
    text = "line\n" * 10_000
    gate = bench(long(text), limits=LimitSettings(result_bytes=40_000))
    outcome = await gate.run()
    head, notice = (block["text"] for block in outcome.result["content"])
    assert head == text[:16_384]
    assert gate.shelf.texts["handle-0"] == ("owner", text)
    assert "16384 of 50000 characters" in notice
    assert "50000 bytes in all" in notice
    assert '`read_result` with {"handle": "handle-0", "offset": 16384}' in notice


async def test_a_result_of_just_the_cap_is_sent_as_it_is() -> None:
    outcome = long("x" * 1000)
    size = len('{"content":[{"type":"text","text":""}]}') + 1000
    assert await bench(outcome, limits=LimitSettings(result_bytes=size)).run() is outcome
    assert await bench(outcome, limits=LimitSettings(result_bytes=size - 1)).run() is not outcome


async def test_a_tools_own_failure_stays_one_when_it_is_cut() -> None:
    outcome = await bench(long("x" * 5000, isError=True), limits=LimitSettings(result_bytes=1000)).run()
    assert outcome.is_error
    assert outcome.result["isError"] is True


async def test_structured_content_counts_and_is_said_to_be_left_out() -> None:
    gate = bench(long("short", structuredContent={"rows": ["x"] * 1000}), limits=LimitSettings(result_bytes=1000))
    outcome = await gate.run()
    assert "structuredContent" not in outcome.result
    assert "structuredContent was left out" in outcome.result["content"][-1]["text"]


async def test_a_result_with_more_than_text_is_kept_as_json() -> None:
    image = {"type": "image", "data": "A" * 5000, "mimeType": "image/png"}
    gate = bench(Outcome({"content": [image]}), limits=LimitSettings(result_bytes=1000))
    await gate.run()
    assert gate.shelf.texts["handle-0"][1].startswith('{"content":[{"type":"image"')


async def test_a_backends_own_cap_goes_before_the_general_one() -> None:
    overrides = {"fs": BackendSettings(command="x", result_bytes=100)}
    outcome = await bench(long("x" * 1000), overrides=overrides).run()
    assert "read_result" in outcome.result["content"][-1]["text"]


async def test_a_result_that_cannot_be_kept_says_that_its_rest_is_gone() -> None:
    gate = bench(long("x" * 5000), limits=LimitSettings(result_bytes=1000), shelf=DictShelf(full=True))
    outcome = await gate.run()
    assert "could not be kept" in outcome.result["content"][-1]["text"]


async def test_the_bridges_own_tools_are_not_put_on_the_shelf() -> None:
    """Pages of `read_result` would never end."""
    catalog = catalog_of({BUILTIN: Listing(tools=(tool("read_result"),))})
    gate = Bench({BUILTIN: Answering(BUILTIN, long("x" * 5000))}, catalog, limits=LimitSettings(result_bytes=1000))
    outcome = await gate.run("read_result")
    assert len(outcome.result["content"]) == 1


async def test_a_large_resource_comes_back_in_part_under_its_own_uri() -> None:
    catalog = catalog_of({"fs": Listing(resources=({"uri": "mem://1"},))})
    contents = Outcome({"contents": [{"uri": "mem://1", "text": "y" * 5000}]})
    gate = Bench({"fs": Answering("fs", contents)}, catalog, limits=LimitSettings(result_bytes=1000))
    outcome = await gate.run("mem://1", method=Method.RESOURCE)
    assert outcome.result["contents"][0]["uri"] == "mem://1"
    assert gate.shelf.texts["handle-0"][1] == "y" * 5000


async def test_text_that_only_python_can_hold_is_capped_like_any_other() -> None:
    outcome = await bench(long("\ud800" * 5000), limits=LimitSettings(result_bytes=1000)).run()
    assert len(outcome.result["content"]) == 2
