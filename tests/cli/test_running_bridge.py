"""Commands that look at a running bridge, against a tiny one over real HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
from datetime import datetime
from typing import Any

import pytest

from tests.cli.tiny import BRIDGEHEAD, TOKEN, CommandLine, TinyBridge

ECHO = {
    "name": "box__echo",
    "description": "Says it\nagain.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "times": {"type": "integer"}, "loud": {"type": "boolean"}},
    },
    "annotations": {"readOnlyHint": True},
}
WIPE = {"name": "disk__wipe", "description": "Wipes the \x1b[31mdisk."}
GUIDANCE = {"name": "guidance", "annotations": {"readOnlyHint": True}}


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": said}], **more}


def test_when_nothing_runs_it_says_so_and_how_to_start(run: CommandLine) -> None:
    done = run("tools", "list")

    assert done.returncode == 1
    assert done.stderr.startswith(
        f"error: No bridge serves from {run.state_dir}, and none answers at http://127.0.0.1:9.\n"
        "hint: start one with bridgehead serve"
    )
    elsewhere = run("tools", "list", "--url", "http://127.0.0.1:9")
    assert elsewhere.stderr.startswith("error: No bridge answers at http://127.0.0.1:9.\n")


@pytest.mark.parametrize("stream", [False, True])
def test_every_page_of_the_tools_is_listed(bridge: TinyBridge, run: CommandLine, stream: bool) -> None:
    bridge.tools = [[ECHO], [WIPE], [GUIDANCE]]
    bridge.stream = stream

    done = run("tools", "list", "--json")

    assert done.returncode == 0, done.stderr
    assert [tool["name"] for tool in json.loads(done.stdout)] == ["box__echo", "disk__wipe", "guidance"]


def test_the_table_has_names_risks_and_no_control_characters(bridge: TinyBridge, run: CommandLine) -> None:
    bridge.tools = [[ECHO, WIPE]]

    done = run("tools", "list")

    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert lines == [
        ["TOOL", "RISK", "DESCRIPTION"],
        ["box__echo", "read", "Says it again."],
        ["disk__wipe", "destructive", "Wipes the [31mdisk."],
    ]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--backend", "box"], ["box__echo"]),
        (["--backend", "builtin"], ["guidance"]),
        (["--query", "wipes DISK"], ["disk__wipe"]),
        (["--query", "nothing like it"], []),
    ],
)
def test_the_list_is_narrowed_by_backend_and_words(
    bridge: TinyBridge, run: CommandLine, options: list[str], names: list[str]
) -> None:
    bridge.tools = [[ECHO, WIPE, GUIDANCE]]

    assert [tool["name"] for tool in json.loads(run("tools", "list", "--json", *options).stdout)] == names


def test_a_group_is_asked_for_at_its_own_address(bridge: TinyBridge, run: CommandLine) -> None:
    run("tools", "list", "--group", "dev tools")

    assert bridge.requests[0][0] == "/mcp/dev%20tools"


def test_a_request_carries_what_the_2026_protocol_asks_for(bridge: TinyBridge, run: CommandLine) -> None:
    bridge.results["café"] = text("hot")

    assert run("tools", "call", "café").stdout == "hot\n"

    _, headers, body = bridge.requests[0]
    sent = {name.lower(): value for name, value in headers.items()}
    assert sent["mcp-protocol-version"] == "2026-07-28"
    assert sent["mcp-method"] == "tools/call"
    assert sent["mcp-name"] == "=?base64?Y2Fmw6k=?="
    assert sent["accept"] == "application/json, text/event-stream"
    assert sent["authorization"] == f"Bearer {TOKEN}"
    meta = body["params"]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {}
    assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "bridgehead-cli"


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_prints_the_text_of_the_result(bridge: TinyBridge, run: CommandLine, stream: bool) -> None:
    bridge.stream = stream
    bridge.results["box__echo"] = text("grüß dich")

    done = run("tools", "call", "box__echo", '{"text": "x"}')

    assert (done.returncode, done.stdout, done.stderr) == (0, "grüß dich\n", "")
    assert bridge.requests[-1][2]["params"]["arguments"] == {"text": "x"}


def test_arguments_can_come_from_standard_input(bridge: TinyBridge, run: CommandLine) -> None:
    bridge.results["box__echo"] = text("ok")

    run("tools", "call", "box__echo", "-", stdin='{"text": "piped"}')

    assert bridge.requests[-1][2]["params"]["arguments"] == {"text": "piped"}


def test_pairs_take_the_types_of_the_schema(bridge: TinyBridge, run: CommandLine) -> None:
    bridge.tools = [[ECHO]]
    bridge.results["box__echo"] = text("ok")

    run("tools", "call", "box__echo", "text=42", "times=3", "loud=true", "list=[1]", "eq=a=b")

    assert bridge.requests[-1][2]["params"]["arguments"] == {
        "text": "42",
        "times": 3,
        "loud": True,
        "list": [1],
        "eq": "a=b",
    }


def test_a_tools_failure_goes_to_standard_error_and_exits_1(bridge: TinyBridge, run: CommandLine) -> None:
    bridge.results["box__echo"] = text("no such file", isError=True)

    done = run("tools", "call", "box__echo")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "no such file\n")

    as_json = run("tools", "call", "box__echo", "--json")
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["isError"] is True


def test_what_is_not_text_is_named(bridge: TinyBridge, run: CommandLine) -> None:
    bridge.results["shot"] = {"content": [{"type": "image", "mimeType": "image/png", "data": "aGk="}]}
    bridge.results["sum"] = {"content": [], "structuredContent": {"sum": 3}}

    assert run("tools", "call", "shot").stdout == "[image image/png, 4 characters of base64; --json shows it]\n"
    assert json.loads(run("tools", "call", "sum").stdout) == {"sum": 3}


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (404, "unknown_prompt", 1),
        (403, "forbidden", 3),
        (409, "confirmation_required", 4),
        (200, "confirmation_required", 4),
        (429, "something_new", 1),
    ],
)
def test_the_bridges_refusal_is_shown_with_its_hint_and_exit_code(
    bridge: TinyBridge, run: CommandLine, status: int, code: str, expected: int
) -> None:
    error = {"code": -32602, "message": "It was refused. hint: do this.", "data": {"code": code, "hint": "do this."}}
    bridge.results["box__echo"] = {"http": status, "error": error}

    done = run("tools", "call", "box__echo")

    assert (done.returncode, done.stderr) == (expected, "error: It was refused.\nhint: do this.\n")


def test_a_missing_token_exits_3_and_says_where_it_is_read(bridge: TinyBridge, run: CommandLine) -> None:
    (run.state_dir / "local-token").unlink()

    done = run("tools", "list")

    assert done.returncode == 3
    assert done.stderr == (
        "error: A token is needed.\n"
        f"hint: there is no token in {run.state_dir / 'local-token'}; --state-dir or BRIDGEHEAD_TOKEN gives another.\n"
    )
    assert run("tools", "list", extra={"BRIDGEHEAD_TOKEN": TOKEN}).returncode == 0


def test_a_result_that_asks_for_input_is_a_conflict(bridge: TinyBridge, run: CommandLine) -> None:
    bridge.results["box__echo"] = {"resultType": "input_required", "requestState": "x"}

    assert run("tools", "call", "box__echo").returncode == 4


def test_showing_a_tool_asks_the_bridges_guidance(bridge: TinyBridge, run: CommandLine) -> None:
    bridge.tools = [[ECHO]]
    bridge.results["guidance"] = text("# `box__echo`")

    assert run("tools", "show", "box__echo").stdout == "# `box__echo`\n"
    assert bridge.requests[-1][2]["params"]["arguments"] == {"topic": "tool", "tool_name": "box__echo"}
    assert json.loads(run("tools", "show", "box__echo", "--json").stdout) == ECHO
    absent = run("tools", "show", "box__nope", "--json")
    assert absent.returncode == 1
    assert "error: There is no tool 'box__nope'.\nhint: " in absent.stderr
    assert "bridgehead tools list" in absent.stderr
    as_page = run("tools", "show", "box__ecko")
    assert (as_page.returncode, as_page.stdout) == (1, "")
    assert as_page.stderr == (
        "error: There is no tool 'box__ecko'.\nhint: Did you mean box__echo? bridgehead tools list names them all.\n"
    )


def test_backends_are_listed_with_state_and_cause(bridge: TinyBridge, run: CommandLine) -> None:
    down = {
        "name": "box",
        "state": "down",
        "cause": "It exited.",
        "since": "2026-11-30T12:00:00+00:00",
        "restarts": 3,
        "protocol": None,
        "server": None,
        "tools": 7,
        "stale": True,
        "next_try": "2026-11-30T12:01:00+00:00",
    }
    bridge.pages["/groups"] = {}
    tools = {"external": 7, "builtin": 2, "total": 9, "hidden": 1}
    bridge.pages["/health"] = {"backends": {"list": [down]}, "tools": tools}

    done = run("backend", "list")

    assert done.returncode == 0, done.stderr
    since, until = (
        f"{datetime.fromisoformat(str(down[key])).astimezone():%Y-%m-%d %H:%M:%S}" for key in ("since", "next_try")
    )
    assert [" ".join(line.split()) for line in done.stdout.splitlines()] == [
        "BACKEND STATE TOOLS RESTARTS PROTOCOL SERVER SINCE",
        f"box down (stale) 7 3 {since}",
        "box: It exited.",
        f"tried next at {until}",
        "7 tools of backends and 2 of the bridge itself: 9 can be called, and 1 hidden.",
    ]
    assert json.loads(run("backend", "list", "--json").stdout) == [down]


def test_groups_are_listed_on_and_off(bridge: TinyBridge, run: CommandLine) -> None:
    groups: dict[str, dict[str, Any]] = {
        "core": {"enabled": True, "description": "Always.", "tools": 2, "toolNames": ["guidance"]},
        "danger": {"enabled": False, "description": "Never.", "tools": 0, "toolNames": []},
    }
    bridge.pages["/groups"] = groups

    assert [line.split() for line in run("groups", "list").stdout.splitlines()[1:]] == [
        ["core", "on", "2", "Always."],
        ["danger", "off", "0", "Never."],
    ]
    assert json.loads(run("groups", "list", "--json").stdout) == groups


def test_something_that_is_no_bridge_is_told_apart(bridge: TinyBridge, run: CommandLine) -> None:
    bridge.pages["/groups"] = ["not", "groups"]

    done = run("groups", "list")

    assert done.returncode == 1
    assert "does not speak as a bridge does" in done.stderr


def test_a_url_that_is_none_is_refused(run: CommandLine) -> None:
    done = run("tools", "list", "--url", "bridge.example")

    assert done.returncode == 1
    assert "'bridge.example' is not the URL of a bridge" in done.stderr


def test_control_c_is_quiet(bridge: TinyBridge, run: CommandLine) -> None:
    with subprocess.Popen(
        [BRIDGEHEAD, "tools", "call", "hang"],
        env=run.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Whoever runs the tests in the background of a shell has them ignore the signal, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    ) as process:
        assert bridge.asked.wait(30)
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=30)

    assert (process.returncode, said, complained) == (130, b"", b"")
