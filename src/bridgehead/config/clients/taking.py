"""Takes planned servers over: their secrets into the store, then the backends into the configuration, or nothing at all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from bridgehead.config.clients.plan import Planned
from bridgehead.config.editing import ConfigFile, backend_table


class SecretWriter(Protocol):
    """Where secrets go."""

    def read(self, name: str) -> str | None:
        """The value of that name, or None."""
        ...

    def write(self, name: str, value: str) -> None:
        """Keep the value."""
        ...

    def remove(self, name: str) -> bool:
        """Forget it; whether there was one."""
        ...


def take_over(file: ConfigFile, servers: Iterable[Planned], store: SecretWriter) -> None:
    """Write them all.

    Raises:
        ConfigInvalid: The configuration could not be used with them, or cannot be written. The secrets are taken back.
        BridgeError: The store refused a secret.
    """
    taken = list(servers)
    for one in taken:
        file.add_backend(one.name, backend_table(one.table))
    file.check()
    wanted = {name: value for one in taken for name, value in one.secrets.items()}
    new = [name for name in wanted if store.read(name) is None]
    written: list[str] = []
    try:
        for name in new:
            store.write(name, wanted[name])
            written.append(name)
        file.write()
    except BaseException:
        for name in written:
            store.remove(name)
        raise
