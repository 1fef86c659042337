"""The last good listing of each backend, and what was learned about talking to it, across restarts.

Both are caches: what cannot be read is as if it were not there, and is asked for anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import structlog
from sqlalchemy import Engine, Table, select

from bridgehead.catalog import Listing
from bridgehead.store.tables import facts as facts_table
from bridgehead.store.tables import listings as listings_table
from bridgehead.store.texts import from_json, to_json

_LISTS = ("tools", "resources", "templates", "prompts")

_log = structlog.stdlib.get_logger(__name__)


class SqlListingStore:
    """Keeps one listing and one set of facts a backend, each under the fingerprint of how the backend is launched."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def load(self, backend: str, fingerprint: str) -> Listing | None:
        """The kept listing, marked stale, or None."""
        kept = self._load(listings_table, backend, fingerprint)
        return _listing(kept) if kept is not None else None

    def save(self, backend: str, fingerprint: str, listing: Listing) -> None:
        """Keep this listing instead of any earlier one."""
        kept = {name: getattr(listing, name) for name in _LISTS}
        kept |= {"capabilities": listing.capabilities, "instructions": listing.instructions}
        self._save(listings_table, backend, fingerprint, kept)

    def load_facts(self, backend: str, fingerprint: str) -> dict[str, Any]:
        """What was learned under that fingerprint; empty where nothing was."""
        return self._load(facts_table, backend, fingerprint) or {}

    def save_facts(self, backend: str, fingerprint: str, facts: Mapping[str, Any]) -> None:
        """Keep these facts instead of any earlier ones."""
        self._save(facts_table, backend, fingerprint, facts)

    def _load(self, table: Table, backend: str, fingerprint: str) -> dict[str, Any] | None:
        mine = (table.c.backend == backend) & (table.c.fingerprint == fingerprint)
        with self._engine.connect() as connection:
            text = connection.scalar(select(table.c.kept).where(mine))
        if text is None:
            return None
        try:
            return from_json(text)
        except (ValueError, TypeError) as error:
            _log.warning(
                "what was kept of a backend cannot be read", backend=backend, table=table.name, cause=str(error)
            )
            return None

    def _save(self, table: Table, backend: str, fingerprint: str, kept: Mapping[str, Any]) -> None:
        row = {"backend": backend, "fingerprint": fingerprint, "kept": to_json(kept)}
        # Each dialect spells an upsert its own way; a delete and an insert in one transaction are the same everywhere.
        with self._engine.begin() as connection:
            connection.execute(table.delete().where(table.c.backend == backend))
            connection.execute(table.insert().values(row))


def _listing(kept: Mapping[str, Any]) -> Listing:
    def definitions(name: str) -> tuple[Mapping[str, Any], ...]:
        found = kept.get(name)
        if not isinstance(found, list):
            return ()
        return tuple(cast("dict[str, Any]", item) for item in cast("list[object]", found) if isinstance(item, dict))

    capabilities, instructions = kept.get("capabilities"), kept.get("instructions")
    return Listing(
        tools=definitions("tools"),
        resources=definitions("resources"),
        templates=definitions("templates"),
        prompts=definitions("prompts"),
        capabilities=cast("dict[str, Any]", capabilities) if isinstance(capabilities, dict) else {},
        instructions=instructions if isinstance(instructions, str) else None,
        stale=True,
    )
