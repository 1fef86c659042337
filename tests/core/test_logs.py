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
