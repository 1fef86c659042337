"""What leaves the gate besides results, and what it records, is told without the values of secrets."""

from __future__ import annotations

from typing import Any

import pytest

from bridgehead.config import Concealment, Secret
from bridgehead.core import BridgeError
from bridgehead.core.errors import BackendUnavailable, ProtocolFailure
from bridgehead.gate.redact import MAX_TEXT
from tests.gate.parts import FINE, bench

VALUE = "hunter2-hunter2-hunter2"


def conceal() -> Concealment:
    known = Concealment()
    known.learn([Secret(VALUE)])
    return known


def deep(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "error",
    [
        BackendUnavailable(f"Its last words: {VALUE}", hint=f"use {VALUE}", details={VALUE: [{"a": (VALUE,)}]}),
        ProtocolFailure(f"401 for {VALUE}", rpc_code=-32000, data={"url": f"https://x/?key={VALUE}", VALUE: 1}),
        ProtocolFailure("401", rpc_code=-32000, data=VALUE),
        ProtocolFailure("401", rpc_code=-32000, data=deep(VALUE, 5_000)),
    ],
    ids=["ours", "the-servers", "bare-data", "very-deep-data"],
)
async def test_an_error_that_leaves_holds_no_value(error: BridgeError) -> None:
    gate = bench(error, conceal=conceal())

    with pytest.raises(type(error)) as caught:
        await gate.run()

    left = caught.value
    shown = f"{left} {left.sentence()} {left.as_dict()}"
    shown += "" if not isinstance(left, ProtocolFailure) else str(left.data)
    assert VALUE not in shown
    assert left.kind is error.kind


async def test_an_error_is_relayed_as_it_is_where_there_is_nothing_to_conceal() -> None:
    data = {"tries": [1, 2.5, None, True, "three"], "deep": deep("x", 20)}
    gate = bench(ProtocolFailure("no", rpc_code=-32000, data=data), conceal=conceal())

    with pytest.raises(ProtocolFailure) as caught:
        await gate.run()

    assert (caught.value.message, caught.value.rpc_code, caught.value.data) == ("no", -32000, data)


@pytest.mark.parametrize(
    "arguments",
    [
        {"x": VALUE},
        {"x": f"mysql://{VALUE}/db"},
        {VALUE: 1},
        {"x": [{"y": VALUE}]},
        {"x": "." * (MAX_TEXT - 9) + VALUE},
    ],
    ids=["whole", "within", "key", "nested", "across-the-cut"],
)
async def test_a_record_holds_no_value_that_a_caller_sent(arguments: dict[str, Any]) -> None:
    gate = bench(conceal=conceal())

    assert await gate.run(arguments=arguments) is FINE

    (record,) = gate.audit.records
    assert "hunter2" not in str(record)
    assert gate.answering["fs"].calls[0].arguments == arguments, "the backend gets what was sent"


async def test_a_target_is_recorded_without_a_value() -> None:
    gate = bench(conceal=conceal())

    with pytest.raises(BridgeError) as caught:
        await gate.run(f"fs__{VALUE}")

    assert "hunter2" not in str(gate.audit.records) + caught.value.sentence()
