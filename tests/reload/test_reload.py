"""A running bridge follows its configuration: real processes, real files, looked at from outside."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from tests.spine.bridge import BIN, SERVERS, Bridge, running_bridge, wait_until

WITHIN_S = 1.0
"""How soon an edit has to be in force."""


def server(marker: str) -> str:
    """The lines of a configuration for `servers/plain.py`, whose process can be told by its command line."""
    args = [str(SERVERS / "plain.py"), "plain", os.devnull, marker]
    return f"command = {json.dumps(sys.executable)}\nargs = {json.dumps(args)}\n"


def children(bridge: Bridge) -> dict[str, int]:
    """The process of each server that runs, by the last word of its command line."""
    found: dict[str, int] = {}
    for child in psutil.Process(bridge.process.pid).children(recursive=True):
        try:
            found[child.cmdline()[-1]] = child.pid
        except (psutil.NoSuchProcess, psutil.ZombieProcess, IndexError):
            continue
    return found


class Edited:
    """A bridge and the file that it follows."""

    def __init__(self, bridge: Bridge, file: Path) -> None:
        self.bridge = bridge
        self.file = file

    def save(self, text: str) -> None:
        """Save as careful editors do."""
        draft = self.file.with_suffix(".draft")
        draft.write_text(text)
        draft.replace(self.file)

    def config(self) -> dict[str, Any]:
        """What the bridge says of its configuration."""
        return self.bridge.get("/health").json()["config"]

    def save_and_wait(self, text: str) -> None:
        """Save, and return once it is in force, which has to be soon."""
        before = self.config()["loaded"]
        self.save(text)
        wait_until(lambda: self.config()["loaded"] != before, within_s=WITHIN_S)


A = f"[backends.a]\n{server('a1')}\n"


@pytest.fixture(scope="module")
def bridge_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edited]:
    """One bridge for all tests, since an edit puts it back."""
    directory = tmp_path_factory.mktemp("bridge")
    with running_bridge(directory, A) as bridge:
        bridge.wait_ready("a")
        yield Edited(bridge, directory / "bridgehead.toml")


@pytest.fixture
def edited(bridge_of_all: Edited) -> Edited:
    """A bridge with one backend `a`, whose process is marked `a1`."""
    bridge_of_all.save_and_wait(A)
    wait_until(lambda: bridge_of_all.bridge.health()["status"] == "ok", within_s=10)
    wait_until(lambda: children(bridge_of_all.bridge).keys() == {"a1"}, within_s=10)
    return bridge_of_all


def said(answer: dict[str, Any]) -> str:
    """The text of a result, or what the error says."""
    return answer["result"]["content"][0]["text"] if "result" in answer else answer["error"]["message"]


def code_or_text(answer: dict[str, Any]) -> str:
    """The code of what went wrong, or the text of the result."""
    if "error" in answer:
        return answer["error"]["data"]["code"]
    error = answer["result"].get("_meta", {}).get("bridgehead/error")
    return error["code"] if error else said(answer)


def test_an_edit_is_in_force_within_a_second_and_what_it_does_not_touch_keeps_its_process(edited: Edited) -> None:
    bridge = edited.bridge
    pid = children(bridge)["a1"]

    edited.save(f"[backends.b]\n{server('b1')}\n{A}")
    wait_until(lambda: "b__echo" in bridge.tools(), within_s=WITHIN_S)
    assert said(bridge.call("b__echo", {"text": "new"})) == "new"
    # In the order of the configuration, as after a restart.
    assert [each["name"] for each in bridge.health()["backends"]["list"]] == ["b", "a"]

    edited.save(f"[backends.b]\n{server('b2')}\n{A}")
    wait_until(lambda: "b2" in children(bridge), within_s=WITHIN_S)
    wait_until(lambda: "b1" not in children(bridge), within_s=5)
    wait_until(lambda: "b__echo" in bridge.tools(), within_s=5)

    edited.save(A)
    wait_until(lambda: "b__echo" not in bridge.tools(), within_s=WITHIN_S)
    assert bridge.call("b__echo", {"text": "gone"})["error"]["data"]["code"] == "unknown_tool"
    wait_until(lambda: children(bridge) == {"a1": pid}, within_s=5)
    assert [each["name"] for each in bridge.health()["backends"]["list"]] == ["a"]
    assert bridge.backend("a")["restarts"] == 0


def test_a_backend_that_is_switched_off_or_lacks_a_variable_ends_and_says_why_until_it_is_mended(
    edited: Edited,
) -> None:
    bridge = edited.bridge
    edited.save_and_wait(A + "enabled = false\n")
    assert bridge.backend("a")["state"] == "disabled"
    assert "a__echo" not in bridge.tools()
    wait_until(lambda: not children(bridge), within_s=5)

    edited.save_and_wait(A + 'env = { KEY = "${NEVER_SET_BY_ANYONE}" }\n')
    assert bridge.backend("a")["state"] == "broken"
    assert "NEVER_SET_BY_ANYONE" in bridge.backend("a")["cause"]

    edited.save_and_wait(A + 'env = { KEY = "${NEVER_SET_BY_ANYONE:-set}" }\n')
    bridge.wait_ready("a", within_s=5)
    assert said(bridge.call("a__echo", {"text": "back"})) == "back"


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        ("[backends.a", "line 1"),
        (f"{A}\n[backends.b]\ncommand = 'x'\nurl = 'http://x.example'\n", "both"),
        (f"{A}\ncomand = 'x'\n", "did you mean `command`"),
        (f"{A}\n[groups.g]\nmembers = [{{ backend = 'zz' }}]\n", "zz"),
        ("", "empty"),
    ],
    ids=["no-toml", "contradiction", "unknown-key", "unknown-backend", "empty"],
)
def test_a_broken_file_changes_nothing_and_says_why_until_it_is_mended(edited: Edited, broken: str, word: str) -> None:
    bridge = edited.bridge
    pid = children(bridge)["a1"]
    edited.save(broken)
    wait_until(lambda: edited.config()["error"], within_s=WITHIN_S)

    error = edited.config()["error"]
    assert word in error["message"]
    assert error["since"] > edited.config()["loaded"]
    assert word in bridge.log.read_text()
    assert bridge.health()["status"] == "degraded"
    assert "config" not in bridge.health()
    assert said(bridge.call("a__echo", {"text": "still"})) == "still"

    edited.save(A)
    wait_until(lambda: edited.config()["error"] is None, within_s=WITHIN_S)
    assert children(bridge) == {"a1": pid}
    assert bridge.health()["status"] == "ok"


def test_a_file_that_is_gone_is_broken_and_not_empty(edited: Edited) -> None:
    edited.file.unlink()
    wait_until(lambda: edited.config()["error"], within_s=WITHIN_S)

    assert "There is no file" in edited.config()["error"]["message"]
    assert "a__echo" in edited.bridge.tools()


def test_a_hundred_quick_rewrites_end_as_the_last_and_leave_no_process(edited: Edited) -> None:
    """Each rewrite is torn: the file is emptied and written in two steps, now and then with a pause in between."""
    bridge, chance = edited.bridge, random.Random(7)  # noqa: S311 – the same on every run
    pid = children(bridge)["a1"]
    texts = [
        f"{A}[backends.b]\n{server(f'b{number}')}\n[limits]\nresult_bytes = {1000 + number}\n" for number in range(100)
    ]
    for text in texts:
        middle = len(text) // 2
        with edited.file.open("w") as file:
            file.flush()
            time.sleep(chance.choice((0, 0, 0.001, 0.02)))
            file.write(text[:middle])
            file.flush()
            time.sleep(chance.choice((0, 0, 0.001, 0.02)))
            file.write(text[middle:])
        # Some settle and are put in force, most do not.
        time.sleep(chance.choice((0, 0, 0, 0.005, 0.005, 0.01, 0.01, 0.25)))
    wait_until(lambda: children(bridge).keys() == {"a1", "b99"}, within_s=10)
    bridge.wait_ready("a", "b", within_s=5)

    assert edited.config()["error"] is None
    assert children(bridge)["a1"] == pid
    assert said(bridge.call("b__big", {"bytes": 3000})).startswith("x" * 1099)
    assert [child.pid for child in psutil.Process(bridge.process.pid).children(recursive=True)] == [
        pid,
        children(bridge)["b99"],
    ]


def test_calls_in_flight_survive_on_a_backend_that_stays_and_have_their_grace_on_one_that_goes(edited: Edited) -> None:
    bridge = edited.bridge
    edited.save_and_wait(f"{A}[backends.b]\n{server('b1')}\n[backends.c]\n{server('c1')}\n")
    bridge.wait_ready("b", "c", within_s=5)
    with ThreadPoolExecutor() as threads:
        stays = threads.submit(bridge.call, "a__slow", {"seconds": 1.5})
        has_grace = threads.submit(bridge.call, "b__slow", {"seconds": 1.5})
        time.sleep(0.3)
        edited.save_and_wait(f"{A}[backends.c]\n{server('c1')}\n")
        assert not stays.done()
        assert not has_grace.done()
        assert said(stays.result()) == "at last"
        assert said(has_grace.result()) == "at last"
        wait_until(lambda: children(bridge).keys() == {"a1", "c1"}, within_s=5)

        hangs = threads.submit(bridge.call, "c__hang")
        time.sleep(0.3)
        began = time.monotonic()
        edited.save_and_wait(f"[server]\nshutdown_grace_s = 0.3\n{A}")
        answer = hangs.result()["result"]
        assert time.monotonic() - began < 3
        assert answer["isError"] is True
        assert answer["_meta"]["bridgehead/error"]["code"] == "backend_unavailable"
        assert "taken out by a change of the configuration" in answer["content"][0]["text"]
        assert "may or may not" in answer["content"][0]["text"]
        wait_until(lambda: children(bridge).keys() == {"a1"}, within_s=5)


def test_times_and_limits_change_without_a_restart(edited: Edited) -> None:
    bridge = edited.bridge
    pid = children(bridge)["a1"]
    with ThreadPoolExecutor() as threads:
        unhurried = threads.submit(bridge.call, "a__slow", {"seconds": 1.2})
        time.sleep(0.3)
        edited.save_and_wait(f"{A}timeout_s = 0.4\nresult_bytes = 1000\n[limits]\ncalls_per_minute = 3\n")
        assert bridge.call("a__hang")["result"]["_meta"]["bridgehead/error"]["code"] == "backend_timeout"
        assert "too large to send at once" in bridge.call("a__big", {"bytes": 3000})["result"]["content"][1]["text"]
        # It began under the other configuration, and ends under it.
        assert said(unhurried.result()) == "at last"
    codes = [code_or_text(bridge.call("a__fail", {"number": number})) for number in range(4)]
    assert codes == [*["it did not work"] * 3, "rate_limited"]
    assert children(bridge) == {"a1": pid}
    edited.save_and_wait(A)
    assert said(bridge.call("a__fail")) == "it did not work"


def test_groups_that_are_switched_get_and_lose_their_address_at_once(edited: Edited) -> None:
    bridge = edited.bridge
    group = "[groups.some]\nmembers = [{ backend = 'a', names = ['echo'] }]\n"
    assert bridge.modern("tools/list", group="/some").status_code == 404
    edited.save_and_wait(A + group)
    assert [name for name in bridge.tools("/some") if "__" in name] == ["a__echo"]
    assert said(bridge.call("a__echo", {"text": "in"}, group="/some")) == "in"
    edited.save_and_wait(f"[server]\nungrouped = 'hide'\n{A}{group}")
    assert [name for name in bridge.tools() if "__" in name] == ["a__echo"]
    pid = children(bridge)["a1"]
    with ThreadPoolExecutor() as threads:
        edited.save_and_wait(A + group.replace("'echo'", "'slow', 'hang'"))
        in_flight = threads.submit(bridge.call, "a__slow", {"seconds": 1.2}, group="/some")
        time.sleep(0.3)
        edited.save_and_wait(A + group + "enabled = false\n")
        gone, unknown = (bridge.modern("tools/list", group=name) for name in ("/some", "/nonesuch"))
        assert gone.status_code == unknown.status_code == 404
        assert gone.text.replace("some", "") == unknown.text.replace("nonesuch", "")
        assert said(in_flight.result()) == "at last"
    assert children(bridge) == {"a1": pid}


def test_calls_in_the_middle_of_many_swaps_see_one_world_or_the_other(edited: Edited) -> None:
    """`b` comes, is another one, and goes, while `a` and `b` are called without a pause."""
    bridge = edited.bridge
    stop = False
    answers: list[str] = []

    def call(backend: str) -> None:
        while not stop:
            answers.append(f"{backend}: {code_or_text(bridge.call(f'{backend}__echo', {'text': backend}))}")

    with ThreadPoolExecutor() as threads:
        callers = [threads.submit(call, backend) for backend in "aabb"]
        for number in range(4):
            edited.save_and_wait(f"{A}[backends.b]\n{server(f'b{number}')}\n")
            time.sleep(0.2)
            edited.save_and_wait(A)
        stop = True
        for caller in callers:
            caller.result()
    assert set(answers) <= {"a: a", "b: b", "b: unknown_tool", "b: backend_unavailable"}
    assert {"a: a", "b: b", "b: unknown_tool"} <= set(answers)


def test_keys_that_take_a_restart_are_named_and_the_others_are_in_force(edited: Edited) -> None:
    bridge = edited.bridge
    foreign = {"host": "bridge.example"}
    assert httpx2.get(f"{bridge.url}/health", headers=foreign).status_code == 421
    edited.save_and_wait(
        "[server]\nhost = 'localhost'\nport = 1\nallowed_hosts = ['bridge.example']\nallowed_origins = ['https://page.example']\n"
        f"max_body_bytes = 400\nfast_lane = false\nlog_format = 'json'\n{A}"
    )

    # The port was given on the command line, where it stays what it is whatever the file says.
    assert edited.config()["needs_restart"] == ["server.host", "server.log_format", "server.fast_lane"]
    assert "server.host" in bridge.log.read_text()
    assert httpx2.get(f"{bridge.url}/health", headers=foreign).status_code == 200
    assert bridge.get("/health", Origin="https://page.example").status_code == 200
    known = {**bridge.auth, **foreign}
    assert httpx2.get(f"{bridge.url}/mcp", headers=known).status_code == 405
    assert bridge.modern("tools/call", {"name": "a__echo", "arguments": {"text": "x" * 500}}).status_code == 413
    edited.save_and_wait(f"[server]\nlog_level = 'error'\n{A}")
    assert edited.config()["needs_restart"] == []
    # Whoever was let in before is looked at again.
    assert httpx2.get(f"{bridge.url}/mcp", headers=known).status_code == 421
    before = bridge.log.read_text()
    edited.save_and_wait(f"[server]\nlog_level = 'error'\n{A}timeout_s = 5\n")
    assert bridge.log.read_text() == before
    edited.save_and_wait(f"[server]\nlog_level = 'debug'\n{A}")
    assert said(bridge.call("a__echo", {"text": "told"})) == "told"
    wait_until(lambda: "target=a__echo" in bridge.log.read_text(), within_s=5)
    assert httpx2.get(f"{bridge.url}/health", headers=foreign).status_code == 421
    assert said(bridge.call("a__echo", {"text": "x" * 500})) == "x" * 500


def test_backend_list_says_that_the_file_is_not_in_force(edited: Edited) -> None:
    edited.save("[backends.a")
    wait_until(lambda: edited.config()["error"], within_s=WITHIN_S)
    command = [str(BIN / "bridgehead"), "backend", "list", "--json", "--state-dir", str(edited.bridge.state_dir)]
    done = psutil.Popen(command, stdout=-1, stderr=-1, text=True)
    out, err = done.communicate(timeout=30)

    assert [each["name"] for each in json.loads(out)] == ["a"]
    assert "the last good configuration stays in force" in err
    assert "line 1" in err


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there are no hangups here")
def test_sighup_reads_the_file_at_once(edited: Edited) -> None:
    bridge = edited.bridge
    pid = children(bridge)["a1"]
    before = edited.config()["loaded"]
    bridge.process.send_signal(signal.SIGHUP)
    wait_until(lambda: edited.config()["loaded"] != before, within_s=WITHIN_S)
    assert children(bridge) == {"a1": pid}
    assert "SIGHUP" in bridge.log.read_text()


def test_a_bridge_without_a_file_takes_the_one_that_is_written_and_then_holds_to_it(tmp_path: Path) -> None:
    with running_bridge(tmp_path, None, environ={"XDG_CONFIG_HOME": str(tmp_path / "config")}) as bridge:
        edited = Edited(bridge, tmp_path / "config" / "bridgehead" / "bridgehead.toml")
        assert edited.config()["source"] is None
        edited.file.parent.mkdir(parents=True)
        edited.save_and_wait(f"[backends.b]\n{server('b1')}")
        bridge.wait_ready("b", within_s=5)
        assert edited.config()["source"] == str(edited.file)
        # At the next start this one would be taken; until then the file in force is followed, and no other.
        (tmp_path / "bridgehead.toml").write_text(A)
        edited.save_and_wait(f"[backends.c]\n{server('c1')}")
        assert [each["name"] for each in bridge.health()["backends"]["list"]] == ["c"]
