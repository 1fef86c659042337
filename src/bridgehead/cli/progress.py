"""One line on standard error that says how far something long is; only on a terminal, and gone when it is done."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType
from typing import Self

from bridgehead.cli.output import plain

_CLEAR = "\r\x1b[K"
_EVERY_S = 1.0


class ProgressLine:
    """Shows the line, and counts its seconds, for as long as the context lasts."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._on = sys.stderr.isatty()
        self._began = time.monotonic()
        self._state: tuple[int, int, tuple[str, ...]] | None = None
        self._over = threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._tick, name="bridgehead-progress", daemon=True)

    def __enter__(self) -> Self:
        if self._on:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._on:
            self._over.set()
            self._thread.join()
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def show(self, done: int, total: int, trying: tuple[str, ...]) -> None:
        """How many of how many are done, and which are being worked at."""
        self._state = (done, total, trying)
        self._write()

    def _tick(self) -> None:
        while not self._over.wait(_EVERY_S):
            self._write()

    def _write(self) -> None:
        state = self._state
        if not self._on or state is None:
            return
        done, total, trying = state
        seconds = time.monotonic() - self._began
        text = plain(f"{self._doing}: {done} of {total} done, {seconds:.0f} s; {', '.join(trying)}")
        with self._writing:
            sys.stderr.write(_CLEAR + text[: shutil.get_terminal_size().columns - 1])
            sys.stderr.flush()
