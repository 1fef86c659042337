"""The tables. They only grow: a column is added nullable and never changes its meaning.

Moments are whole microseconds since 1970 in UTC, and JSON is text in ASCII: both read back alike from every database.
"""

from __future__ import annotations

from sqlalchemy import (
    DDL,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    event,
)

VERSION = 1
"""Of the schema below. A database with a greater one was written by a newer bridge."""

metadata = MetaData()

schema_version = Table("schema_version", metadata, Column("version", Integer, primary_key=True, autoincrement=False))

audit = Table(
    "audit",
    metadata,
    # SQLite counts up by itself only for a column of exactly the type INTEGER.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("call_id", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False, index=True),
    Column("caller", Text, nullable=False),
    Column("surface", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("group_name", Text),
    Column("backend", Text),
    Column("arguments", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("code", Text),
    Column("duration_s", Float, nullable=False),
)

shelf = Table(
    "shelf",
    metadata,
    Column("handle", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("chars", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("kept_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False, index=True),
)

shelf_chunks = Table(
    "shelf_chunks",
    metadata,
    Column("handle", Text, ForeignKey("shelf.handle", ondelete="CASCADE"), primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    # Bytes, not text: results may hold NUL and lone surrogates, which text columns cut or refuse.
    Column("body", LargeBinary, nullable=False),
)

listings = Table(
    "listings",
    metadata,
    Column("backend", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("kept", Text, nullable=False),
)

facts = Table(
    "facts",
    metadata,
    Column("backend", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("kept", Text, nullable=False),
)

Index("audit_caller", audit.c.caller, audit.c.id)

# The audit log is append-only by the database's own word, whoever opens the file. PostgreSQL will get its twin here.
for _verb in ("UPDATE", "DELETE"):
    event.listen(
        audit,
        "after_create",
        DDL(
            f"CREATE TRIGGER audit_refuses_{_verb.lower()} BEFORE {_verb} ON audit"
            " BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
        ).execute_if(dialect="sqlite"),
    )
