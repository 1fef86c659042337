"""Takes planned servers over: their secrets into the store, then the backends into the configuration, or nothing at all."""

from __future__ import annotations

from collections.abc import Iterable

from bridgehead.config.clients.plan import Planned
from bridgehead.config.editing import ConfigFile, backend_table
from bridgehead.config.ports import Secrets


def take_over(file: ConfigFile, servers: Iterable[Planned], store: Secrets) -> None:
    """Write them all.

    Raises:
        ConfigInvalid: The configuration could not be used with them, or cannot be written. The secrets are taken back.
        SecretInvalid: A value is none that the store takes.
        SecretsUnusable: It cannot be written.
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
