"""Real servers behind one door, called with the SDK's own client in both generations."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.real.servers import configuration, git_repository
from tests.spine.bridge import Bridge, running_bridge

NAMES = ["time", "git", "fetch", "everything", "filesystem", "memory"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("real")


@pytest.fixture(scope="module")
def bridge(folder: Path) -> Iterator[Bridge]:
    with running_bridge(folder, configuration(folder)) as running:
        running.wait_ready(*NAMES)
        yield running


@asynccontextmanager
async def client(bridge: Bridge, mode: Any) -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(headers=bridge.auth, timeout=30) as http_client,
        Client(streamable_http_client(f"{bridge.url}/mcp", http_client=http_client), mode=mode) as made,
    ):
        yield made


def text(result: types.CallToolResult) -> str:
    said = "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))
    assert not result.is_error, said
    return said


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_server_is_listed_and_called(bridge: Bridge, folder: Path, mode: str) -> None:
    repository = folder / f"repository-{mode}"
    git_repository(repository)
    async with client(bridge, mode) as made:
        names = {tool.name for tool in (await made.list_tools()).tools}
        for backend in NAMES:
            assert any(name.startswith(f"{backend}__") for name in names), backend

        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        assert "21:00" in text(await made.call_tool("time__convert_time", arguments))
        assert "The first note" in text(await made.call_tool("git__git_log", {"repo_path": str(repository)}))
        assert text(await made.call_tool("everything__echo", {"message": "hi"})) == "Echo: hi"
        file = str(folder / "files" / f"{mode}.txt")
        text(await made.call_tool("filesystem__write_file", {"path": file, "content": "written\n"}))
        assert "written" in text(await made.call_tool("filesystem__read_text_file", {"path": file}))
        entity = {"name": f"Ada-{mode}", "entityType": "person", "observations": ["wrote the first program"]}
        text(await made.call_tool("memory__create_entities", {"entities": [entity]}))
        assert "first program" in text(await made.call_tool("memory__search_nodes", {"query": f"Ada-{mode}"}))


async def test_a_page_is_fetched(bridge: Bridge, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<html><body><h1>Crossing</h1><p>over the river</p></body></html>")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 – the parameter is the library's
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as pages:
        serving = threading.Thread(target=pages.serve_forever)
        serving.start()
        try:
            async with client(bridge, "auto") as made:
                url = f"http://127.0.0.1:{pages.server_port}/index.html"
                # Not simplified: for that the server installs a Node package on its first use, which takes as long as it takes.
                assert "over the river" in text(await made.call_tool("fetch__fetch", {"url": url, "raw": True}))
        finally:
            pages.shutdown()
            serving.join()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_the_server_of_everything_shows_comes_through(bridge: Bridge, mode: str) -> None:
    steps: list[float] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with client(bridge, mode) as made:
        image = await made.call_tool("everything__get-tiny-image", {})
        assert any(isinstance(block, types.ImageContent) for block in image.content)
        structured = await made.call_tool("everything__get-structured-content", {"location": "New York"})
        assert structured.structured_content is not None
        long = {"duration": 1, "steps": 4}
        text(await made.call_tool("everything__trigger-long-running-operation", long, progress_callback=step))
        assert steps == [1, 2, 3, 4]
        resources = (await made.list_resources()).resources
        read = await made.read_resource(str(resources[0].uri))
        assert read.contents
        prompts = [prompt.name for prompt in (await made.list_prompts()).prompts]
        assert "everything__simple-prompt" in prompts
        assert (await made.get_prompt("everything__simple-prompt")).messages


def test_the_status_names_every_server_and_its_version(bridge: Bridge) -> None:
    for name in NAMES:
        status = bridge.backend(name)
        assert status["server"], json.dumps(status)
        assert status["protocol"] in ("2025-11-25", "2025-06-18", "2026-07-28")
