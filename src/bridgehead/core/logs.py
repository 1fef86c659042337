"""Structured logs on standard error, one line an event; standard output belongs to whoever reads results there.

Every line that is written while a call runs carries its `call_id`, which the caller also gets with an error, and under which
the audit log has the call.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Literal, cast

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from bridgehead.core.terminal import takes_colours

LogFormat = Literal["text", "json"]

CURRENT_CALL: ContextVar[str | None] = ContextVar("bridgehead_call", default=None)
"""The id of the call that is running here, for the log alone. A task that outlives the call that started it sets None."""

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}


def configure_logs(level: str, form: LogFormat = "text", conceal: Callable[[str], str] = str) -> None:
    """Log from `level` on; libraries only from warnings on.

    Args:
        level: The least level that is written.
        form: `text` for people, coloured where the terminal takes it; `json` for programs: one object a line with `event`,
            `level`, `timestamp` (ISO 8601, UTC), `call_id` where there is one, and what belongs to the event.
        conceal: Given every text before it is written, stacks included; returns what may be.
    """

    def conceal_values(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return {key: value if key == "exc_info" else _concealed(value, conceal) for key, value in event.items()}

    def conceal_line(_logger: WrappedLogger, _method: str, line: Any) -> str:
        return conceal(line)

    stamps: list[Processor] = [
        _add_call,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Values before they are rendered: what was cut off is at the end of one, quotes would stand behind it, and an object
    # has to stay one. Plain tracebacks: the prettier ones print local variables, arguments and tokens among them.
    rendering: list[Processor] = (
        [structlog.processors.format_exc_info, conceal_values, _as_json]
        if form == "json"
        else [
            conceal_values,
            structlog.dev.ConsoleRenderer(
                colors=takes_colours(sys.stderr, os.environ), exception_formatter=structlog.dev.plain_traceback
            ),
            conceal_line,
        ]
    )
    structlog.configure(
        processors=[*stamps, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        # A cached logger would keep the level that it was first used with.
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*stamps, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.basicConfig(level=max(logging.WARNING, _LEVELS[level]), handlers=[handler])
    # The SDK warns of what is ordinary for a relay: sessions that end, streams that break, lines that are no messages.
    logging.getLogger("mcp").setLevel(logging.ERROR)


def set_log_level(level: str) -> None:
    """Log from another level on, and otherwise as configured."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]))
    logging.getLogger().setLevel(max(logging.WARNING, _LEVELS[level]))


def _add_call(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    call_id = CURRENT_CALL.get()
    if call_id is not None:
        event.setdefault("call_id", call_id)
    return event


def _concealed(value: Any, conceal: Callable[[str], str]) -> Any:
    """The value with every text in it concealed; what is no text becomes one where its own would give something away."""
    if isinstance(value, str):
        return conceal(value)
    if isinstance(value, Mapping):
        table = cast("Mapping[object, Any]", value)
        return {conceal(key) if isinstance(key, str) else key: _concealed(one, conceal) for key, one in table.items()}
    if isinstance(value, list):
        return [_concealed(one, conceal) for one in cast("list[Any]", value)]
    shown = repr(value)
    told = conceal(shown)
    return value if told == shown else told


def _as_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    """The event on one line, whatever is in it: what is no JSON is shown as Python writes it."""
    first = {key: event.pop(key, None) for key in ("timestamp", "level", "event")}
    event = {**first, **event}
    try:
        return orjson.dumps(event, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        shown: dict[str, Any] = {str(key): value for key, value in event.items()}
        return json.dumps(shown, default=repr, skipkeys=True)
