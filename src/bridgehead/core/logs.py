"""Structured logs on standard error, one line an event; standard output belongs to whoever reads results there."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, MutableMapping
from typing import Any

import structlog

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class _Concealing(logging.Formatter):
    """Writes what libraries log, without what is to be concealed."""

    def __init__(self, conceal: Callable[[str], str]) -> None:
        super().__init__("%(asctime)s [%(levelname)s] %(name)s: %(message)s")
        self._conceal = conceal

    def format(self, record: logging.LogRecord) -> str:
        return self._conceal(super().format(record))


def configure_logs(level: str, conceal: Callable[[str], str] = str) -> None:
    """Log from `level` on; libraries only from warnings on. Colours only on a terminal.

    `conceal` is given every text before it is written, stacks included, and returns what may be.
    """

    def conceal_values(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        # Before they are rendered: what was cut off is at the end of a value, and quotes would stand behind it.
        return {key: conceal(value) if isinstance(value, str) else value for key, value in event.items()}

    def conceal_line(_logger: Any, _method: str, line: Any) -> str:
        return conceal(line)

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            conceal_values,
            # Plain tracebacks: the prettier ones print local variables, arguments and tokens among them.
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
            conceal_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Concealing(conceal))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    # The SDK warns of what is ordinary for a relay: sessions that end, streams that break, lines that are no messages.
    logging.getLogger("mcp").setLevel(logging.ERROR)
