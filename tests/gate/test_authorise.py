"""Names are looked up in the caller's view, and nowhere else."""

from typing import Any

import pytest

from bridgehead.catalog import Listing
from bridgehead.config import GroupMember, GroupSettings
from bridgehead.core import Call, Method, Route
from bridgehead.core.call import Risk
from bridgehead.core.errors import (
    BridgeError,
    Forbidden,
    GroupNotFound,
    PromptNotFound,
    RequestInvalid,
    ResourceNotFound,
    ToolNotFound,
)
from tests.gate.parts import Allowing, Answering, Bench, bench, call_of, catalog_of, tool

RESOURCES: dict[str, Any] = {"resources": {}}


def routed(gate: Bench, backend: str) -> Route:
    route = gate.answering[backend].calls[-1].route
    assert route is not None
    return route


def two(first: Listing, second: Listing, **rules: Any) -> Bench:
    return Bench({"a": Answering("a"), "b": Answering("b")}, catalog_of({"a": first, "b": second}, **rules))


def grouped(*, open_: bool, shut: bool) -> dict[str, GroupSettings]:
    return {
        "open": GroupSettings(enabled=open_, members=(GroupMember(backend="a"),)),
        "shut": GroupSettings(enabled=shut, members=(GroupMember(backend="b"),)),
    }


async def failure(gate: Bench, call: Call) -> BridgeError:
    with pytest.raises(BridgeError) as caught:
        await gate.gate.run(call)
    return caught.value


async def test_a_hidden_tool_and_one_that_does_not_exist_look_alike() -> None:
    gate = two(Listing(tools=(tool("x"),)), Listing(tools=(tool("secret"),)), groups=grouped(open_=True, shut=False))
    hidden = await failure(gate, call_of("b__secret", {}))
    missing = await failure(gate, call_of("b__sesame", {}))
    assert isinstance(hidden, ToolNotFound)
    assert hidden.sentence().replace("secret", "sesame") == missing.sentence()


async def test_a_group_confines_calls_and_not_only_lists() -> None:
    gate = two(Listing(tools=(tool("x"),)), Listing(tools=(tool("y"),)), groups=grouped(open_=True, shut=True))
    await gate.run("b__y", group="shut")
    with pytest.raises(ToolNotFound):
        await gate.run("b__y", group="open")


@pytest.mark.parametrize("group", ["shut", "nowhere", ""])
async def test_a_group_that_is_off_does_not_exist(group: str) -> None:
    gate = two(Listing(), Listing(), groups=grouped(open_=True, shut=False))
    with pytest.raises(GroupNotFound):
        await gate.run("a__x", group=group)


async def test_a_name_that_is_nearly_right_is_suggested_and_not_run() -> None:
    gate = bench()
    for near in ("read", "fs_read", "FS__READ", "fs__raed"):
        error = await failure(gate, call_of(near, {}))
        assert "fs__read" in (error.hint or "")
        assert '"groups"' in (error.hint or "")
    assert not gate.answering["fs"].calls


async def test_a_name_as_long_as_a_book_is_refused_in_one_sentence() -> None:
    error = await failure(bench(), call_of("x" * 1_000_000, {}))
    assert len(error.sentence()) < 400


async def test_what_a_caller_may_do_is_decided_by_the_risk() -> None:
    gate = bench(policy=Allowing(Risk.READ))
    with pytest.raises(Forbidden):
        await gate.run()


async def test_a_listed_resource_goes_to_its_backend() -> None:
    gate = two(Listing(resources=({"uri": "mem://1"},)), Listing())
    await gate.run("mem://1", method=Method.RESOURCE)
    assert routed(gate, "a").name == "mem://1"


async def test_a_clashing_resource_is_read_under_the_uri_its_backend_knows() -> None:
    same = Listing(resources=({"uri": "mem://1"},), templates=({"uriTemplate": "mem://t/{id}"},))
    gate = two(same, same)
    await gate.run("b+mem://1", method=Method.RESOURCE)
    assert routed(gate, "b").name == "mem://1"
    await gate.run("b+mem://t/7", method=Method.SUBSCRIBE)
    assert routed(gate, "b").name == "mem://t/7"
    await gate.run("mem://t/7", method=Method.RESOURCE)
    assert routed(gate, "a").name == "mem://t/7"


async def test_an_unlisted_resource_goes_to_the_only_backend_that_has_any() -> None:
    gate = two(Listing(tools=(tool("x"),)), Listing(capabilities=RESOURCES))
    await gate.run("odd://x", method=Method.RESOURCE)
    assert routed(gate, "b").name == "odd://x"


async def test_an_unlisted_resource_goes_to_the_backend_that_lists_its_scheme() -> None:
    gate = two(
        Listing(resources=({"uri": "mem://1"},), capabilities=RESOURCES),
        Listing(templates=({"uriTemplate": "db://{t}/rows"},), capabilities=RESOURCES),
    )
    await gate.run("db://t", method=Method.RESOURCE)
    assert routed(gate, "b").name == "db://t"
    with pytest.raises(ResourceNotFound):
        await gate.run("odd://x", method=Method.RESOURCE)


async def test_an_unlisted_resource_that_two_could_have_is_not_guessed() -> None:
    both = [Listing(resources=({"uri": f"mem://{n}"},), capabilities=RESOURCES) for n in (1, 2)]
    gate = two(*both)
    with pytest.raises(ResourceNotFound):
        await gate.run("mem://3", method=Method.RESOURCE)


async def test_a_prompt_is_found_by_its_exposed_name() -> None:
    gate = two(Listing(prompts=({"name": "greet"},)), Listing())
    await gate.run("a__greet", method=Method.PROMPT)
    assert routed(gate, "a").name == "greet"
    with pytest.raises(PromptNotFound):
        await gate.run("greet", method=Method.PROMPT)


async def test_a_completion_goes_where_its_prompt_or_template_lives() -> None:
    gate = two(Listing(prompts=({"name": "greet"},)), Listing(templates=({"uriTemplate": "db://{t}"},)))
    await gate.run("-", {"ref": {"type": "ref/prompt", "name": "a__greet"}}, method=Method.COMPLETE)
    assert routed(gate, "a").name == "greet"
    await gate.run("-", {"ref": {"type": "ref/resource", "uri": "db://{t}"}}, method=Method.COMPLETE)
    assert routed(gate, "b").name == "db://{t}"


@pytest.mark.parametrize("ref", [None, 3, {}, {"type": "ref/prompt"}, {"type": "ref/prompt", "name": 3}])
async def test_a_completion_for_nothing_is_refused(ref: object) -> None:
    gate = bench()
    with pytest.raises(RequestInvalid):
        await gate.run("-", {"ref": ref}, method=Method.COMPLETE)
