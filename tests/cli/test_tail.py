"""`bridgehead tail` and `calls list`, and the id that leads from an error to the log and the record of its call."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.cli.tiny import BRIDGEHEAD, CommandLine
from tests.spine.bridge import Bridge, plain, running_bridge, wait_until


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    folder = tmp_path_factory.mktemp("tail")
    config = f'[server]\nlog_level = "debug"\nlog_format = "json"\n[backends.box]\n{plain()}'
    with running_bridge(folder, config) as running:
        running.wait_ready("box")
        yield running


@contextmanager
def tailing(bridge: Bridge, output: Path, *options: str) -> Generator[subprocess.Popen[bytes]]:
    """A `tail` that follows already, whose lines go to the file."""
    environ = CommandLine(bridge.state_dir).environ()
    with (
        output.open("wb") as file,
        subprocess.Popen([BRIDGEHEAD, "tail", *options], stdout=file, stderr=file, env=environ) as process,
    ):
        # Nothing says that it follows; a call that it shows does.
        wait_until(lambda: bridge.call("nobody__knows") and output.stat().st_size > 0)
        try:
            yield process
        finally:
            process.kill()


def lines_after(output: Path, marker: str) -> list[str]:
    """The lines that do not come of waiting for the tail to follow."""
    return [line for line in output.read_text().splitlines() if marker in line]


def test_calls_are_shown_as_they_end(bridge: Bridge, tmp_path: Path) -> None:
    with tailing(bridge, tmp_path / "out"):
        bridge.call("box__echo", {"text": "hello"})
        bridge.call("box__fail")
        wait_until(lambda: "box__fail" in (tmp_path / "out").read_text())

    echo, fail = (line.split() for line in lines_after(tmp_path / "out", " box__"))
    assert (echo[1], echo[3:8]) == ("ok", ["ms", "box__echo", "box", "mcp", "local-owner"])
    assert fail[1] == "tool_error"
    assert "hello" not in (tmp_path / "out").read_text()


def test_only_what_went_wrong_is_shown_where_that_is_asked(bridge: Bridge, tmp_path: Path) -> None:
    with tailing(bridge, tmp_path / "out", "--errors", "--json"):
        bridge.call("box__echo", {"text": "hello"})
        bridge.call("box__fail")
        wait_until(lambda: "box__fail" in (tmp_path / "out").read_text())

    (shown,) = map(json.loads, lines_after(tmp_path / "out", '"box__'))
    assert (shown["target"], shown["backend"], shown["verdict"]) == ("box__fail", "box", "tool_error")


def test_the_stream_needs_the_token(bridge: Bridge) -> None:
    refused = httpx2.get(f"{bridge.url}/api/calls/stream", headers={"Authorization": "Bearer wrong"})

    assert refused.status_code == 401
    assert refused.json()["error"]["code"] == "unauthenticated"
    denied = CommandLine(bridge.state_dir)("tail", extra={"BRIDGEHEAD_TOKEN": "wrong"})
    assert denied.returncode == 3


def test_the_id_in_an_error_leads_to_its_log_line_and_its_record(bridge: Bridge) -> None:
    as_result = bridge.call("box__echo", {"no": "text"})["result"]["_meta"]["bridgehead/error"]
    as_error = bridge.call("box__ecko")["error"]["data"]

    assert (as_result["code"], as_error["code"]) == ("invalid_arguments", "unknown_tool")
    run = CommandLine(bridge.state_dir)

    def on_record() -> dict[str, str]:
        records = json.loads(run("calls", "list", "--json", "--errors").stdout)
        return {record["call_id"]: record["code"] for record in records}

    wait_until(lambda: as_error["call_id"] in on_record())
    assert on_record()[as_result["call_id"]] == "invalid_arguments"
    logged = [json.loads(line) for line in bridge.log.read_text().splitlines()]
    assert {line["target"] for line in logged if line.get("call_id") == as_error["call_id"]} == {"box__ecko"}
    told = run("tools", "call", "box__ecko").stderr.splitlines()
    assert told[0] == "error: There is no tool 'box__ecko'."
    assert told[1].startswith("hint: Did you mean box__echo")
    assert told[1].endswith("? bridgehead tools list names them all.")
    assert told[2].startswith("call: call_")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_curl_commands_of_the_guide_work(bridge: Bridge) -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "troubleshooting.md"
    blocks = re.findall(r"```console\n(.*?)```", guide.read_text(encoding="utf-8"), flags=re.DOTALL)
    script = "echo;".join(block for block in blocks if "curl" in block)
    assert script.count("http://127.0.0.1:3001") == 2
    script = re.sub(r"TOKEN=.*", f"TOKEN={bridge.token}", script).replace("http://127.0.0.1:3001", bridge.url)

    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=30)

    health, _, called = done.stdout.partition("\n")
    assert "stderr" in json.loads(health)["backends"]["list"][0]
    assert "box__echo" in json.loads(called)["result"]["content"][0]["text"]


def test_the_address_of_the_mcp_endpoint_will_do(bridge: Bridge) -> None:
    run = CommandLine(bridge.state_dir)

    for url in (f"{bridge.url}/mcp", f"{bridge.url}/mcp/", f"{bridge.url}/mcp/work"):
        assert run("tools", "list", "--url", url).returncode == 0


def test_a_wrong_token_is_denied_by_every_list(bridge: Bridge) -> None:
    for command in ("backend", "tools", "groups"):
        done = CommandLine(bridge.state_dir)(command, "list", extra={"BRIDGEHEAD_TOKEN": "wrong"})
        assert (done.returncode, done.stdout) == (3, "")
        assert "hint: the token is that of BRIDGEHEAD_TOKEN" in done.stderr


def test_a_group_that_is_not_there_leads_to_the_groups(bridge: Bridge) -> None:
    done = CommandLine(bridge.state_dir)("tools", "list", "--group", "nope")

    assert done.returncode == 1
    assert done.stderr.endswith("hint: bridgehead groups list names them all.\n")


def test_a_tail_ends_with_its_bridge_and_says_so(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with running_bridge(tmp_path, f"[backends.box]\n{plain()}", expect_exit=True) as mine:
        mine.wait_ready("box")
        with tailing(mine, output) as process:
            mine.process.terminate()
            assert process.wait(20) == 1
        assert mine.process.wait(20) == 0

    assert "has ended" in output.read_text()
    assert "error" not in mine.log.read_text().lower()


def test_without_a_database_there_are_no_records(run: CommandLine) -> None:
    done = run("calls", "list")

    assert done.returncode == 1
    assert "no bridge has run with this state directory" in done.stderr
    assert list(run.state_dir.iterdir()) == []


def test_a_backend_that_never_started_has_nothing_out_of_date(tmp_path: Path) -> None:
    with running_bridge(tmp_path, f"[backends.gone]\n{plain('exits')}") as mine:
        wait_until(lambda: mine.backend("gone")["state"] == "down")

        assert mine.backend("gone")["stale"] is False
