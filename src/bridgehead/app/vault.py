"""The store of secrets that a configuration and a state directory mean, and what keeps its values out of everything written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bridgehead.config import Concealment, SecretReader, Secrets, Settings
from bridgehead.store import OnDemand, open_store

_KEYRING_S = 3.0
"""How long a start waits for the keyring."""
_PERSON_S = 30.0
"""How long a command waits for it, since it may ask a person to unlock it."""


@dataclass(frozen=True, slots=True)
class Vault:
    """Where a bridge's secrets are.

    Attributes:
        state_dir: The state directory that the store belongs to.
        conceal: Learns each value that is read from it; whoever writes anything for the bridge takes them out with it.
    """

    state_dir: Path
    conceal: Concealment


def open_secrets(settings: Settings, state_dir: Path) -> Secrets:
    """The store of secrets that this configuration and state directory have. Blocks while a person unlocks the keyring.

    Raises:
        SecretsUnusable: It cannot be opened.
    """
    return open_store(settings.server.secret_store, state_dir, patience_s=_PERSON_S)


def secret_reader(settings: Settings, state_dir: Path) -> SecretReader:
    """The same store for reading, opened with the first secret; its values are read anew each time."""
    return OnDemand(settings.server.secret_store, state_dir, patience_s=_KEYRING_S)
