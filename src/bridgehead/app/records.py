"""What a bridge left in its state directory, for commands that need no running bridge and disturb none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from bridgehead.app.launches import fingerprint
from bridgehead.catalog import Listing
from bridgehead.config import LaunchInvalid, SecretReader, Settings, resolve
from bridgehead.core.errors import ConfigInvalid
from bridgehead.gate import AuditRecord
from bridgehead.store import SqlListingStore, read_recent, reading

DATABASE = "bridgehead.db"
"""The file in the state directory that has what is kept in SQL."""


def kept_listings(
    settings: Settings, state_dir: Path, environ: Mapping[str, str], secrets: SecretReader
) -> dict[str, Listing]:
    """What backends offered when a bridge last had them, by name; nothing is started, made or changed."""
    listings: dict[str, Listing] = {}
    with suppress(ConfigInvalid), reading(state_dir / DATABASE) as engine:
        store = SqlListingStore(engine)
        for name, backend in settings.backends.items():
            with suppress(LaunchInvalid):
                kept = store.load(name, fingerprint(resolve(backend, environ, secrets)))
                if kept is not None:
                    listings[name] = kept
    return listings


def recent_calls(state_dir: Path, limit: int, *, backend: str | None = None, errors: bool = False) -> list[AuditRecord]:
    """The latest calls on record, newest first; a bridge that serves from the state directory is not disturbed.

    Args:
        state_dir: Where the bridge keeps its state.
        limit: How many at the most.
        backend: Only calls that went to this backend.
        errors: Only calls that came to nothing good.

    Raises:
        ConfigInvalid: There is no database there, or it cannot be read.
    """
    with reading(state_dir / DATABASE) as engine:
        return read_recent(engine, limit, backend=backend, errors=errors)
