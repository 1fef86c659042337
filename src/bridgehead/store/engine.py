"""Opens the one database, and sees to it that it is ours, private, and of a version that this bridge can read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from bridgehead.core.errors import ConfigInvalid
from bridgehead.store.tables import VERSION, metadata, schema_version


def open_engine(where: Path | str, *, busy_timeout_s: float = 5) -> Engine:
    """The engine of the database at a path, or of a database URL; its tables are there afterwards.

    Args:
        where: The SQLite file, which is created for its owner alone; or a SQLAlchemy URL.
        busy_timeout_s: How long SQLite waits for another process to let go of the database.

    Raises:
        ConfigInvalid: It cannot be opened, is no database, or was written by a newer bridge.
    """
    try:
        if isinstance(where, str) and "://" in where:
            engine = create_engine(where, pool_pre_ping=True, hide_parameters=True)
        else:
            path = Path(where)
            _make_private(path)
            engine = _sqlite(path, busy_timeout_s)
    except (OSError, SQLAlchemyError) as error:
        raise _unusable(where, error) from error
    try:
        _prepare(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        raise _unusable(engine.url.render_as_string(), error) from error
    except ConfigInvalid:
        engine.dispose()
        raise
    return engine


def _unusable(where: Path | str, error: Exception) -> ConfigInvalid:
    shown = where if isinstance(where, Path) or "://" not in where else where.rpartition("@")[2]
    cause = getattr(error, "orig", None) or error
    return ConfigInvalid(
        f"The database {shown} cannot be used: {cause}.",
        hint="Check that the file is a bridgehead database which you may write, and that the disk is neither full nor gone.",
    )


def _make_private(path: Path) -> None:
    """Create the file, and its directory, for the owner alone; SQLite gives its journals the mode of the file."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077 and hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _sqlite(path: Path, busy_timeout_s: float) -> Engine:
    # Errors would show parameters otherwise, and the log with them.
    engine = create_engine(
        URL.create("sqlite", database=str(path)), connect_args={"timeout": busy_timeout_s}, hide_parameters=True
    )

    def set_up(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        # With WAL this survives a crash of the process; a crash of the machine may cost the last moments, not the database.
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        # Without it, REPLACE deletes rows behind the back of the trigger that refuses it.
        cursor.execute("PRAGMA recursive_triggers = ON")
        cursor.close()

    event.listen(engine, "connect", set_up)
    return engine


def _prepare(engine: Engine) -> None:
    """Create the tables in a new database; refuse one that is newer than this bridge."""
    with engine.connect() as connection:
        if _version(connection) == VERSION:
            return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if engine.dialect.name == "sqlite":
            # Two bridges may start at once; the second finds the tables of the first.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        if _version(connection) is None:
            metadata.create_all(connection)
            connection.execute(schema_version.insert().values(version=VERSION))
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("COMMIT")


def _version(connection: Connection) -> int | None:
    """The version of the schema in the database, None for a new one."""
    if not inspect(connection).has_table(schema_version.name):
        return None
    version = connection.scalar(select(schema_version.c.version))
    if version is not None and version > VERSION:
        raise ConfigInvalid(
            f"The database was written by a newer bridgehead: its schema is version {version}, this one knows {VERSION}.",
            hint="Install the newer bridgehead again, or point the state directory elsewhere.",
            details={"found": version, "known": VERSION},
        )
    return version
