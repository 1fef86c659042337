"""What outlives the process: in SQL, one module a port and one engine for all; secrets apart from it, in `secrets/`.

Knows nothing of surfaces and backends.

Everything here blocks, apart from the shelf, which goes to a thread by itself; callers on the loop use a thread.
"""

from bridgehead.store.audit import SqlAuditLog
from bridgehead.store.claim import StateInUse, claim
from bridgehead.store.engine import open_engine
from bridgehead.store.listings import SqlListingStore
from bridgehead.store.secrets import OnDemand, open_store
from bridgehead.store.shelf import SqlShelf

__all__ = [
    "OnDemand",
    "SqlAuditLog",
    "SqlListingStore",
    "SqlShelf",
    "StateInUse",
    "claim",
    "open_engine",
    "open_store",
]
