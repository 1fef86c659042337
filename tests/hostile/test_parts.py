"""Parts of a backend by themselves, where a whole bridge would hide what they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from bridgehead.backends.mcp.changes import Changes
from bridgehead.backends.mcp.connection import InFlight
from bridgehead.backends.mcp.rounds import is_repeatable
from bridgehead.backends.mcp.sessions import MOST_CALLERS_OWN, Sessions
from bridgehead.catalog import BackendStatus, Listing
from bridgehead.core import Call, Caller, CallerId, CallId, Method, Risk, Route, Silence
from bridgehead.core.errors import BackendBusy
from tests.spine.test_isolation import Agreement, Ready, Source

NOTHING: Mapping[str, Any] = {}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def main_session(source: Source) -> Ready:
    return Ready("b", source.open, agreement=Agreement(), capabilities={})  # pyright: ignore[reportArgumentType]


async def test_for_one_caller_too_many_the_session_that_was_idle_longest_ends() -> None:
    source = Source()
    sessions, main = Sessions(source), main_session(source)
    for number in range(MOST_CALLERS_OWN):
        async with sessions.lease(main, Silence(), number):
            pass
        await anyio.sleep(0.001)
    async with sessions.lease(main, Silence(), 0) as first:
        pass
    async with sessions.lease(main, Silence(), "one more"):
        pass

    assert [number for number, one in enumerate(source.opened) if not one.is_open] == [1]
    assert first is source.opened[0]


async def test_for_one_caller_too_many_none_ends_that_has_a_call() -> None:
    source = Source()
    sessions, main = Sessions(source), main_session(source)
    async with anyio.create_task_group() as tasks:

        async def hold(number: int) -> None:
            async with sessions.lease(main, Silence(), number):
                await anyio.sleep_forever()

        for number in range(MOST_CALLERS_OWN):
            tasks.start_soon(hold, number)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(BackendBusy):
            async with sessions.lease(main, Silence(), "one more"):
                pass
        async with sessions.lease(main, Silence(), 3) as shared:
            assert shared.leases == 2, "the calls of one caller share its session"
        tasks.cancel_scope.cancel()
    assert all(one.is_open for one in source.opened)


async def test_idle_sessions_end_and_those_with_a_call_stay() -> None:
    source = Source()
    sessions, main = Sessions(source, idle_limit_s=0.05), main_session(source)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sessions.end_idle_forever)
        async with sessions.lease(main, Silence(), "busy") as busy:
            async with sessions.lease(main, Silence(), "idle") as idle:
                pass
            with anyio.fail_after(5):
                await idle.wait_closed()
            assert busy.is_open
        tasks.cancel_scope.cancel()


class Person(Silence):
    """Answers when told to."""

    can_ask = True

    def __init__(self) -> None:
        self.answer = anyio.Event()

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        await self.answer.wait()
        return {}


async def test_time_stands_still_until_the_last_of_several_questions_is_answered() -> None:
    slow, quick = Person(), Person()
    flight = InFlight(slow, longest_s=60)
    flight.begin(anyio.current_time(), 5)
    deadline = flight.deadline
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(flight.ask, "elicitation/create", NOTHING)
        await anyio.wait_all_tasks_blocked()
        flight.channel = quick
        tasks.start_soon(flight.ask, "elicitation/create", NOTHING)
        await anyio.wait_all_tasks_blocked()
        quick.answer.set()
        await anyio.wait_all_tasks_blocked()
        flight.extend()
        assert flight.deadline == float("inf")
        slow.answer.set()
    assert deadline <= flight.deadline < deadline + 5


class Deaf(Silence):
    """Takes what it is told only once it is let."""

    log_level = "info"

    def __init__(self) -> None:
        self.heard: list[Mapping[str, Any]] = []

    async def log(self, params: Mapping[str, Any]) -> None:
        self.heard.append(params)


async def test_a_caller_that_took_nothing_in_time_is_told_how_much_it_missed() -> None:
    caller = Deaf()
    flight = InFlight(caller)
    for number in range(300):
        flight.hear("notifications/message", {"level": "info", "data": number})
    await flight.tell()

    assert caller.heard[0]["data"].startswith("44 earlier messages about this call were dropped")
    assert [each["data"] for each in caller.heard[1:]] == list(range(44, 300))


class Server:
    """A session of the older generation that only notes what it is asked."""

    is_modern = False

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.session = self

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        self.asked.append((method, params.get("uri")))
        return {}

    async def run(self, method: str, params: Mapping[str, Any], **_: Any) -> None:
        self.asked.append((method, params.get("uri")))


class News:
    """A shelf that notes what is announced."""

    def __init__(self) -> None:
        self.announced: list[str] = []

    def publish(self, backend: str, listing: Listing) -> None:
        """Nothing is listed."""

    def report(self, status: BackendStatus) -> None:
        """Nothing is reported."""

    def announce(self, backend: str, uri: str) -> None:
        self.announced.append(uri)


def call(method: Method, target: str = "note://1", definition: Mapping[str, Any] | None = None) -> Call:
    risk = Risk.READ if definition and definition["annotations"].get("readOnlyHint") else Risk.DESTRUCTIVE
    route = Route("b", target, definition or {}, risk)
    return Call(CallId("c"), Caller(CallerId("o"), "owner"), method, target, {}, Silence(), "test", route=route)


async def test_a_server_that_came_back_is_told_again_what_is_watched() -> None:
    news, old, new = News(), Server(), Server()
    changes = Changes("b", news)
    for method in (Method.SUBSCRIBE, Method.SUBSCRIBE, Method.UNSUBSCRIBE):
        await changes.subscribe(call(method), old, 5)  # pyright: ignore[reportArgumentType]
    await changes.watch_again(new)  # pyright: ignore[reportArgumentType]

    assert old.asked == [(Method.SUBSCRIBE, "note://1")]
    assert new.asked == [(Method.SUBSCRIBE, "note://1")]
    assert news.announced == ["note://1"]


@pytest.mark.parametrize(
    ("annotations", "repeatable"),
    [({}, False), ({"readOnlyHint": True}, True), ({"idempotentHint": True}, True), ({"idempotentHint": "yes"}, False)],
)
def test_a_tool_may_be_repeated_only_where_it_says_so(annotations: dict[str, Any], repeatable: bool) -> None:
    assert is_repeatable(call(Method.TOOL, "t", {"annotations": annotations})) is repeatable
