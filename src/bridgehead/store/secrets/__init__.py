"""Where the values of `${secret:NAME}` are kept: the system's keyring, or a sealed file in the state directory.

Knows nothing of backends and placeholders. Everything here blocks, for a limited time.
"""

from bridgehead.store.secrets.choice import OnDemand, open_store
from bridgehead.store.secrets.os_keyring import OsKeyring
from bridgehead.store.secrets.sealed_file import SealedFile

__all__ = ["OnDemand", "OsKeyring", "SealedFile", "open_store"]
