"""Logs say where something broke and in which call, and never what was in it."""

import io
import json
import subprocess
import sys

import pytest

from bridgehead.core.terminal import takes_colours

PROGRAM = """
import logging, sys
import structlog
from bridgehead.core.logs import CURRENT_CALL, configure_logs

configure_logs("info", sys.argv[1])
log = structlog.get_logger("test")

def call(password):
    raise ValueError("it broke")

log.debug("not wanted")
running = CURRENT_CALL.set("call_1")
try:
    call("hunter" + "2" * 8)
except ValueError:
    log.exception("a call broke", odd=object, big=10**40, lone="\\ud800", text="grüße")
logging.getLogger("library").warning("of %s", "a library")
logging.getLogger("library").info("not wanted")
CURRENT_CALL.reset(running)
log.info("after it")
"""


CONCEALING = """
import logging, sys
import structlog
from bridgehead.core.logs import configure_logs

configure_logs("debug", sys.argv[1], lambda text: text.replace("hunter2", "***"))
log = structlog.get_logger("test")
log.info("event hunter2", line="say hunter2", parts=["hunter2"], table={"hunter2": {"x": "hunter2"}})
log.info("an object", error=ValueError("hunter2"), pair=("hunter2", 1))
logging.getLogger("library").warning("it holds %s", "hunter2")
try:
    raise ValueError("hunter2")
except ValueError:
    log.exception("a call broke")
    logging.getLogger("library").exception("a call broke")
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_is_to_be_concealed_is_in_no_line_no_list_no_stack_and_no_librarys_words(form: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONCEALING, form], capture_output=True, text=True, timeout=30, check=True
    )

    assert "hunter2" not in done.stderr.replace('raise ValueError("hunter2")', "")
    assert done.stderr.count("***") >= 10
    if form == "json":
        first = json.loads(done.stderr.splitlines()[0])
        assert (first["event"], first["parts"], first["table"]) == ("event ***", ["***"], {"***": {"x": "***"}})
        assert [json.loads(line)["level"] for line in done.stderr.splitlines()][-2:] == ["error", "error"]


def logged(form: str) -> str:
    done = subprocess.run([sys.executable, "-c", PROGRAM, form], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == ""
    assert "not wanted" not in done.stderr
    assert "hunter22222222" not in done.stderr
    return done.stderr


def test_a_stack_in_the_log_shows_no_values_and_goes_to_standard_error() -> None:
    told = logged("text")

    assert "it broke" in told
    assert "in call" in told
    assert told.count("call_1") == 2
    assert "\x1b" not in told


def test_logs_for_programs_are_one_object_a_line_whatever_is_in_them() -> None:
    broke, library, after = map(json.loads, logged("json").splitlines())

    assert list(broke)[:3] == ["timestamp", "level", "event"]
    assert (broke["level"], broke["event"], broke["call_id"]) == ("error", "a call broke", "call_1")
    assert broke["timestamp"].endswith("Z")
    assert "in call" in broke["exception"]
    assert (broke["big"], broke["text"]) == (10**40, "grüße")
    assert (library["event"], library["level"], library["logger"]) == ("of a library", "warning", "library")
    assert library["call_id"] == "call_1"
    assert (after["event"], "call_id" in after) == ("after it", False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "coloured"),
    [
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "xterm", "FORCE_COLOR": "0"}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_are_for_terminals_that_take_them(stream: io.StringIO, environ: dict[str, str], coloured: bool) -> None:
    assert takes_colours(stream, environ) is coloured
