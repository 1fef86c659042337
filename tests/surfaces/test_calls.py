"""`GET /api/calls/stream`: who may follow, what is said, and that nothing is left behind."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.testclient import TestClient

from bridgehead.core.errors import RateLimited, Unauthenticated
from bridgehead.surfaces import calls
from bridgehead.surfaces.calls import LiveCalls, Reader, calls_routes
from bridgehead.surfaces.front import _ours
from tests.gate.test_broadcast import RECORD


class Scripted:
    """A reader that gives what it was given, then ends; or never says anything."""

    def __init__(self, *takes: Any, silent: bool = False) -> None:
        self.takes = [*takes, None]
        self.silent = silent
        self.following = 0

    async def take(self) -> Any:
        if self.silent:
            await anyio.sleep_forever()
        return self.takes.pop(0)

    @contextmanager
    def follow(self) -> Generator[Reader]:
        self.following += 1
        try:
            yield self
        finally:
            self.following -= 1


class Full(Scripted):
    @contextmanager
    def follow(self) -> Generator[Reader]:
        if self.takes:
            raise RateLimited("There are readers enough.")
        yield self


def authorised(request: Request) -> None:
    if request.headers.get("authorization") != "Bearer good":
        raise Unauthenticated("A token is needed.")


def client(live: LiveCalls) -> TestClient:
    return TestClient(Starlette(routes=calls_routes(live, authorised), exception_handlers={Exception: _ours}))


GOOD = {"Authorization": "Bearer good"}


def test_calls_come_as_events_with_what_was_lost_before_them() -> None:
    live = Scripted(([RECORD], 0), ([RECORD], 3))

    answer = client(live).get("/api/calls/stream", headers=GOOD)

    shown = (
        'event: call\ndata: {"at":"2026-01-01T00:00:00+00:00","call_id":"call_0","caller":"owner","surface":"mcp",'
        '"method":"tools/call","target":"fs__read","group":null,"backend":"fs","verdict":"ok","code":null,"seconds":0.1}'
        "\n\n"
    )
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert "content-length" not in answer.headers
    assert answer.text == f': calls follow\n\n{shown}event: lost\ndata: {{"lost":3}}\n\n{shown}'
    assert live.following == 0


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer bad"}])
def test_nobody_follows_without_a_credential(headers: dict[str, str]) -> None:
    live = Scripted()

    with pytest.raises(Unauthenticated):
        client(live).get("/api/calls/stream", headers=headers)
    assert live.following == 0


def test_too_many_readers_are_refused_before_the_stream_begins() -> None:
    with pytest.raises(RateLimited):
        client(Full()).get("/api/calls/stream", headers=GOOD)


async def test_a_silent_stream_is_kept_alive_and_ends_with_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_KEEP_ALIVE_S", 0.01)
    live = Scripted(silent=True)
    (route,) = calls_routes(live, lambda _request: None)
    sent: list[bytes] = []
    enough = anyio.Event()

    async def receive() -> dict[str, Any]:
        await enough.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))
        if sent.count(b": keep-alive\n\n") == 2:
            enough.set()

    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/api/calls/stream",
        "headers": [],
        "query_string": b"",
    }
    with anyio.fail_after(10):
        await route.app(scope, receive, send)

    assert sent[1] == b": calls follow\n\n"
    assert live.following == 0
