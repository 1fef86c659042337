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


def test_a_stack_in_the_log_shows_no_values_and_goes_to_standard_error() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=30, check=True)
    assert "it broke" in done.stderr
    assert "in call" in done.stderr
    assert "hunter22222222" not in done.stderr
    assert done.stdout == ""
