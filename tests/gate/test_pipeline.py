"""The gate as a whole: its order, its record of every call, and its dispatch."""

import time

import anyio
import pytest
from structlog.testing import capture_logs

from bridgehead.config import BackendSettings, LimitSettings
from bridgehead.core import BridgeError, Call, Outcome, Risk, Route
from bridgehead.core.errors import (
    BackendBusy,
    BackendTimeout,
    BackendUnavailable,
    ConfirmationRequired,
    Forbidden,
    InternalFailure,
    ProtocolFailure,
    ToolNotFound,
)
from bridgehead.gate import ORDER, Gate, Next
from bridgehead.gate.limits import Limits
from bridgehead.gate.stages.dispatch import Dispatch, Places
from tests.gate.parts import FAILED, FINE, Allowing, bench, call_of


def test_the_order_is_audit_authorise_validate_limit_confirm() -> None:
    assert [stage.__name__ for stage in ORDER] == ["Audit", "Authorise", "Validate", "Limit", "Confirm"]


async def test_the_first_stage_is_outermost_and_dispatch_innermost() -> None:
    seen: list[str] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        async def __call__(self, call: Call, proceed: Next) -> Outcome:
            seen.append(self.name)
            outcome = await proceed(call)
            seen.append(f"/{self.name}")
            return outcome

    async def dispatch(call: Call) -> Outcome:
        seen.append("dispatch")
        return FINE

    assert await Gate([Named("a"), Named("b")], dispatch).run(call_of("x", {})) is FINE
    assert seen == ["a", "b", "dispatch", "/b", "/a"]


async def test_a_call_reaches_its_backend_under_the_original_name() -> None:
    gate = bench()
    assert await gate.run() is FINE
    (call,) = gate.answering["fs"].calls
    assert call.route is not None
    assert (call.route.backend, call.route.name) == ("fs", "read")


@pytest.mark.parametrize(
    ("answer", "verdict", "code"),
    [
        (FINE, "ok", None),
        (FAILED, "tool_error", None),
        (Outcome({"resultType": "input_required"}), "input_required", None),
        (BackendUnavailable("gone"), "failed", "backend_unavailable"),
        (BackendTimeout("late"), "failed", "backend_timeout"),
        (ProtocolFailure("bad", rpc_code=-32000), "failed", "backend_error"),
    ],
)
async def test_the_record_says_what_came_of_a_call(
    answer: Outcome | BridgeError, verdict: str, code: str | None
) -> None:
    gate = bench(answer)
    if isinstance(answer, BridgeError):
        with pytest.raises(type(answer)):
            await gate.run(arguments={"path": "a"})
    else:
        await gate.run(arguments={"path": "a"})
    (record,) = gate.audit.records
    assert (record.verdict, record.code, record.backend) == (verdict, code, "fs")
    assert record.arguments == {"path": "a"}


async def test_a_refusal_is_recorded() -> None:
    gate = bench(policy=Allowing(Risk.READ))
    with pytest.raises(Forbidden):
        await gate.run()
    with pytest.raises(ToolNotFound):
        await gate.run("fs__nope")
    assert [(one.verdict, one.code, one.backend) for one in gate.audit.records] == [
        ("refused", "forbidden", "fs"),
        ("refused", "unknown_tool", None),
    ]


async def test_a_call_whose_caller_went_away_is_recorded_as_cancelled() -> None:
    gate = bench()

    class Forgetful:
        name = "fs"

        async def run(self, call: Call) -> Outcome:
            scope.cancel()
            await anyio.sleep_forever()
            return FINE

    gate.backends["fs"] = Forgetful()
    with anyio.CancelScope() as scope:
        await gate.run()
    assert [record.verdict for record in gate.audit.records] == ["cancelled"]


async def test_what_nobody_expected_reaches_the_caller_as_an_incident_only() -> None:
    gate = bench(RuntimeError("/home/owner/secret.txt"))
    with capture_logs() as logs, pytest.raises(InternalFailure) as caught:
        await gate.run()
    assert "secret.txt" not in caught.value.sentence()
    assert logs[0]["incident"] == caught.value.details["incident"]
    assert gate.audit.records[0].code == "internal"


async def test_secrets_in_arguments_are_not_recorded() -> None:
    gate = bench()
    await gate.run(arguments={"password": "hunter2", "path": "a"})
    assert gate.audit.records[0].arguments == {"password": "***", "path": "a"}


async def test_a_call_nobody_has_agreed_to_does_not_run() -> None:
    class Refusing:
        async def confirm(self, call: Call) -> None:
            raise ConfirmationRequired("not yet")

    gate = bench(confirmer=Refusing())
    with pytest.raises(ConfirmationRequired):
        await gate.run()
    assert not gate.answering["fs"].calls


async def test_a_backend_runs_no_more_calls_at_once_than_it_is_allowed() -> None:
    gate = bench(overrides={"fs": BackendSettings(command="x", concurrency=2)})
    running, most = 0, 0
    go = anyio.Event()

    class Slow:
        name = "fs"

        async def run(self, call: Call) -> Outcome:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await go.wait()
            running -= 1
            return FINE

    gate.backends["fs"] = Slow()
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(gate.run)
        await anyio.wait_all_tasks_blocked()
        go.set()
    assert most == 2
    assert len(gate.audit.records) == 5


async def test_a_place_given_back_goes_to_who_waited_longest_and_none_is_lost() -> None:
    places = Places(1)
    assert await places.take(0)
    assert not await places.take(0)
    order: list[int] = []

    async def wait(number: int) -> None:
        assert await places.take(60)
        order.append(number)
        places.give()

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(wait, number)
            await anyio.wait_all_tasks_blocked()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await places.take(60)
        places.give()
    assert order == [0, 1, 2]
    assert await places.take(0)


async def test_a_call_that_finds_no_place_in_time_is_told_that_the_backend_is_busy() -> None:
    limits = Limits(in_flight=1, queue_s=0)
    go = anyio.Event()

    class Slow:
        name = "fs"

        async def run(self, call: Call) -> Outcome:
            await go.wait()
            return FINE

    dispatch = Dispatch({"fs": Slow()}, limits)
    call = call_of("fs__read", {}, route=Route("fs", "read", {}))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(dispatch, call)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(BackendBusy):
            await dispatch(call)
        go.set()
    assert await dispatch(call) is FINE


async def test_a_backend_that_is_listed_but_gone_is_unavailable() -> None:
    gate = bench()
    gate.backends.clear()
    with pytest.raises(BackendUnavailable):
        await gate.run()


async def test_the_whole_gate_costs_little_on_a_small_call() -> None:
    """A budget ten times what was measured (about 20 µs): it fails on a mistake, not on a slow machine."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    gate = bench(schema=schema, limits=LimitSettings(calls_per_minute=1_000_000))
    count = 2000
    began = time.process_time()
    for _ in range(count):
        await gate.run(arguments={"path": "/etc/hosts"})
    assert (time.process_time() - began) / count < 600e-6
