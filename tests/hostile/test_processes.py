"""No process outlives its bridge, however either ends."""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import psutil
import pytest

from tests.hostile.bench import ROUGH, alive, noted, rough, said, tree
from tests.spine.bridge import Bridge, running_bridge, wait_until

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a system tells less of its processes")


def pids_of(bridge: Bridge, least: int = 5) -> list[int]:
    """All processes of a stubborn server, once the last of them is up."""
    wait_until(lambda: len(tree(bridge)) >= least, within_s=20)
    return [process.pid for process in tree(bridge)]


@LINUX
def test_a_tree_that_ignores_sigterm_and_left_its_group_ends_with_the_bridge(tmp_path: Path) -> None:
    with running_bridge(tmp_path, rough("b", "stubborn")) as bridge:
        bridge.wait_ready("b")
        pids = pids_of(bridge)
    assert alive(pids) == []
    assert list((bridge.state_dir / "children").iterdir()) == []


@LINUX
def test_a_second_signal_gives_calls_up_and_leaves_no_process_behind(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    config = "[server]\nshutdown_grace_s = 600\n" + rough("b", "stubborn", journal, more="timeout_s = 600")
    with running_bridge(tmp_path, config, expect_exit=True) as bridge, ThreadPoolExecutor() as threads:
        bridge.wait_ready("b")
        pids = pids_of(bridge)
        call = threads.submit(bridge.modern, "tools/call", {"name": "b__hang", "arguments": {}}, timeout_s=60)
        wait_until(lambda: any(line.get("call") == "hang" for line in noted(journal)))
        bridge.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert bridge.process.poll() is None, "a first signal lets calls end"
        bridge.process.send_signal(signal.SIGTERM)
        assert bridge.process.wait(20) == 0
        # Answered or cut off, it knows.
        assert call.exception(timeout=20) is not None or call.result() is not None
    assert alive(pids) == []
    with closing(sqlite3.connect(bridge.state_dir / "bridgehead.db")) as database:
        assert database.execute("SELECT count(*) FROM audit").fetchone() == (1,)


@LINUX
def test_what_a_killed_bridge_leaves_ends_at_once_or_with_the_next_start(tmp_path: Path) -> None:
    config = rough("plain") + rough("b", "stubborn-known")
    bridge, pids = _killed(tmp_path, config)
    on_record = {json.loads(path.read_text())["pid"] for path in (bridge.state_dir / "children").glob("*.json")}
    assert len(on_record) == 2
    wait_until(lambda: not on_record & set(alive(pids)), within_s=5)
    assert alive(pids), "the stubborn ones that nobody told anything are left for the sweep"
    stranger = psutil.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        _pretend_to_be_a_child(tmp_path / "state" / "children", stranger.pid)
        (bridge.state_dir / "address").unlink()
        with running_bridge(tmp_path, config) as bridge:
            bridge.wait_ready("plain", "b")
            assert alive(pids) == []
            assert alive([stranger.pid]) == [stranger.pid]
    finally:
        stranger.kill()
        stranger.wait()


def _killed(tmp_path: Path, config: str) -> tuple[Bridge, list[int]]:
    """A bridge that was killed, and everything it ran."""
    with ExitStack() as stack:
        bridge = stack.enter_context(running_bridge(tmp_path, config, expect_exit=True))
        bridge.wait_ready("plain", "b")
        pids = pids_of(bridge)
        bridge.process.kill()
        bridge.process.wait()
        # Leaving would find fault with how it ended.
        with suppress(AssertionError):
            stack.close()
    return bridge, pids


def _pretend_to_be_a_child(records: Path, pid: int) -> None:
    """Give the number of a stranger to a record, as when a number is given out again."""
    (path, *_) = sorted(records.glob("*.json"))
    record = json.loads(path.read_text())
    (records / "0.1.json").write_text(json.dumps({**record, "pid": pid, "mark": "0.1"}))
    (records / "broken.json").write_text("{")


@LINUX
@pytest.mark.parametrize(
    "line",
    ['exec "$@"', '"$@" <&3 & wait', '"$@"; true', '( "$@" ) <&3 & wait $!'],
    ids=["exec", "wait", "then", "nested"],
)
def test_a_shell_around_the_server_hides_none_of_it(tmp_path: Path, line: str) -> None:
    # A shell gives what it puts into the background no input of its own accord.
    args = json.dumps(["-c", f"exec 3<&0; {line}", "sh", sys.executable, "-S", str(ROUGH)])
    with running_bridge(tmp_path, f"[backends.b]\ncommand = 'sh'\nargs = {args}\n") as bridge:
        bridge.wait_ready("b")
        assert said(bridge.call("b__read")) == "read"
        server = int(said(bridge.call("b__pid")))
        pids = [process.pid for process in tree(bridge)]
        assert server in pids
        psutil.Process(server).kill()
        wait_until(lambda: bridge.backend("b")["restarts"] == 1)
        bridge.wait_ready("b", within_s=5)
        assert alive(pids) == []
        pids = [process.pid for process in tree(bridge)]
    assert alive(pids) == []


def test_a_death_is_noticed_although_a_grandchild_holds_the_pipes_open(tmp_path: Path) -> None:
    with running_bridge(tmp_path, rough("b")) as bridge:
        bridge.wait_ready("b")
        began = time.monotonic()
        assert "exited with code 9" in said(bridge.call("b__leave"))
        assert time.monotonic() - began < 8
        assert said(bridge.call("b__read")) == "read"
        wait_until(lambda: len(tree(bridge)) == 1)
