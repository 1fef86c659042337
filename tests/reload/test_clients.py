"""What clients that are connected already hear of a change: both generations, over HTTP and on standard input and output."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import StdioServerParameters, stdio_client
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.spine.bridge import BIN, MODERN, Bridge, plain, running_bridge, wait_until

pytestmark = pytest.mark.anyio

ONE = f"[backends.one]\n{plain()}\n"
TWO = f"{ONE}[backends.two]\n{plain()}\n[groups.some]\nmembers = [{{ backend = 'two' }}]\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    with running_bridge(tmp_path_factory.mktemp("bridge"), ONE) as running:
        running.wait_ready("one")
        yield running


class Heard:
    """Counts what a client is told."""

    def __init__(self) -> None:
        self.tools_changed = anyio.Event()

    async def message(self, message: object) -> None:
        """Take note of a changed list."""
        if isinstance(message, types.ToolListChangedNotification):
            self.tools_changed.set()


async def names(client: Client) -> set[str]:
    """The tools of the backends, as the client sees them now."""
    listed = await client.list_tools(cache_mode="bypass")
    return {tool.name for tool in listed.tools if tool.name.endswith("__echo")}


async def until_they_are(client: Client, wanted: set[str]) -> None:
    with anyio.fail_after(5):
        while await names(client) != wanted:
            pass


def config_of(bridge: Bridge) -> Path:
    return bridge.state_dir.parent / "bridgehead.toml"


async def test_an_open_session_of_the_older_generation_hears_that_the_tools_changed(bridge: Bridge) -> None:
    config_of(bridge).write_text(ONE)
    heard = Heard()
    async with (
        httpx2.AsyncClient(headers=bridge.auth, timeout=30) as http,
        Client(
            streamable_http_client(f"{bridge.url}/mcp", http_client=http), mode="legacy", message_handler=heard.message
        ) as client,
    ):
        await until_they_are(client, {"one__echo"})
        heard.tools_changed = anyio.Event()
        config_of(bridge).write_text(TWO)
        with anyio.fail_after(2):
            await heard.tools_changed.wait()
        await until_they_are(client, {"one__echo", "two__echo"})
        # The session is the same, and so is the backend that was there before.
        result = await client.call_tool("one__echo", {"text": "on"})
        assert not result.is_error


async def test_a_listen_stream_of_the_newer_generation_hears_it_too(bridge: Bridge) -> None:
    config_of(bridge).write_text(ONE)
    async with (
        httpx2.AsyncClient(headers=bridge.auth, timeout=30) as http,
        Client(streamable_http_client(f"{bridge.url}/mcp", http_client=http), mode=MODERN) as client,
    ):
        await until_they_are(client, {"one__echo"})
        async with client.listen(tools_list_changed=True) as events:
            config_of(bridge).write_text(TWO)
            with anyio.fail_after(2):
                await anext(aiter(events))
        await until_they_are(client, {"one__echo", "two__echo"})


async def test_a_listen_stream_of_a_group_ends_when_the_group_is_switched_off(bridge: Bridge) -> None:
    config_of(bridge).write_text(TWO)
    wait_until(lambda: bridge.modern("tools/list", group="/some").status_code == 200, within_s=5)
    async with (
        httpx2.AsyncClient(headers=bridge.auth, timeout=30) as http,
        Client(streamable_http_client(f"{bridge.url}/mcp/some", http_client=http), mode=MODERN) as client,
        client.listen(tools_list_changed=True) as events,
    ):
        config_of(bridge).write_text(TWO + "enabled = false\n")
        with anyio.fail_after(5):
            async for _ in events:
                pass
    assert bridge.modern("tools/list", group="/some").status_code == 404


async def test_a_client_on_standard_input_and_output_hears_it_too(tmp_path: Path) -> None:
    file = tmp_path / "bridgehead.toml"
    file.write_text(ONE)
    args = ["mcp", "stdio", "--config", str(file), "--state-dir", str(tmp_path / "state")]
    heard = Heard()
    with (tmp_path / "log").open("w") as log:
        transport = stdio_client(StdioServerParameters(command=str(BIN / "bridgehead"), args=args), errlog=log)
        async with Client(transport, mode="legacy", message_handler=heard.message) as client:
            await until_they_are(client, {"one__echo"})
            heard.tools_changed = anyio.Event()
            file.write_text(TWO)
            with anyio.fail_after(2):
                await heard.tools_changed.wait()
            await until_they_are(client, {"one__echo", "two__echo"})


@pytest.mark.skipif(sys.platform == "win32", reason="there are no hangups here")
def test_a_bridge_whose_terminal_goes_stops_and_does_not_take_it_for_a_wish_to_reload(tmp_path: Path) -> None:
    (tmp_path / "bridgehead.toml").write_text(ONE)
    command = [str(BIN / "bridgehead"), "serve", "--port", "0", "--state-dir", str(tmp_path / "state")]
    ours, theirs = pty.openpty()
    own_terminal = (
        "import fcntl, os, sys, termios\n"
        "os.setsid()\n"
        "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        "os.execv(sys.argv[1], sys.argv[1:])\n"
    )
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", own_terminal, *command], stdin=theirs, stdout=log, stderr=log, cwd=tmp_path
        )
    os.close(theirs)
    try:
        wait_until((tmp_path / "state" / "address").exists)
        # A wish to reload is one as long as the terminal is there.
        wait_until(lambda: "listening" in (tmp_path / "log").read_text())
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: "SIGHUP" in (tmp_path / "log").read_text(), within_s=5)
        assert process.poll() is None
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        os.close(ours)
    assert process.wait(timeout=15) == 0
    assert "the terminal has gone" in (tmp_path / "log").read_text()
