"""Sessions: begun, forgotten, begun anew, resumed and ended."""

from __future__ import annotations

import asyncio
import json

import pytest

from bridgehead.core.errors import BackendUnavailable
from tests.hostile_http.client import connected, until
from tests.hostile_http.server import Request, Server, event
from tests.hostile_http.test_answers import both_ways, raw, text_of, whole

COMPLAINTS = [
    ("404 Not Found", b""),
    ("404 Not Found", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'),
    ("404 Not Found", b'{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}'),
    (
        "400 Bad Request",
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}',
    ),
    ("400 Bad Request", b"Bad Request: Server not initialized"),
]


def once_forgotten(server: Server, status: str, body: bytes) -> None:
    """From now on the sessions that there are do not exist."""
    old = set(server.sessions)

    async def refuse(request: Request) -> None:
        if request.headers.get("mcp-session-id") in old:
            await request.answer(body, status)
        else:
            await request.answer(request.result("once"))

    server.on["tool"] = refuse


@both_ways
@pytest.mark.parametrize(("status", "body"), COMPLAINTS)
async def test_a_forgotten_session_is_begun_anew_once_and_the_call_repeated(way: str, status: str, body: bytes) -> None:
    async with Server().listening() as server, connected(server) as client:
        once_forgotten(server, status, body)
        assert text_of(await client.call(way, "tool")) == "once"
        assert server.begun == 2
        assert len(server.seen("tool")) == 2
        assert len(server.seen("notifications/initialized")) == 2
        await asyncio.sleep(0.02)
        assert "notifications/tools/list_changed" in client.hearing.methods
        assert text_of(await client.call(way, "ok")) == "fine"
        assert server.begun == 2


async def test_many_calls_that_find_out_together_begin_one_session() -> None:
    async with Server().listening() as server, connected(server) as client:
        once_forgotten(server, *COMPLAINTS[0])
        answers = await asyncio.gather(*(client.call(way, "tool") for way in ("lane", "session") * 20))
        assert {text_of(answer) for answer in answers} == {"once"}
        assert server.begun == 2


@both_ways
async def test_a_session_that_is_forgotten_at_once_is_given_up(way: str) -> None:
    server = Server()
    with pytest.RaisesGroup(BackendUnavailable, flatten_subgroups=True):
        async with server.listening(), connected(server) as client:
            server.on["tool"] = whole(b"", "404 Not Found")
            with pytest.raises(BackendUnavailable, match="again after a new one") as caught:
                await client.call(way, "tool")
            assert caught.value.details["sent"] is False
            assert (server.begun, len(server.seen("tool"))) == (2, 2)
            await asyncio.sleep(5)


@both_ways
async def test_a_session_that_cannot_be_begun_anew_has_run_nothing(way: str) -> None:
    server = Server()
    with pytest.RaisesGroup(BackendUnavailable, flatten_subgroups=True):
        async with server.listening(), connected(server) as client:
            server.sessions.clear()
            server.on["initialize"] = whole(b"", "503 Service Unavailable")
            with pytest.raises(BackendUnavailable, match="503") as caught:
                await client.call(way, "ok")
            assert caught.value.details["sent"] is False
            await asyncio.sleep(5)


@both_ways
async def test_a_server_that_was_restarted_between_calls_is_found_again(way: str) -> None:
    server = Server()
    async with server.listening() as first, connected(first) as client:
        assert text_of(await client.call(way, "ok")) == "fine"
        server.drop_all()
        server.sessions.clear()
        await asyncio.sleep(0.05)
        assert text_of(await client.call(way, "ok")) == "fine"
        assert server.begun == 2


@both_ways
async def test_a_server_that_is_gone_ends_the_session_and_nothing_was_sent(way: str) -> None:
    server = Server()
    with pytest.RaisesGroup(pytest.RaisesExc(BackendUnavailable, match="nothing listens"), flatten_subgroups=True):
        async with asyncio.timeout(10):
            running = server.listening()
            await running.__aenter__()
            async with connected(server) as client:
                await running.__aexit__(None, None, None)
                await asyncio.sleep(0.05)
                with pytest.raises(BackendUnavailable, match="nothing listens") as caught:
                    await client.call(way, "ok")
                assert caught.value.details["sent"] is False
                await asyncio.sleep(5)


@both_ways
async def test_a_stream_that_ends_before_the_answer_is_resumed(way: str) -> None:
    async def begin(request: Request) -> None:
        server.on["GET"] = resume
        await request.stream(b"id: 41\nretry: 50\ndata:\n\n")

    async def resume(request: Request) -> None:
        asked = server.seen("tool")[0]
        if request.headers.get("last-event-id") == "41":
            await request.stream(b"id: 42\ndata:\n\n")
        elif request.headers.get("last-event-id") == "42":
            await request.stream(event(asked.result("resumed")))
        else:
            await request.answer(b"", "405 Method Not Allowed")

    async with Server().listening() as server, connected(server) as client:
        server.on["tool"] = begin
        assert text_of(await client.call(way, "tool")) == "resumed"
        assert len(server.seen("tool")) == 1


async def test_a_stream_that_cannot_be_resumed_may_have_run() -> None:
    async with Server().listening() as server, connected(server) as client:
        server.on["tool"] = lambda request: request.stream(b"id: 41\nretry: 50\ndata:\n\n")
        with pytest.raises(BackendUnavailable, match="was not resumed") as caught:
            await client.by_lane("tool")
        assert caught.value.details["sent"] is True


async def test_what_the_server_says_by_itself_is_heard_across_breaks() -> None:
    said = [json.dumps({"jsonrpc": "2.0", "method": f"notifications/n{n}"}).encode() for n in range(3)]

    async def speak(request: Request) -> None:
        number = int(request.headers.get("last-event-id", "0"))
        if number < len(said):
            await request.stream(event(said[number], b"id: %d" % (number + 1), b"retry: 20"))
        else:
            await request.stream(b": quiet\n\n", end=False)
            await request.hang()

    server = Server(on={"GET": speak})
    async with server.listening(), connected(server) as client:
        await until(lambda: len(client.hearing.methods) >= 3)
    assert client.hearing.methods == [f"notifications/n{n}" for n in range(3)]


async def test_a_session_is_ended_in_order() -> None:
    async with Server().listening() as server:
        async with connected(server):
            pass
        (goodbye,) = server.seen("DELETE")
        assert goodbye.headers["mcp-session-id"] == "session-1"


@pytest.mark.parametrize(
    ("status", "extra", "sentence"),
    [
        ("401 Unauthorized", "X: y", "wants a sign-in"),
        ("403 Forbidden", "X: y", "refuses the token"),
        ("503 Service Unavailable", "Retry-After: 3", "alone for 3 s"),
        ("307 Temporary Redirect", "Location: /mcp/", "a slash at its end"),
    ],
)
async def test_what_every_beginning_would_meet_is_said_at_once(status: str, extra: str, sentence: str) -> None:
    async with Server(on={"POST": whole(b"", status, extra)}).listening() as server:
        with pytest.RaisesGroup(pytest.RaisesExc(BackendUnavailable, match=sentence), flatten_subgroups=True):
            async with connected(server):
                pass
        assert len(server.requests) == 1


async def test_a_server_of_2024_is_spoken_to_over_one_stream() -> None:
    streams: list[Request] = []

    async def open_stream(request: Request) -> None:
        streams.append(request)
        await request.stream(event(b"/messages?sessionId=1", b"event: endpoint"), end=False)
        await request.hang()

    async def take(request: Request) -> None:
        await request.answer(b"Accepted", "202 Accepted", kind="text/plain")
        if request.name == "initialize":
            info = {"name": "old", "version": "1"}
            result = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": info}
            body = json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "result": result}).encode()
        elif "id" not in request.message:
            return
        elif request.name == "server/discover":
            body = json.dumps(
                {"jsonrpc": "2.0", "id": request.message["id"], "error": {"code": -32601, "message": "?"}}
            ).encode()
        else:
            body = request.result()
        chunk = event(body, b"event: message")
        await streams[0].write(b"%x\r\n%b\r\n" % (len(chunk), chunk))

    server = Server(on={"GET": open_stream, "POST": take})
    async with server.listening(), connected(server, transport="sse") as client:
        assert client.lane is None
        assert text_of(await client.by_session("ok")) == "fine"
        server.on["POST"] = whole(b"", "500 Internal Server Error")
        with pytest.raises(BackendUnavailable, match="500"):
            await client.by_session("ok")
        server.on["POST"] = take
        assert text_of(await client.by_session("ok")) == "fine"
    assert {request.path for request in server.seen("POST")} == {"/messages?sessionId=1"}


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:1/messages", "https://127.0.0.1/x", "//else.example/x", "http://["]
)
async def test_a_server_of_2024_cannot_have_its_messages_sent_elsewhere(endpoint: str) -> None:
    async def open_stream(request: Request) -> None:
        await request.stream(event(endpoint.encode(), b"event: endpoint"), end=False)
        await request.hang()

    async with Server(on={"GET": open_stream}).listening() as server:
        with pytest.RaisesGroup(pytest.RaisesExc(match="another origin"), flatten_subgroups=True):
            async with connected(server, transport="sse"):
                pass
        assert not server.seen("POST")


async def test_a_stream_of_2024_that_ends_ends_the_session() -> None:
    server = Server(
        on={"GET": raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: /m\n\n")}
    )
    with pytest.RaisesGroup(pytest.RaisesExc(BackendUnavailable, match="ended its stream"), flatten_subgroups=True):
        async with server.listening(), connected(server, transport="sse"):
            await asyncio.sleep(5)
