"""The configuration files of other MCP clients: where they are, what they hold, and how the bridge is put into them.

Knows the files, and nothing of how their servers are started. A file that cannot be read is never written. Not part of the
configuration's own door, since only the commands `import` and `connect` need it.
"""

from bridgehead.config.clients.bridge_entry import Choice, Form, Reach, bridge_entry, choose
from bridgehead.config.clients.connection import (
    Change,
    Records,
    connecting,
    undoing,
    write_connection,
    write_undoing,
)
from bridgehead.config.clients.places import CLIENTS, Client, Machine, Place, Scope, client_named, place, place_of_file
from bridgehead.config.clients.plan import Planned, Planner, Verdict, chosen
from bridgehead.config.clients.reading import Findings, read_clients, read_place
from bridgehead.config.clients.taking import take_over

__all__ = [
    "CLIENTS",
    "Change",
    "Choice",
    "Client",
    "Findings",
    "Form",
    "Machine",
    "Place",
    "Planned",
    "Planner",
    "Reach",
    "Records",
    "Scope",
    "Verdict",
    "bridge_entry",
    "choose",
    "chosen",
    "client_named",
    "connecting",
    "place",
    "place_of_file",
    "read_clients",
    "read_place",
    "take_over",
    "undoing",
    "write_connection",
    "write_undoing",
]
