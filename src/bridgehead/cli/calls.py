"""How a call that has ended is shown: one line, the same whether it was live or on record."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bridgehead.cli.output import Colour, painted, plain

GOOD_VERDICTS = ("ok", "input_required")
_COLOURS = {"ok": Colour.GREEN, "input_required": Colour.GREEN, "cancelled": Colour.YELLOW, "tool_error": Colour.YELLOW}
_VERDICT_WIDTH = 14
_TARGET_WIDTH = 36
_BACKEND_WIDTH = 14


def call_line(call: Mapping[str, Any]) -> str:
    """Time of day, verdict, milliseconds, target, backend, surface, caller, id, and the code where there is one."""
    verdict = plain(call.get("verdict"))
    code = call.get("code")
    shown = painted(f"{verdict:<{_VERDICT_WIDTH}}", _COLOURS.get(verdict, Colour.RED))
    milliseconds = float(call.get("seconds") or 0) * 1000
    words = [
        _time_of_day(str(call.get("at"))),
        shown,
        f"{milliseconds:>8.1f} ms",
        f"{_target(call):<{_TARGET_WIDTH}}",
        f"{plain(call.get('backend') or '-'):<{_BACKEND_WIDTH}}",
        plain(call.get("surface")),
        plain(call.get("caller")),
        painted(plain(call.get("call_id")), Colour.FAINT),
    ]
    return "  ".join([*words, plain(code)] if code else words)


def _target(call: Mapping[str, Any]) -> str:
    target = plain(call.get("target"))
    # Most calls are of tools; the others say what they are.
    return target if call.get("method") == "tools/call" else f"{target} ({plain(call.get('method'))})"


def _time_of_day(at: str) -> str:
    """The moment on this machine's clock, to the millisecond."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%H:%M:%S.%f")[:-3]
    except ValueError:
        return plain(at)
