"""Results that were too large to send at once, kept for their owner for an hour, to be read on piece by piece."""

from __future__ import annotations

import secrets

import anyio.to_thread
import structlog
from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from bridgehead.core import Clock
from bridgehead.store.tables import shelf, shelf_chunks
from bridgehead.store.texts import to_us

_CHUNK_CHARS = 65_536

_log = structlog.stdlib.get_logger(__name__)


class SqlShelf:
    """Keeps texts up to a total; the oldest make room for the newest."""

    def __init__(
        self, engine: Engine, clock: Clock, *, keep_s: float = 3600, max_bytes: int = 256 * 1024 * 1024
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._keep_us = round(keep_s * 1_000_000)
        self._max_bytes = max_bytes

    async def put(self, owner: str, text: str) -> str | None:
        """Keep `text` for `owner` and return a handle that nobody can guess; None where it could not be kept."""
        return await anyio.to_thread.run_sync(self._put, owner, text)

    async def read(self, owner: str, handle: str, offset: int = 0, length: int = 16_384) -> tuple[str, int] | None:
        """At most `length` characters of the text from `offset` on, and how many characters it has in all.

        The text is empty where `offset` is past the end. None where nothing is kept under that handle for that owner: never
        kept, expired, and another's look alike.
        """
        return await anyio.to_thread.run_sync(self._read, owner, handle, max(0, offset), max(0, length))

    def _put(self, owner: str, text: str) -> str | None:
        size = len(text.encode(errors="surrogatepass"))
        if size > self._max_bytes:
            return None
        handle = secrets.token_urlsafe(18)
        now = to_us(self._clock.now())
        row = {"handle": handle, "owner": owner, "chars": len(text), "bytes": size}
        row |= {"kept_us": now, "expires_us": now + self._keep_us}
        pieces = [
            {"handle": handle, "ordinal": start // _CHUNK_CHARS, "body": _encoded(text[start : start + _CHUNK_CHARS])}
            for start in range(0, len(text), _CHUNK_CHARS)
        ]
        try:
            with self._engine.begin() as connection:
                self._make_room(connection, size, now)
                connection.execute(shelf.insert().values(row))
                if pieces:
                    connection.execute(shelf_chunks.insert(), pieces)
        except SQLAlchemyError as error:
            _log.exception("a large result could not be kept", bytes=size, exc_info=error)
            return None
        return handle

    def _make_room(self, connection: Connection, size: int, now: int) -> None:
        connection.execute(shelf.delete().where(shelf.c.expires_us <= now))
        kept = int(connection.scalar(select(func.coalesce(func.sum(shelf.c.bytes), 0))) or 0)
        if kept + size <= self._max_bytes:
            return
        oldest_first = select(shelf.c.handle, shelf.c.bytes).order_by(shelf.c.kept_us, shelf.c.handle)
        for handle, held in connection.execute(oldest_first).all():
            connection.execute(shelf.delete().where(shelf.c.handle == handle))
            kept -= held
            if kept + size <= self._max_bytes:
                return

    def _read(self, owner: str, handle: str, offset: int, length: int) -> tuple[str, int] | None:
        now = to_us(self._clock.now())
        mine = (shelf.c.handle == handle) & (shelf.c.owner == owner) & (shelf.c.expires_us > now)
        first, last = offset // _CHUNK_CHARS, max(offset, offset + length - 1) // _CHUNK_CHARS
        wanted = (shelf_chunks.c.handle == handle) & shelf_chunks.c.ordinal.between(first, last)
        with self._engine.connect() as connection:
            total = connection.scalar(select(shelf.c.chars).where(mine))
            if total is None:
                return None
            if offset >= total:
                return "", total
            bodies = connection.scalars(
                select(shelf_chunks.c.body).where(wanted).order_by(shelf_chunks.c.ordinal)
            ).all()
        start = offset - first * _CHUNK_CHARS
        text = "".join(body.decode(errors="surrogatepass") for body in bodies)
        return text[start : start + length], total


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
