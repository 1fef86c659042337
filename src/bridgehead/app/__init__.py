"""The composition root: settings become adapters, adapters become rooms, rooms become a running bridge.

The only room that picks adapters, and the one that changes them while the bridge runs. It decides nothing about calls.
"""

from bridgehead.app.bridge import Bridge, running
from bridgehead.app.probing import Probe, probe
from bridgehead.app.reload import Reloading
from bridgehead.app.serving import serve, serve_on, serve_stdio

__all__ = ["Bridge", "Probe", "Reloading", "probe", "running", "serve", "serve_on", "serve_stdio"]
