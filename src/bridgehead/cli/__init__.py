"""The `bridgehead` command: one module a command under `commands/`, each of which prints, exits and decides nothing.

Importing this package imports no command: see `bridgehead.cli.lazy`.
"""

from bridgehead.cli.root import app, main

__all__ = ["app", "main"]
