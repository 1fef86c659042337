"""The audit log in SQL: appended to from the loop without waiting, written in batches by one thread, never changed.

A record is never dropped. While the database cannot be written the thread tries again and says so; past the queue's bound,
and on closing, what cannot be written goes whole to the process log, loudly, so that it is somewhere.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import structlog
from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError

from bridgehead.gate.ports import GOOD_VERDICTS, AuditRecord
from bridgehead.store.tables import audit
from bridgehead.store.texts import clean, from_json, from_us, to_json, to_us

_BATCH = 500
_GATHER_S = 0.05
"""How long the thread lets records gather: one transaction then serves them all."""
_FIRST_RETRY_S = 0.1
_LAST_RETRY_S = 5.0
_LOCK_S = 1.0
_COLUMNS = [column.name for column in audit.columns if column.name != "id"]
_CLOSED = "the audit log was closed before it could be written"

_log = structlog.stdlib.get_logger(__name__)


class SqlAuditLog:
    """Append-only; the database's triggers hold others to it too."""

    def __init__(self, engine: Engine, *, capacity: int = 50_000) -> None:
        """Start the writer. `capacity` is how many records may wait for it."""
        self._engine = engine
        self._capacity = capacity
        insert = audit.insert().inline().compile(engine, column_keys=_COLUMNS)
        self._insert, self._positional = str(insert), insert.positional
        self._queue: deque[AuditRecord] = deque()
        # What is being written: off the queue already, and kept until it is written. Touched only under `_writing`.
        self._batch: list[AuditRecord] = []
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._closing = threading.Event()
        self._given_up = False
        self._failing = False
        # Held around every write, so that records are written in the order in which they came, whoever writes.
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._write_forever, name="bridgehead-audit", daemon=True)
        self._thread.start()

    def append(self, record: AuditRecord) -> None:
        """Accept the record. Waits for the database only when the queue is full and the database is merely slow."""
        queue = self._queue
        if len(queue) >= self._capacity:
            self._make_room()
        queue.append(record)
        if not self._wake.is_set():
            self._wake.set()
        if len(queue) >= _BATCH and not self._hurry.is_set():
            self._hurry.set()
        if self._closing.is_set():
            self._append_late()

    def close(self, timeout_s: float = 5) -> None:
        """Write everything that waits and end the writer; what is not written by then goes to the process log."""
        self._closing.set()
        self._hurry.set()
        self._wake.set()
        self._thread.join(timeout_s)
        self._given_up = True
        # Where a write hangs its batch may yet be written: twice is better than never.
        _spill([*self._batch, *self._taken(len(self._queue))], why=_CLOSED)

    def recent(
        self,
        limit: int = 100,
        *,
        caller: str | None = None,
        backend: str | None = None,
        verdict: str | None = None,
    ) -> list[AuditRecord]:
        """The latest records that have been written, newest first. Blocks."""
        return read_recent(self._engine, limit, caller=caller, backend=backend, verdict=verdict)

    def _write_forever(self) -> None:
        retry_s = _FIRST_RETRY_S
        while not self._given_up:
            if not self._queue and not self._batch:
                if self._closing.is_set():
                    return
                self._wake.wait()
            self._hurry.wait(_GATHER_S)
            if not self._closing.is_set():
                # Cleared before the queue is read: a record that comes meanwhile sets them again.
                self._hurry.clear()
                self._wake.clear()
            if self._write_queued():
                retry_s = _FIRST_RETRY_S
            else:
                self._wake.set()
                self._closing.wait(retry_s)
                retry_s = _FIRST_RETRY_S if self._closing.is_set() else min(2 * retry_s, _LAST_RETRY_S)

    def _write_queued(self) -> bool:
        """Write what waits; false where the database would not have it, and then all of it still waits."""
        while (self._queue or self._batch) and not self._given_up:
            try:
                with self._writing:
                    self._write_batch()
            except SQLAlchemyError as error:
                if not self._failing:
                    waiting = len(self._queue) + len(self._batch)
                    _log.critical("the audit log cannot be written; trying again", waiting=waiting, exc_info=error)
                self._failing = True
                return False
            if self._failing:
                _log.warning("the audit log can be written again", waiting=len(self._queue))
                self._failing = False
        return True

    def _write_batch(self) -> None:
        """Write the first records that wait, in one transaction; they stay in the batch until they are kept."""
        if not self._batch:
            self._batch = self._taken(_BATCH)
        if self._batch:
            rows = [_row(record) for record in self._batch]
            with self._engine.begin() as connection:
                # The driver's own way with many rows: SQLAlchemy's costs as much again, for values that need none of it.
                many = rows if self._positional else [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
                connection.exec_driver_sql(self._insert, many)
            self._batch = []

    def _make_room(self) -> None:
        """The queue is full: write some of it here and now, or, where that fails, give it to the process log."""
        if not self._failing and self._writing.acquire(timeout=_LOCK_S):
            try:
                self._write_batch()
            except SQLAlchemyError:
                self._failing = True
            else:
                return
            finally:
                self._writing.release()
        _spill(self._taken(_BATCH), why="the audit log cannot be written and its queue is full")

    def _append_late(self) -> None:
        """A call that ended after closing: the writer may be gone, so its record is written here."""
        if self._thread.is_alive():
            return
        try:
            with self._writing:
                self._write_batch()
        except SQLAlchemyError:
            late, self._batch = self._batch, []
            _spill(late, why=_CLOSED)

    def _taken(self, count: int) -> list[AuditRecord]:
        taken: list[AuditRecord] = []
        while len(taken) < count:
            try:
                taken.append(self._queue.popleft())
            except IndexError:
                break
        return taken


def read_recent(  # noqa: PLR0913  one parameter a filter
    engine: Engine,
    limit: int,
    *,
    caller: str | None = None,
    backend: str | None = None,
    verdict: str | None = None,
    errors: bool = False,
) -> list[AuditRecord]:
    """The latest records in the database, newest first, of those that pass every filter; `errors` keeps what went wrong."""
    query = select(audit).order_by(audit.c.id.desc()).limit(limit)
    for column, wanted in ((audit.c.caller, caller), (audit.c.backend, backend), (audit.c.verdict, verdict)):
        if wanted is not None:
            query = query.where(column == wanted)
    if errors:
        query = query.where(audit.c.verdict.not_in(GOOD_VERDICTS))
    with engine.connect() as connection:
        return [_record(row) for row in connection.execute(query).mappings()]


def _spill(records: Iterable[AuditRecord], *, why: str) -> None:
    for record in records:
        _log.critical("an audit record went here instead of into the database", why=why, record=asdict(record))


def _row(record: AuditRecord) -> tuple[Any, ...]:
    """The record's values, in the order of the columns."""
    return (
        clean(record.call_id),
        to_us(record.at),
        clean(record.caller),
        clean(record.surface),
        record.method,
        clean(record.target),
        None if record.group is None else clean(record.group),
        record.backend,
        to_json(record.arguments),
        record.verdict,
        record.code,
        record.duration_s,
    )


def _record(row: Mapping[Any, Any]) -> AuditRecord:
    return AuditRecord(
        call_id=row["call_id"],
        at=from_us(row["at_us"]),
        caller=row["caller"],
        surface=row["surface"],
        method=row["method"],
        target=row["target"],
        group=row["group_name"],
        backend=row["backend"],
        arguments=from_json(row["arguments"]),
        verdict=row["verdict"],
        code=row["code"],
        duration_s=row["duration_s"],
    )
