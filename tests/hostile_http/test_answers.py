"""What a server may answer, and what comes of it: for both ways to call, and for the calls beside it."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from bridgehead.core.errors import BackendFaulty, BackendTimeout, BackendUnavailable, BridgeError
from tests.hostile_http.client import Client, connected, until
from tests.hostile_http.server import Behaviour, Request, Server, event

both_ways = pytest.mark.parametrize("way", ["lane", "session"])
LIMIT = 100_000
BOMB = gzip.compress(b'{"jsonrpc":"2.0","result":"' + b" " * 200_000_000 + b'"}', 9)
PAGE = (
    b"<!doctype html><html><head><title>t</title><style>p {}</style></head><body><h1>Bad &amp; sad</h1>"
    b"<script>var x</script><p>Bearer the-owners-token key sk-live-abcdefghijklmnop123456 at https://in.side/?key=1</p>"
)


@pytest.fixture
async def server() -> AsyncGenerator[Server]:
    async with Server().listening() as running:
        yield running


@pytest.fixture
async def client(server: Server) -> AsyncGenerator[Client]:
    async with connected(server, limit=LIMIT) as open_client:
        yield open_client


def whole(body: bytes, status: str = "200 OK", *extra: str, kind: str = "application/json") -> Behaviour:
    async def behave(request: Request) -> None:
        await request.answer(body, status, *extra, kind=kind)

    return behave


def raw(*parts: bytes, close: bool = True) -> Behaviour:
    async def behave(request: Request) -> None:
        await request.write(*parts)
        if close:
            request.writer.close()

    return behave


def streamed(*chunks: bytes, end: bool = True) -> Behaviour:
    async def behave(request: Request) -> None:
        await request.stream(*chunks, end=end)
        if not end:
            request.writer.close()

    return behave


def text_of(answer: dict[str, Any]) -> str:
    return answer["result"]["content"][0]["text"]


GZIPPED = "Content-Encoding: gzip"
HALF = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"jsonrpc":"2.0","id'
FAULTS: dict[str, tuple[Behaviour, type[BridgeError], str, bool]] = {
    "half an answer": (raw(HALF), BackendUnavailable, "broke off", True),
    "half a head": (raw(b"HTTP/1.1 200 OK\r\nContent-Ty"), BackendUnavailable, "hung up before", True),
    "nothing": (raw(b""), BackendUnavailable, "hung up before", True),
    "not HTTP": (raw(b"220 smtp.example ready\r\n\r\n"), BackendFaulty, "not HTTP", True),
    "an endless head": (raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n"), BackendFaulty, "not HTTP", True),
    "an empty answer": (whole(b""), BackendFaulty, "cannot be read", True),
    "broken JSON": (whole(b'{"jsonrpc":'), BackendFaulty, "cannot be read", True),
    "JSON nested too deep": (whole(b"[" * 50_000 + b"]" * 50_000), BackendFaulty, "cannot be read", True),
    "JSON that is no message": (whole(b'"fine"'), BackendFaulty, "not asked", True),
    "another id": (whole(b'{"jsonrpc":"2.0","id":"x9","result":{}}'), BackendFaulty, "not asked", True),
    "accepted": (whole(b"", "202 Accepted"), BackendFaulty, "without answering", True),
    "a page": (whole(PAGE, kind="text/html"), BackendFaulty, "text/html where MCP has JSON", True),
    "too large, declared": (whole(b" " * (LIMIT + 1)), BackendFaulty, "more than 100000 bytes", True),
    "too large, compressed": (whole(BOMB, "200 OK", GZIPPED), BackendFaulty, "more than 100000 bytes", True),
    "not compressed after all": (whole(b"{}", "200 OK", GZIPPED), BackendUnavailable, "", True),
    "a large event": (streamed(b"data: " + b"x" * LIMIT, b"x" * 200), BackendFaulty, "more than 100000 bytes", True),
    "events without answer": (
        streamed(event(b'{"jsonrpc":"2.0","method":"x"}')),
        BackendUnavailable,
        "ended before",
        True,
    ),
    "events cut off": (streamed(b'data: {"json', end=False), BackendUnavailable, "ended before", True),
    "unauthorised": (whole(b"", "401 Unauthorized"), BackendUnavailable, "wants a sign-in", False),
    "forbidden": (whole(b"{}", "403 Forbidden"), BackendUnavailable, "refuses the token", False),
    "bad request": (whole(b"", "400 Bad Request"), BackendUnavailable, "HTTP 400", True),
    "not allowed": (whole(b"", "405 Method Not Allowed"), BackendUnavailable, "405", False),
    "teapot": (whole(PAGE, "418 I'm a teapot", kind="text/html"), BackendUnavailable, "Bad & sad", True),
    "broken": (whole(b"", "500 Internal Server Error"), BackendUnavailable, "500", True),
    "overloaded": (whole(b"", "503 Service Unavailable", "Retry-After: 7"), BackendUnavailable, "alone for 7 s", True),
    "moved": (
        whole(b"", "308 Permanent Redirect", "Location: https://else.example:444/mcp?key=hidden"),
        BackendUnavailable,
        "redirect to https://else.example:444 ",
        False,
    ),
}


@both_ways
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_that_calls_alone_and_says_what_it_is(
    server: Server, client: Client, way: str, fault: str
) -> None:
    behaviour, kind, sentence, sent = FAULTS[fault]
    server.on["fault"] = behaviour
    gate = asyncio.Event()

    async def slow(request: Request) -> None:
        await gate.wait()
        await request.answer(request.result("slow"))

    server.on["slow"] = slow
    beside = [asyncio.ensure_future(client.by_lane("slow")), asyncio.ensure_future(client.by_session("slow"))]
    await asyncio.sleep(0.02)
    with pytest.raises(kind) as caught:
        await client.call(way, "fault")
    gate.set()
    assert [text_of(await task) for task in beside] == ["slow", "slow"]
    assert text_of(await client.call(way, "ok")) == "fine"
    error = caught.value
    assert sentence in error.message
    assert error.details["sent"] is sent
    assert len(server.seen("fault")) == 1, "nothing that may have run is repeated"
    for secret in ("the-owners-token", "sk-live", "in.side", "hidden", "key=1"):
        assert secret not in error.sentence()


GOOD: dict[str, Callable[[Request], Any]] = {
    "json": lambda request: request.answer(request.result()),
    "compressed": lambda request: request.answer(gzip.compress(request.result()), "200 OK", GZIPPED),
    "charset and case": lambda request: request.answer(request.result(), kind="Application/JSON; charset=utf-8"),
    "trickled": lambda request: request.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",
        b"Content-Length: %d\r\n\r\n" % len(request.result()),
        *(bytes([byte]) for byte in request.result()),
    ),
    "until the end of the connection": lambda request: raw(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + request.result()
    )(request),
    "after a 103": lambda request: request.write(
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(request.result()), request.result())
    ),
    "a batch": lambda request: request.answer(b'[{"jsonrpc":"2.0","id":"x","result":{}},%b]' % request.result()),
    "an event": lambda request: request.stream(event(request.result(), b"event: message", b"id: 1")),
    "an event in odd pieces": lambda request: request.stream(
        b"\xef\xbb", b"\xbf: hello\r", b"\ndat", b"a: ", request.result()[:9], request.result()[9:], b"\r", b"\n\r\n"
    ),
    "noise before": lambda request: request.stream(
        b": ping\n\n",
        event(b"not json"),
        event(b"{}", b"event: other"),
        event(b'{"id":"x1","result":{}}'),
        event(request.result()),
    ),
    "a stream left open": lambda request: request.stream(event(request.result()), end=False),
}


@both_ways
@pytest.mark.parametrize("form", GOOD)
async def test_a_good_answer_is_read_in_every_form(server: Server, client: Client, way: str, form: str) -> None:
    server.on["tool"] = GOOD[form]
    for _ in range(3):
        assert text_of(await client.call(way, "tool")) == "fine"


@both_ways
async def test_an_error_of_the_server_is_passed_on_as_it_is(server: Server, client: Client, way: str) -> None:
    async def refuse(request: Request) -> None:
        error = {"code": -32602, "message": "no such colour"}
        answer = json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "error": error}).encode()
        await request.answer(answer, "400 Bad Request")

    server.on["tool"] = refuse
    assert (await client.call(way, "tool"))["error"] == {"code": -32602, "message": "no such colour"}
    server.on["tool"] = whole(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"eh"}}', "400 Bad Request")
    assert (await client.call(way, "tool"))["error"]["code"] == -32700


@both_ways
async def test_what_is_said_before_the_answer_is_heard_in_order(server: Server, client: Client, way: str) -> None:
    progress = [
        json.dumps(
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "t", "progress": n}}
        ).encode()
        for n in range(5)
    ]

    async def talk(request: Request) -> None:
        await request.stream(*map(event, progress), event(request.result()))

    server.on["tool"] = talk
    assert text_of(await client.call(way, "tool")) == "fine"
    await asyncio.sleep(0.05)
    assert [params["progress"] for _, params in client.hearing.heard_now] == [0, 1, 2, 3, 4]


async def test_answers_of_calls_at_once_are_not_mixed_up(server: Server, client: Client) -> None:
    async def own(request: Request) -> None:
        await asyncio.sleep(0.001 * (hash(request.name) % 7))
        answer = request.result(request.name)
        await (request.stream(event(answer)) if request.name.endswith("1") else request.answer(answer))

    names = [f"tool-{number}" for number in range(200)]
    server.on |= dict.fromkeys(names, own)
    lane, session = asyncio.gather(*map(client.by_lane, names)), asyncio.gather(*map(client.by_session, names))
    assert [text_of(answer) for answer in await lane] == names
    assert [text_of(answer) for answer in await session] == names


async def test_a_server_that_never_answers_is_told_to_stop(server: Server, client: Client) -> None:
    server.on["tool"] = Request.hang
    with pytest.raises(BackendTimeout) as caught:
        await client.by_lane("tool", timeout_s=0.1)
    assert caught.value.details["sent"] is True
    await asyncio.wait_for(server.hung_up.wait(), 5)
    await until(lambda: server.seen("notifications/cancelled"))
    (told,) = server.seen("notifications/cancelled")
    assert told.message["params"]["requestId"] == server.seen("tool")[0].message["id"]
    assert text_of(await client.by_lane("ok")) == "fine"


async def test_a_modern_server_is_hung_up_on(server: Server) -> None:
    server.modern = True
    server.on["tool"] = Request.hang
    async with connected(server) as client:
        call = asyncio.ensure_future(client.by_lane("tool"))
        await asyncio.sleep(0.05)
        call.cancel()
        await asyncio.wait_for(server.hung_up.wait(), 5)
        server.hung_up.clear()
        call = asyncio.ensure_future(client.by_session("tool"))
        await asyncio.sleep(0.05)
        call.cancel()
        await asyncio.wait_for(server.hung_up.wait(), 5)
    assert not server.seen("notifications/cancelled")


@both_ways
async def test_a_modern_request_says_in_headers_what_it_is(server: Server, way: str) -> None:
    server.modern = True
    async with connected(server) as client:
        sent = json.loads(text_of(await client.call(way, "headers")))
    assert sent["mcp-protocol-version"] == "2026-07-28"
    assert (sent["mcp-method"], sent["mcp-name"]) == ("tools/call", "headers")
    assert sent["authorization"] == "Bearer the-owners-token"
    assert "mcp-session-id" not in sent


async def test_connections_are_used_again_after_json_and_after_events(server: Server, client: Client) -> None:
    server.on["events"] = lambda request: request.stream(event(request.result()))
    for _ in range(5):
        await client.by_lane("ok")
        await client.by_lane("events")
        await asyncio.sleep(0.02)
    assert len({id(request.writer) for request in server.requests}) <= 2, "one for the calls, one for the stream"


async def test_ids_of_the_lane_are_none_of_the_sessions(server: Server, client: Client) -> None:
    for _ in range(3):
        await client.by_lane("ok")
        await client.by_session("ok")
    kinds = {type(request.message["id"]).__name__ for request in server.seen("ok")}
    assert kinds == {"int", "str"}
