"""The composition root: settings become adapters, adapters become rooms, rooms become a running bridge.

The only room that picks adapters, and the one that changes them while the bridge runs. It decides nothing about calls.
"""

from bridgehead.app.bridge import Bridge, running
from bridgehead.app.records import kept_listings, recent_calls
from bridgehead.app.reload import Reloading
from bridgehead.app.serving import serve, serve_on, serve_stdio
from bridgehead.app.vault import Vault, open_secrets, secret_reader

__all__ = [
    "Bridge",
    "Reloading",
    "Vault",
    "kept_listings",
    "open_secrets",
    "recent_calls",
    "running",
    "secret_reader",
    "serve",
    "serve_on",
    "serve_stdio",
]
