"""The database, and each port's contract on a fake and on SQLite."""

import secrets
import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DatabaseError
from structlog.testing import capture_logs

from bridgehead.catalog import Listing
from bridgehead.core.errors import ConfigInvalid
from bridgehead.gate import AuditRecord
from bridgehead.store import SqlAuditLog, SqlListingStore, SqlShelf, open_engine

RECORD = AuditRecord(
    call_id="call_1",
    at=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    caller="owner",
    surface="mcp",
    method="tools/call",
    target="fs__read",
    group=None,
    backend="fs",
    arguments={"path": "é\0\ud800", "n": [1, None]},
    verdict="ok",
    code=None,
    duration_s=0.25,
)


class OwnClock:
    seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_engine(tmp_path / "state" / "bridgehead.db", busy_timeout_s=0.05)
    yield engine
    engine.dispose()


# The database


def test_the_database_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "bridgehead.db"
    engine = open_engine(path)
    with engine.begin() as connection:
        connection.execute(text("UPDATE schema_version SET version = version"))
        modes = {stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
    engine.dispose()
    assert modes == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_database_is_opened_again_with_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    first = open_engine(path)
    SqlListingStore(first).save("fs", "f", Listing(instructions="hello"))
    first.dispose()
    path.chmod(0o644)
    second = open_engine(f"sqlite:///{path}")
    assert SqlListingStore(second).load("fs", "f") == Listing(instructions="hello", stale=True)
    second.dispose()
    open_engine(path).dispose()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_database_of_a_newer_bridge_is_refused(engine: Engine, tmp_path: Path) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE schema_version SET version = 99"))
    with pytest.raises(ConfigInvalid) as caught:
        open_engine(tmp_path / "state" / "bridgehead.db")
    assert caught.value.details == {"found": 99, "known": 1}


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    path.write_text("my diary " * 1000)
    with pytest.raises(ConfigInvalid):
        open_engine(path)
    assert path.read_text() == "my diary " * 1000


def test_a_link_in_the_databases_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "b.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigInvalid):
        open_engine(tmp_path / "b.db")
    assert not (tmp_path / "elsewhere").exists()


# The audit log


class Log(Protocol):
    def append(self, record: AuditRecord) -> None: ...
    def close(self) -> None: ...
    def recent(self, limit: int = 100, *, verdict: str | None = None) -> list[AuditRecord]: ...


class ListLog:
    def __init__(self) -> None:
        self._records: list[AuditRecord] = []

    def append(self, record: AuditRecord) -> None:
        self._records.append(record)

    def close(self) -> None:
        pass

    def recent(self, limit: int = 100, *, verdict: str | None = None) -> list[AuditRecord]:
        return [one for one in reversed(self._records) if verdict in {None, one.verdict}][:limit]


@pytest.fixture(params=["fake", "sqlite"])
def log(request: pytest.FixtureRequest, engine: Engine) -> Iterator[Log]:
    log = ListLog() if request.param == "fake" else SqlAuditLog(engine)
    yield log
    log.close()


def numbered(count: int) -> list[AuditRecord]:
    return [replace(RECORD, call_id=f"call_{number}") for number in range(count)]


def test_a_record_reads_back_as_it_was(log: Log) -> None:
    log.append(RECORD)
    log.close()
    assert log.recent() == [RECORD]


def test_records_are_kept_in_order_and_read_newest_first(log: Log) -> None:
    records = numbered(1700)
    for record in records:
        log.append(record)
    log.close()
    assert log.recent(3) == records[:-4:-1]
    assert len(log.recent(5000)) == 1700


def test_records_can_be_told_apart_by_verdict(log: Log) -> None:
    log.append(RECORD)
    log.append(replace(RECORD, verdict="refused"))
    log.close()
    assert [one.verdict for one in log.recent(verdict="refused")] == ["refused"]


def test_a_record_after_closing_is_kept_too(engine: Engine) -> None:
    log = SqlAuditLog(engine)
    log.close()
    log.append(RECORD)
    assert log.recent() == [RECORD]
    log.close()


@pytest.mark.parametrize(
    "statement", ["UPDATE audit SET verdict = 'ok'", "DELETE FROM audit", "REPLACE INTO audit SELECT * FROM audit"]
)
def test_the_audit_log_can_only_be_appended_to(engine: Engine, statement: str) -> None:
    log = SqlAuditLog(engine)
    log.append(RECORD)
    log.close()
    with pytest.raises(DatabaseError, match="append-only"), engine.begin() as connection:
        connection.execute(text(statement))


def test_a_full_queue_is_written_from_and_nothing_is_lost(engine: Engine) -> None:
    log = SqlAuditLog(engine, capacity=10)
    for record in numbered(200):
        log.append(record)
    log.close()
    assert [one.call_id for one in reversed(log.recent(500))] == [one.call_id for one in numbered(200)]


@pytest.fixture
def locked(engine: Engine) -> Iterator[sqlite3.Connection]:
    """Another process that holds the database."""
    assert engine.url.database is not None
    other = sqlite3.connect(engine.url.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


def test_a_database_that_was_locked_is_written_once_it_is_free(engine: Engine, locked: sqlite3.Connection) -> None:
    log = SqlAuditLog(engine)
    for record in numbered(20):
        log.append(record)
    locked.execute("ROLLBACK")
    log.close()
    assert len(log.recent()) == 20


def test_what_cannot_be_written_goes_whole_to_the_process_log(engine: Engine, locked: sqlite3.Connection) -> None:
    with capture_logs() as logs:
        log = SqlAuditLog(engine, capacity=10)
        for record in numbered(30):
            log.append(record)
        log.close(timeout_s=0.5)
    spilled = [entry["record"]["call_id"] for entry in logs if "record" in entry]
    assert sorted(spilled) == sorted(one.call_id for one in numbered(30))
    assert {entry["log_level"] for entry in logs} == {"critical"}


# The shelf


class Shelf(Protocol):
    async def put(self, owner: str, text: str) -> str | None: ...
    async def read(self, owner: str, handle: str, offset: int = 0, length: int = 16_384) -> tuple[str, int] | None: ...


class DictShelf:
    def __init__(self, clock: OwnClock, *, keep_s: float = 3600, max_bytes: int) -> None:
        self._clock, self._keep_s, self._max_bytes = clock, keep_s, max_bytes
        self._kept: dict[str, tuple[str, str, float]] = {}

    async def put(self, owner: str, text: str) -> str | None:
        def size(text: str) -> int:
            return len(text.encode(errors="surrogatepass"))

        if size(text) > self._max_bytes:
            return None
        while sum(size(kept) for _, kept, _ in self._kept.values()) + size(text) > self._max_bytes:
            del self._kept[next(iter(self._kept))]
        handle = secrets.token_urlsafe(18)
        self._kept[handle] = (owner, text, self._clock.seconds + self._keep_s)
        return handle

    async def read(self, owner: str, handle: str, offset: int = 0, length: int = 16_384) -> tuple[str, int] | None:
        of, text, until = self._kept.get(handle, ("", "", 0.0))
        if of != owner or until <= self._clock.seconds:
            return None
        return text[offset : offset + length], len(text)


ShelfMaker = Callable[[OwnClock, int], Shelf]


@pytest.fixture(params=["fake", "sqlite"])
def shelf_of(request: pytest.FixtureRequest, engine: Engine) -> ShelfMaker:
    if request.param == "fake":
        return lambda clock, most: DictShelf(clock, max_bytes=most)
    return lambda clock, most: SqlShelf(engine, clock, max_bytes=most)


MIB = 1024 * 1024


async def test_a_text_is_read_back_piece_by_piece(shelf_of: ShelfMaker) -> None:
    shelf = shelf_of(OwnClock(), MIB)
    whole = "".join(f"é{number}\0\ud800" for number in range(30_000))
    handle = await shelf.put("owner", whole)
    assert handle is not None
    pieces: list[str] = []
    offset = 0
    while True:
        found = await shelf.read("owner", handle, offset, 50_001)
        assert found is not None
        piece, total = found
        assert total == len(whole)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
    assert "".join(pieces) == whole


async def test_an_empty_text_is_a_text(shelf_of: ShelfMaker) -> None:
    shelf = shelf_of(OwnClock(), MIB)
    handle = await shelf.put("owner", "")
    assert await shelf.read("owner", handle or "") == ("", 0)


async def test_anothers_text_and_one_that_was_never_kept_look_alike(shelf_of: ShelfMaker) -> None:
    shelf = shelf_of(OwnClock(), MIB)
    handle = await shelf.put("owner", "mine")
    assert await shelf.read("other", handle or "") is None
    assert await shelf.read("owner", "nothing") is None


async def test_a_text_expires_after_an_hour(shelf_of: ShelfMaker) -> None:
    clock = OwnClock()
    shelf = shelf_of(clock, MIB)
    handle = await shelf.put("owner", "mine") or ""
    clock.seconds = 3599
    assert await shelf.read("owner", handle) == ("mine", 4)
    clock.seconds = 3600
    assert await shelf.read("owner", handle) is None


async def test_the_oldest_make_room_for_the_newest(shelf_of: ShelfMaker) -> None:
    clock = OwnClock()
    shelf = shelf_of(clock, 1000)
    handles: list[str] = []
    for number in range(5):
        clock.seconds = number
        handles.append(await shelf.put("owner", "x" * 400) or "")
    kept = [await shelf.read("owner", handle, 0, 1) is not None for handle in handles]
    assert kept == [False, False, False, True, True]
    assert await shelf.put("owner", "x" * 1001) is None


async def test_a_shelf_that_cannot_be_written_keeps_nothing_and_says_so(
    engine: Engine, locked: sqlite3.Connection
) -> None:
    with capture_logs() as logs:
        assert await SqlShelf(engine, OwnClock()).put("owner", "text") is None
    assert logs


# Listings and facts


class Listings(Protocol):
    def load(self, backend: str, fingerprint: str) -> Listing | None: ...
    def save(self, backend: str, fingerprint: str, listing: Listing) -> None: ...
    def load_facts(self, backend: str, fingerprint: str) -> Mapping[str, Any]: ...
    def save_facts(self, backend: str, fingerprint: str, facts: Mapping[str, Any]) -> None: ...


class DictListings:
    def __init__(self) -> None:
        self._listings: dict[str, tuple[str, Listing]] = {}
        self._facts: dict[str, tuple[str, Mapping[str, Any]]] = {}

    def load(self, backend: str, fingerprint: str) -> Listing | None:
        kept = self._listings.get(backend)
        return replace(kept[1], stale=True) if kept and kept[0] == fingerprint else None

    def save(self, backend: str, fingerprint: str, listing: Listing) -> None:
        self._listings[backend] = (fingerprint, listing)

    def load_facts(self, backend: str, fingerprint: str) -> Mapping[str, Any]:
        kept = self._facts.get(backend)
        return kept[1] if kept and kept[0] == fingerprint else {}

    def save_facts(self, backend: str, fingerprint: str, facts: Mapping[str, Any]) -> None:
        self._facts[backend] = (fingerprint, facts)


@pytest.fixture(params=["fake", "sqlite"])
def listings(request: pytest.FixtureRequest, engine: Engine) -> Listings:
    return DictListings() if request.param == "fake" else SqlListingStore(engine)


def test_a_listing_comes_back_marked_stale(listings: Listings) -> None:
    listing = Listing(
        tools=({"name": "é\ud800", "inputSchema": {"type": "object"}},),
        resources=({"uri": "a:b"},),
        templates=({"uriTemplate": "a:{b}"},),
        prompts=({"name": "p"},),
        capabilities={"tools": {}},
        instructions="hello",
    )
    listings.save("fs", "one", Listing())
    listings.save("fs", "one", listing)
    assert listings.load("fs", "one") == replace(listing, stale=True)


def test_a_listing_of_another_launch_is_not_that_backends(listings: Listings) -> None:
    listings.save("fs", "one", Listing())
    assert listings.load("fs", "two") is None
    assert listings.load("git", "one") is None


def test_facts_are_kept_by_launch(listings: Listings) -> None:
    assert listings.load_facts("fs", "one") == {}
    listings.save_facts("fs", "one", {"legacy": True})
    listings.save_facts("fs", "one", {"legacy": False, "discovered": {"x": [1]}})
    assert listings.load_facts("fs", "one") == {"legacy": False, "discovered": {"x": [1]}}
    assert listings.load_facts("fs", "two") == {}


@pytest.mark.parametrize("kept", ["{", "[1]", "null", '{"tools": 3, "capabilities": [], "instructions": {}}'])
def test_what_cannot_be_read_is_as_if_it_were_not_there(engine: Engine, kept: str) -> None:
    store = SqlListingStore(engine)
    store.save("fs", "one", Listing())
    with engine.begin() as connection:
        connection.execute(text("UPDATE listings SET kept = :kept"), {"kept": kept})
    with capture_logs():
        assert store.load("fs", "one") in (None, Listing(stale=True))
