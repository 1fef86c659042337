"""All four pairs of protocol generations, over both transports, with the SDK's own client in front."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import FileUrl

from tests.spine.bridge import MODERN, SERVERS, Bridge, running_bridge

pytestmark = pytest.mark.anyio
BACKENDS = ["legacy-stdio", "modern-stdio", "legacy-http", "modern-http"]
FRONTS = ["legacy", "modern"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    """One bridge with all four backends."""
    script = str(SERVERS / "asking.py")
    config, servers = "", list[subprocess.Popen[bytes]]()
    for backend in BACKENDS:
        generation, transport = backend.split("-")
        config += f"[backends.{backend}]\n"
        if transport == "stdio":
            config += f"command = {json.dumps(sys.executable)}\nargs = {json.dumps([script, generation])}\n"
        else:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            servers.append(subprocess.Popen([sys.executable, script, generation, str(port)]))
            config += f'url = "http://127.0.0.1:{port}/mcp"\n'
    try:
        with running_bridge(tmp_path_factory.mktemp("bridge"), config) as running:
            running.wait_ready(*BACKENDS)
            yield running
    finally:
        for server in servers:
            server.kill()
            server.wait()


class Heard:
    """What a client was asked and told."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.logs: list[tuple[str, Any]] = []
        self.updated = anyio.Event()

    async def elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Answer a form with a colour, and agree to a URL."""
        self.asked.append(params.message)
        if isinstance(params, types.ElicitRequestURLParams):
            return types.ElicitResult(action="accept")
        return types.ElicitResult(action="accept", content={"colour": "green"})

    async def sample(self, context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        """Be the model."""
        self.asked.append("sample")
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="hi"), model="test-model"
        )

    async def roots(self, context: Any) -> types.ListRootsResult:
        """Have one root."""
        self.asked.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl("file:///work"))])

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Take note of a log message."""
        self.logs.append((params.level, params.data))

    async def message(self, message: Any) -> None:
        """Take note of a changed resource."""
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updated.set()


@asynccontextmanager
async def client(bridge: Bridge, front: str, heard: Heard, *, group: str = "") -> AsyncGenerator[Client]:
    """The SDK's client, in one generation, that can be asked for everything."""
    async with (
        httpx2.AsyncClient(headers=bridge.auth, timeout=30) as http,
        Client(
            streamable_http_client(f"{bridge.url}/mcp{group}", http_client=http),
            mode="legacy" if front == "legacy" else MODERN,
            elicitation_callback=heard.elicit,
            sampling_callback=heard.sample,
            list_roots_callback=heard.roots,
            logging_callback=heard.log,
            message_handler=heard.message,
            log_level="info",
            read_timeout_seconds=20,
        ) as made,
    ):
        yield made


def said(result: types.CallToolResult) -> str:
    """The text of a result."""
    (block,) = result.content
    assert isinstance(block, types.TextContent), block
    assert not result.is_error, block.text
    return block.text


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_server_can_ask_its_client_for_everything(bridge: Bridge, front: str, backend: str) -> None:
    heard = Heard()
    async with client(bridge, front, heard) as made:
        assert '"colour":"green"' in said(await made.call_tool(f"{backend}__ask_form", {}))
        assert '"action":"accept"' in said(await made.call_tool(f"{backend}__ask_url", {}))
        assert "test-model" in said(await made.call_tool(f"{backend}__sample", {}))
        assert "file:///work" in said(await made.call_tool(f"{backend}__roots", {}))
        both = said(await made.call_tool(f"{backend}__ask_twice", {}))
        assert both.index("green") < both.index("test-model")
    assert heard.asked == ["Which colour?", "Sign in", "sample", "roots", "Which colour?", "sample"]


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("backend", BACKENDS)
async def test_progress_and_logs_arrive_before_the_result_and_in_order(
    bridge: Bridge, front: str, backend: str
) -> None:
    heard, steps = Heard(), list[tuple[float, float | None, str | None]]()

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async with client(bridge, front, heard) as made:
        assert said(await made.call_tool(f"{backend}__progress", {}, progress_callback=step)) == "done"
        assert steps == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
        assert said(await made.call_tool(f"{backend}__logs", {})) == "logged"
        assert heard.logs == [("info", "a info line"), ("error", "a error line")]


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("backend", BACKENDS)
async def test_resources_prompts_and_completion_are_relayed(bridge: Bridge, front: str, backend: str) -> None:
    async with client(bridge, front, Heard()) as made:
        greeted = await made.get_prompt(f"{backend}__greet", {"who": "you"})
        assert isinstance(greeted.messages[0].content, types.TextContent)
        assert greeted.messages[0].content.text == "hello you"
        reference = types.PromptReference(type="ref/prompt", name=f"{backend}__greet")
        completed = await made.complete(reference, {"name": "who", "value": "a"})
        assert completed.completion.values == ["greet:a"]
        uris = [str(resource.uri) for resource in (await made.list_resources()).resources]
        uri = next(uri for uri in uris if uri == "note://1" or uri.startswith(f"{backend}+"))
        read = await made.read_resource(uri)
        assert isinstance(read.contents[0], types.TextResourceContents)
        assert read.contents[0].text == "note note://1"


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("backend", ["legacy-stdio", "legacy-http"])
async def test_a_server_that_uses_roots_hears_that_they_changed(bridge: Bridge, backend: str) -> None:
    async with client(bridge, "legacy", Heard()) as made:
        assert "file:///work" in said(await made.call_tool(f"{backend}__roots", {}))
        before = int(said(await made.call_tool(f"{backend}__roots_changes", {})))
        await made.session.send_roots_list_changed()  # pyright: ignore[reportDeprecated]
        with anyio.fail_after(10):
            while int(said(await made.call_tool(f"{backend}__roots_changes", {}))) == before:
                pass


@pytest.mark.parametrize("front", FRONTS)
async def test_a_missing_resource_has_the_error_code_of_the_callers_generation(bridge: Bridge, front: str) -> None:
    async with client(bridge, front, Heard()) as made:
        with pytest.raises(MCPError) as caught:
            await made.read_resource("note://404")
    assert caught.value.code == (-32002 if front == "legacy" else -32602)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_session_hears_of_changed_resources(bridge: Bridge, backend: str) -> None:
    heard = Heard()
    async with client(bridge, "legacy", heard) as made:
        uris = [str(resource.uri) for resource in (await made.list_resources()).resources]
        index = BACKENDS.index(backend)
        uri = uris[index]
        await made.session.subscribe_resource(uri)  # pyright: ignore[reportDeprecated]
        await anyio.sleep(0.5)
        await made.call_tool(f"{backend}__touch", {})
        with anyio.fail_after(10):
            await heard.updated.wait()


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_listen_stream_hears_of_changed_resources(bridge: Bridge, backend: str) -> None:
    async with client(bridge, "modern", Heard()) as made:
        uri = [str(resource.uri) for resource in (await made.list_resources()).resources][BACKENDS.index(backend)]
        async with made.listen(resource_subscriptions=[uri]) as events:
            await anyio.sleep(0.5)
            await made.call_tool(f"{backend}__touch", {})
            with anyio.fail_after(10):
                event = await anext(aiter(events))
        assert str(getattr(event, "uri", "")) == uri


async def test_a_request_state_is_good_for_its_own_call_alone(bridge: Bridge) -> None:
    """The attack this stops: take the state of one tool's question and spend it on another tool, or change it."""
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    headers = {
        **bridge.auth,
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
    }

    async def send(http: httpx2.AsyncClient, tool: str, **more: Any) -> dict[str, Any]:
        params: dict[str, Any] = {"name": tool, "arguments": {}, "_meta": meta, **more}
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return (await http.post(f"{bridge.url}/mcp", json=body, headers={**headers, "Mcp-Name": tool})).json()

    for backend in BACKENDS:
        async with httpx2.AsyncClient(timeout=20) as http:
            asked = (await send(http, f"{backend}__ask_form"))["result"]
            assert asked["resultType"] == "input_required"
            (key,) = asked["inputRequests"]
            state = asked["requestState"]
            answer = {key: {"action": "accept", "content": {"colour": "red"}}}
            other = await send(http, f"{backend}__ask_url", inputResponses=answer, requestState=state)
            forged = await send(http, f"{backend}__ask_form", inputResponses=answer, requestState=state[:-4] + "AAAA")
            assert other["error"]["code"] == forged["error"]["code"] == -32602
            changed = await send(
                http, f"{backend}__ask_form", arguments={"x": 1}, inputResponses=answer, requestState=state
            )
            assert changed["error"]["code"] == -32602
            right = await send(http, f"{backend}__ask_form", inputResponses=answer, requestState=state)
            assert '"colour":"red"' in right["result"]["content"][0]["text"]


def test_the_bearer_of_the_bridge_never_goes_upstream(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = tmp_path / "headers.py"
    script.write_text(
        "import sys, uvicorn\n"
        "port = int(sys.argv[1])\nsys.argv = ['asking.py', 'modern', '0']\n"
        f"source = open({str(SERVERS / 'asking.py')!r}).read()\n"
        "exec(source[: source.index('if len(sys.argv) > 2')])\n"
        "inner = server().streamable_http_app()\n"
        "async def app(scope, receive, send):\n"
        f"    open({str(seen)!r}, 'a').write(repr(scope.get('headers')) + '\\n')\n"
        "    await inner(scope, receive, send)\n"
        "uvicorn.run(app, host='127.0.0.1', port=port, log_level='error')\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, str(script), str(port)])
    try:
        config = f'[backends.b]\nurl = "http://127.0.0.1:{port}/mcp"\nheaders = {{ X-Key = "our-own" }}\n'
        with running_bridge(tmp_path, config) as bridge:
            bridge.wait_ready("b")
            bridge.call("b__progress")
            assert "our-own" in seen.read_text()
            assert bridge.token not in seen.read_text()
            assert "authorization" not in seen.read_text().lower()
    finally:
        server.kill()
        server.wait()
