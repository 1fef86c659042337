"""The audit log with listeners: each record goes to the log, and a copy to whoever follows the calls as they happen.

A reader has a bounded queue of its own. One that does not keep up loses the oldest records and is told how many; a call never
waits for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from contextlib import contextmanager

import anyio

from bridgehead.core.errors import RateLimited
from bridgehead.gate.ports import AuditLog, AuditRecord

QUEUED = 1_000
"""Records that may wait for one reader."""
MOST_READERS = 32


class Reader:
    """The records since it began to follow, in order."""

    def __init__(self) -> None:
        self._queue: deque[AuditRecord] = deque()
        self._lost = 0
        self._wake = anyio.Event()
        self._ended = False

    def offer(self, record: AuditRecord) -> None:
        """Accept the record, at the cost of the oldest one where the queue is full."""
        if len(self._queue) >= QUEUED:
            self._queue.popleft()
            self._lost += 1
        self._queue.append(record)
        self._wake.set()

    def end(self) -> None:
        """Let the reader go once it has what is queued."""
        self._ended = True
        self._wake.set()

    async def take(self) -> tuple[list[AuditRecord], int] | None:
        """What has come since the last time, with how many were lost before it; None when nothing will come any more."""
        while not self._queue:
            if self._ended:
                return None
            self._wake = anyio.Event()
            await self._wake.wait()
        records, lost = list(self._queue), self._lost
        self._queue.clear()
        self._lost = 0
        return records, lost


class Broadcast:
    """Implements the gate's `AuditLog` over another one. Belongs to the event loop: nothing here is safe between threads."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self._readers: set[Reader] = set()

    def append(self, record: AuditRecord) -> None:
        """Give the record to the log, then to the readers."""
        self._log.append(record)
        for reader in self._readers:
            reader.offer(record)

    @contextmanager
    def follow(self) -> Generator[Reader]:
        """A reader, for as long as the context lasts.

        Raises:
            RateLimited: There are as many as there may be.
        """
        if len(self._readers) >= MOST_READERS:
            raise RateLimited(
                f"{MOST_READERS} readers follow the calls already.", hint="end one of them, then try again."
            )
        reader = Reader()
        self._readers.add(reader)
        try:
            yield reader
        finally:
            self._readers.discard(reader)

    def end(self) -> None:
        """End every reader, as the bridge stops."""
        for reader in self._readers:
            reader.end()
