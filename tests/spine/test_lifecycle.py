"""How the bridge and its children live and die, seen from outside."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.spine.bridge import BIN, SERVERS, plain, running_bridge, wait_until


def test_the_good_tools_are_there_although_other_backends_fail(tmp_path: Path) -> None:
    config = (
        f"[backends.good]\n{plain()}\n"
        f"[backends.exits]\n{plain('exits')}\n"
        '[backends.missing]\ncommand = "no-such-program-anywhere"\n'
        '[backends.refuses]\nurl = "http://127.0.0.1:9/mcp"\n'
        '[backends.unset]\ncommand = "${NEVER_SET_BY_ANYONE}"\n'
    )
    with running_bridge(tmp_path, config) as bridge:
        bridge.wait_ready("good", within_s=10)
        assert "good__echo" in bridge.tools()
        wait_until(lambda: bridge.backend("exits")["state"] == "down")
        wait_until(lambda: bridge.backend("refuses")["state"] == "down")
        wait_until(lambda: bridge.backend("missing")["state"] == "down")
        assert bridge.health()["status"] == "degraded"
        assert "exited with code 3" in bridge.backend("exits")["cause"]
        # What a server writes may hold anything, so it is shown to those with the token alone.
        assert "cannot find my configuration" not in json.dumps(bridge.health())
        assert "cannot find my configuration" in bridge.get("/health").text
        assert "no-such-program-anywhere" in bridge.backend("missing")["cause"]
        assert bridge.backend("unset")["state"] == "broken"
        assert "NEVER_SET_BY_ANYONE" in bridge.backend("unset")["cause"]
        assert "backends.unset.command" in bridge.backend("unset")["cause"]


def test_a_call_fails_at_once_with_the_exit_code_when_its_server_dies_and_the_server_comes_back(tmp_path: Path) -> None:
    with running_bridge(tmp_path, f"[backends.b]\n{plain()}") as bridge:
        bridge.wait_ready("b")
        began = time.monotonic()
        result = bridge.call("b__die")["result"]
        assert time.monotonic() - began < 10
        assert result["isError"] is True
        assert "exited with code 7" in result["content"][0]["text"]
        assert "going down on request" in result["content"][0]["text"]
        wait_until(lambda: bridge.call("b__echo", {"text": "back"})["result"].get("isError") is not True)
        assert bridge.backend("b")["restarts"] == 1


def test_after_a_restart_the_catalog_is_complete_before_its_backends_are_back(tmp_path: Path) -> None:
    config = f"[backends.b]\n{plain()}"
    with running_bridge(tmp_path, config) as bridge:
        bridge.wait_ready("b")
        complete = bridge.tools()
    (tmp_path / "slow").mkdir()
    # The same launch, but the server cannot start: its script is out of the way.
    script = Path(__file__).parent / "servers" / "plain.py"
    moved = tmp_path / "plain.py"
    copied = config.replace(str(script), str(moved))
    moved.write_text(script.read_text())
    with running_bridge(tmp_path, copied) as bridge:
        bridge.wait_ready("b")
    moved.unlink()
    with running_bridge(tmp_path, copied) as bridge:
        wait_until(lambda: "b__echo" in bridge.tools(), within_s=5)
        assert bridge.tools() == complete
        wait_until(lambda: bridge.backend("b")["state"] == "down")
        assert bridge.backend("b")["stale"] is True


def test_sigterm_lets_a_call_in_flight_end_and_leaves_no_process_behind(tmp_path: Path) -> None:
    script = tmp_path / "tree.py"
    script.write_text(
        "import subprocess, sys, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "subprocess.Popen(['sleep', '600'])\n"
        f"exec(open({str(Path(__file__).parent / 'servers' / 'plain.py')!r}).read())\n"
    )
    config = f"[backends.b]\ncommand = {json.dumps('python3')}\nargs = [{json.dumps(str(script))}]\n"
    with running_bridge(tmp_path, config) as bridge:
        bridge.wait_ready("b")
        tree = psutil.Process(bridge.process.pid).children(recursive=True)
        assert any("sleep" in process.name() for process in tree)
    assert [process for process in tree if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []


def test_a_server_that_dies_when_asked_for_its_generation_is_started_in_the_older_one_and_remembered(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "journal"
    with running_bridge(tmp_path, f"[backends.b]\n{plain('dies-on-probe', journal)}") as bridge:
        bridge.wait_ready("b")
        assert bridge.backend("b")["protocol"] == "2025-11-25"
    first = [json.loads(line)["method"] for line in journal.read_text().splitlines()]
    assert first[:2] == ["server/discover", "initialize"]
    journal.unlink()
    with running_bridge(tmp_path, f"[backends.b]\n{plain('dies-on-probe', journal)}") as bridge:
        bridge.wait_ready("b")
    assert json.loads(journal.read_text().splitlines()[0])["method"] == "initialize"


@pytest.mark.parametrize(("mode", "count"), [("pages", 9), ("endless", 3)])
def test_every_page_of_a_list_is_read_and_a_list_without_end_is_cut_off(tmp_path: Path, mode: str, count: int) -> None:
    with running_bridge(tmp_path, f"[backends.b]\n{plain(mode)}") as bridge:
        bridge.wait_ready("b")
        assert len({name for name in bridge.tools() if name.startswith("b__")}) == count


def test_a_call_in_flight_ends_within_the_grace_although_the_bridge_was_told_to_stop(tmp_path: Path) -> None:
    with (
        running_bridge(tmp_path, f"[backends.b]\n{plain()}", expect_exit=True) as bridge,
        ThreadPoolExecutor() as threads,
    ):
        bridge.wait_ready("b")
        call = threads.submit(bridge.call, "b__slow", {"seconds": 2})
        wait_until(lambda: "tools/call" in bridge.log.read_text() or call.running())
        time.sleep(0.5)
        bridge.process.send_signal(signal.SIGTERM)
        assert call.result()["result"]["content"][0]["text"] == "at last"
        assert bridge.process.wait(20) == 0


def test_a_call_has_the_time_that_its_own_tool_is_given(tmp_path: Path) -> None:
    config = f"[backends.b]\ntimeout_s = 30\n{plain()}\n[backends.b.tool_timeouts_s]\nhang = 0.5\n"
    with running_bridge(tmp_path, config) as bridge:
        bridge.wait_ready("b")
        began = time.monotonic()
        assert bridge.call("b__hang")["result"]["_meta"]["bridgehead/error"]["code"] == "backend_timeout"
        assert time.monotonic() - began < 10


def test_a_server_is_listed_once_and_not_before_each_call(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with running_bridge(tmp_path, f"[backends.b]\n{plain('plain', journal)}") as bridge:
        bridge.wait_ready("b")
        for number in range(5):
            bridge.call("b__echo", {"text": str(number)})
            bridge.tools()
    methods = [json.loads(line)["method"] for line in journal.read_text().splitlines()]
    assert methods.count("tools/call") == 5
    assert methods.count("tools/list") == 1


def test_a_server_of_the_oldest_http_transport_is_found_and_called(tmp_path: Path) -> None:
    script = tmp_path / "sse.py"
    script.write_text(
        "import sys, uvicorn\n"
        "port = int(sys.argv[1])\n"
        "sys.argv = ['asking.py', 'legacy', '0']\n"
        f"source = open({str(SERVERS / 'asking.py')!r}).read()\n"
        "exec(source[: source.index('if len(sys.argv) > 2')])\n"
        "from mcp.server.sse import SseServerTransport\n"
        "from starlette.applications import Starlette\n"
        "from starlette.responses import Response\n"
        "from starlette.routing import Mount, Route\n"
        "transport = SseServerTransport('/messages/')\n"
        "async def sse(request):\n"
        "    async with transport.connect_sse(request.scope, request.receive, request._send) as (read, write):\n"
        "        await serve_loop(server(), read, write, lifespan_state={})\n"
        "    return Response()\n"
        "routes = [Route('/sse', sse), Mount('/messages/', app=transport.handle_post_message)]\n"
        "uvicorn.run(Starlette(routes=routes), host='127.0.0.1', port=port, log_level='error')\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, str(script), str(port)]) as server:
        try:
            with running_bridge(tmp_path, f'[backends.b]\nurl = "http://127.0.0.1:{port}/sse"\n') as bridge:
                bridge.wait_ready("b")
                assert bridge.call("b__logs")["result"]["content"][0]["text"] == "logged"
        finally:
            server.kill()


@pytest.mark.parametrize("mode", ["banner", "2024-11-05", "2025-03-26", "2025-06-18", "no-tools"])
def test_servers_with_habits_of_their_own_are_usable(tmp_path: Path, mode: str) -> None:
    with running_bridge(tmp_path, f"[backends.b]\n{plain(mode)}") as bridge:
        bridge.wait_ready("b")
        if mode == "no-tools":
            assert not [name for name in bridge.tools() if name.startswith("b__")]
            prompts = bridge.modern("prompts/list").json()["result"]["prompts"]
            assert [prompt["name"] for prompt in prompts] == ["b__hello"]
        else:
            assert bridge.call("b__echo", {"text": "ok"})["result"]["content"][0]["text"] == "ok"
        if mode.startswith("20"):
            assert bridge.backend("b")["protocol"] == mode


def test_a_child_gets_the_base_environment_and_what_is_named_and_nothing_else(tmp_path: Path) -> None:
    script = tmp_path / "environment.py"
    dump = tmp_path / "environment.json"
    script.write_text(
        f"import json, os\nopen({str(dump)!r}, 'w').write(json.dumps(dict(os.environ)))\n"
        f"exec(open({str(Path(__file__).parent / 'servers' / 'plain.py')!r}).read())\n"
    )
    config = (
        f"[backends.b]\ncommand = 'python3'\nargs = [{json.dumps(str(script))}]\n"
        "env = { NAMED = '${FROM_OUTSIDE}', LITERAL = 'x' }\n"
    )
    with running_bridge(tmp_path, config, environ={"FROM_OUTSIDE": "s3cret-value", "UNRELATED_KEY": "leak"}) as bridge:
        bridge.wait_ready("b")
        seen = json.loads(dump.read_text())
        assert seen["NAMED"] == "s3cret-value"
        assert seen["LITERAL"] == "x"
        assert "UNRELATED_KEY" not in seen
        assert "FROM_OUTSIDE" not in seen
        assert "PATH" in seen
    assert "s3cret-value" not in (tmp_path / "bridge.log").read_text()


def test_a_second_bridge_on_the_same_port_says_what_to_do(tmp_path: Path) -> None:
    with running_bridge(tmp_path, "") as bridge:
        port = bridge.url.rpartition(":")[2]
        other = tmp_path / "other"
        other.mkdir()
        command = [str(BIN / "bridgehead"), "serve", "--port", port, "--state-dir", str(other)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert second.returncode == 1
        assert "--port" in second.stderr
        assert bridge.process.poll() is None


def test_a_second_bridge_on_the_same_state_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with running_bridge(tmp_path, "") as bridge:
        command = [str(BIN / "bridgehead"), "serve", "--port", "0", "--state-dir", str(bridge.state_dir)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert second.returncode == 4
        assert "--state-dir" in second.stderr
        assert (bridge.state_dir / "address").read_text() == bridge.url


def test_a_database_that_is_none_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "bridgehead.db").write_bytes(b"this is no database" * 1000)
    command = [str(BIN / "bridgehead"), "serve", "--port", "0", "--state-dir", str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert refused.returncode == 1
    assert "bridgehead.db" in refused.stderr
    assert "hint:" in refused.stderr


def test_a_kill_of_the_child_from_outside_is_noticed_and_mended(tmp_path: Path) -> None:
    with running_bridge(tmp_path, f"[backends.b]\n{plain()}") as bridge:
        bridge.wait_ready("b")
        (child,) = psutil.Process(bridge.process.pid).children()
        child.send_signal(signal.SIGKILL)
        wait_until(lambda: bridge.backend("b")["restarts"] == 1)
        bridge.wait_ready("b", within_s=5)
        assert bridge.call("b__echo", {"text": "again"})["result"]["content"][0]["text"] == "again"
