"""Logs say where something broke, and never what was in it."""

import subprocess
import sys

PROGRAM = """
import structlog
from bridgehead.core.logs import configure_logs

configure_logs("info")

def call(password):
    raise ValueError("it broke")

try:
    call("hunter" + "2" * 8)
except ValueError:
    structlog.get_logger("test").exception("a call broke")
"""


CONCEALING = """
import logging
import structlog
from bridgehead.core.logs import configure_logs

configure_logs("debug", lambda text: text.replace("hunter2", "***"))
log = structlog.get_logger("test")
log.info("event hunter2", line="say hunter2", parts=["hunter2"])
logging.getLogger("library").warning("it holds %s", "hunter2")
try:
    raise ValueError("hunter2")
except ValueError:
    log.exception("a call broke")
    logging.getLogger("library").exception("a call broke")
"""


def test_what_is_to_be_concealed_is_in_no_line_no_list_no_stack_and_no_librarys_words() -> None:
    done = subprocess.run([sys.executable, "-c", CONCEALING], capture_output=True, text=True, timeout=30, check=True)

    assert "hunter2" not in done.stderr.replace('raise ValueError("hunter2")', "")
    assert done.stderr.count("***") >= 6


def test_a_stack_in_the_log_shows_no_values_and_goes_to_standard_error() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=30, check=True)
    assert "it broke" in done.stderr
    assert "in call" in done.stderr
    assert "hunter22222222" not in done.stderr
    assert done.stdout == ""
