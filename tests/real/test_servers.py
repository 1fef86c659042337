"""Real servers behind one door, called with the SDK's own client in both generations."""

from __future__ import annotations

import base64
import http.server
import json
import threading
import tomllib
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import StdioServerParameters
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
def config(folder: Path) -> str:
    return configuration(folder)


@pytest.fixture(scope="module")
def bridge(folder: Path, config: str) -> Iterator[Bridge]:
    with running_bridge(folder, config) as running:
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


@pytest.mark.parametrize(("mode", "protocol"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_each_mode_of_the_client_speaks_its_own_generation(bridge: Bridge, mode: str, protocol: str) -> None:
    async with client(bridge, mode) as made:
        assert made.protocol_version == protocol


async def test_what_each_server_lists_by_itself_is_listed_under_its_prefix(bridge: Bridge, config: str) -> None:
    expected: set[str] = set()
    for name, launch in tomllib.loads(config)["backends"].items():
        async with Client(StdioServerParameters(**launch), mode="legacy") as alone:
            listed = (await alone.list_tools()).tools
        assert listed, name
        expected |= {f"{name}__{tool.name}" for tool in listed}
    for mode in ("auto", "legacy"):
        async with client(bridge, mode) as made:
            names = [tool.name for tool in (await made.list_tools()).tools]
        assert len(names) == len(set(names))
        assert {name for name in names if "__" in name} == expected


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_server_is_called(bridge: Bridge, folder: Path, mode: str) -> None:
    repository = folder / f"repository-{mode}"
    git_repository(repository)
    async with client(bridge, mode) as made:
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        assert "21:00" in text(await made.call_tool("time__convert_time", arguments))
        (repository / "note.txt").write_text("changed\n")
        status = text(await made.call_tool("git__git_status", {"repo_path": str(repository)}))
        assert "modified:   note.txt" in status
        assert "The first note" in text(await made.call_tool("git__git_log", {"repo_path": str(repository)}))
        assert text(await made.call_tool("everything__echo", {"message": "hi"})) == "Echo: hi"
        assert "42" in text(await made.call_tool("everything__get-sum", {"a": 2, "b": 40}))
        file = folder / "files" / f"{mode}.txt"
        text(await made.call_tool("filesystem__write_file", {"path": str(file), "content": "written\n"}))
        assert file.read_text() == "written\n"
        assert "written" in text(await made.call_tool("filesystem__read_text_file", {"path": str(file)}))
        entity = {"name": f"Ada-{mode}", "entityType": "person", "observations": ["wrote the first program"]}
        text(await made.call_tool("memory__create_entities", {"entities": [entity]}))
        assert "first program" in text(await made.call_tool("memory__search_nodes", {"query": f"Ada-{mode}"}))
        assert f"Ada-{mode}" in (folder / "memory.jsonl").read_text()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_servers_own_refusal_comes_through_as_its_answer(bridge: Bridge, folder: Path, mode: str) -> None:
    outside = folder / "outside.txt"
    outside.write_text("private")
    async with client(bridge, mode) as made:
        result = await made.call_tool("filesystem__read_text_file", {"path": str(outside)})
    assert result.is_error
    said = result.content[0].model_dump()["text"]
    assert "outside allowed directories" in said
    assert "private" not in said


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_page_is_fetched(bridge: Bridge, tmp_path: Path, mode: str) -> None:
    (tmp_path / "index.html").write_text("<html><body><h1>Crossing</h1><p>over the river</p></body></html>")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 – the parameter is the library's
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as pages:
        serving = threading.Thread(target=pages.serve_forever)
        serving.start()
        try:
            async with client(bridge, mode) as made:
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
        pictures = [block for block in image.content if isinstance(block, types.ImageContent)]
        assert [base64.b64decode(picture.data)[:4] for picture in pictures] == [b"\x89PNG"]
        structured = await made.call_tool("everything__get-structured-content", {"location": "New York"})
        assert structured.structured_content == json.loads(text(structured))
        long = {"duration": 1, "steps": 4}
        text(await made.call_tool("everything__trigger-long-running-operation", long, progress_callback=step))
        assert steps == [1, 2, 3, 4]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_resources_prompts_and_completions_come_through(bridge: Bridge, mode: str) -> None:
    async with client(bridge, mode) as made:
        document = "demo://resource/static/document/features.md"
        assert document in [str(resource.uri) for resource in (await made.list_resources()).resources]
        assert "Everything Server" in (await made.read_resource(document)).contents[0].model_dump()["text"]
        templates = [each.uri_template for each in (await made.list_resource_templates()).resource_templates]
        assert "demo://resource/dynamic/blob/{resourceId}" in templates
        blob = (await made.read_resource("demo://resource/dynamic/blob/7")).contents[0].model_dump()["blob"]
        assert base64.b64decode(blob).startswith(b"Resource 7:")

        prompt = await made.get_prompt("everything__args-prompt", {"city": "Paris"})
        assert "Paris" in prompt.messages[0].content.model_dump()["text"]
        team = types.PromptReference(name="everything__completable-prompt")
        departments = (await made.complete(team, {"name": "department", "value": "S"})).completion.values
        assert departments == ["Sales", "Support"]
        chosen = {"department": "Sales"}
        names = (await made.complete(team, {"name": "name", "value": ""}, context_arguments=chosen)).completion.values
        assert names
        others = await made.complete(team, {"name": "name", "value": ""}, context_arguments={"department": "Support"})
        assert set(names).isdisjoint(others.completion.values)


def test_the_status_names_every_server_and_its_version(bridge: Bridge) -> None:
    for name in NAMES:
        status = bridge.backend(name)
        assert status["server"], json.dumps(status)
        assert status["protocol"] in ("2025-11-25", "2025-06-18", "2026-07-28")
