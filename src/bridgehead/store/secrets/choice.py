"""Which store is used: what is asked for, else the one that was used before, else the keyring where it can be used.

That the first write decides keeps the command line and the bridge together: one of them may run in a desktop session, with a
keyring, and the other outside.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Literal

from bridgehead.config.ports import Secrets, SecretsUnusable
from bridgehead.store.secrets.folder import Folder
from bridgehead.store.secrets.os_keyring import OsKeyring
from bridgehead.store.secrets.sealed_file import SealedFile

Choice = Literal["auto", "keyring", "file"]


def open_store(choice: Choice, state_dir: Path, *, patience_s: float) -> Secrets:
    """The store of the secrets of this state directory.

    Args:
        choice: What the configuration says.
        state_dir: Where the sealed file is, or the names of what the keyring holds.
        patience_s: How long a keyring may take for one step.

    Raises:
        SecretsUnusable: The keyring is asked for, or holds the secrets already, and cannot be used.
    """
    wanted = Folder(state_dir).choice if choice == "auto" else choice
    if wanted == "file":
        return SealedFile(state_dir)
    try:
        return OsKeyring(state_dir, patience_s=patience_s)
    except SecretsUnusable as error:
        if wanted is None:
            return SealedFile(state_dir)
        raise SecretsUnusable(
            f"Secrets are kept in the keyring of this system, and it cannot be reached from here. {error.message}",
            hint="start the bridge where the keyring is (in your session, with it unlocked),"
            ' or set `secret_store = "file"` under `[server]` and run `bridgehead secret set` again for each secret.',
        ) from error


class OnDemand:
    """Implements `SecretReader`: opens the store when the first secret is read, so that who has none never waits for one.

    What kept it from being opened is kept too: a keyring that does not answer is waited for once, not once a secret.
    """

    def __init__(self, choice: Choice, state_dir: Path, *, patience_s: float) -> None:
        """As `open_store`."""
        self._choice: Choice = choice
        self._state_dir = state_dir
        self._patience_s = patience_s
        self._opening = threading.Lock()
        self._store: Secrets | None = None
        self._failure: SecretsUnusable | None = None

    def read(self, name: str) -> str | None:
        """The value now, or None where no secret has that name.

        Raises:
            SecretsUnusable: The store cannot be opened or read.
        """
        with self._opening:
            if self._failure is not None:
                raise SecretsUnusable(self._failure.message, hint=self._failure.hint) from self._failure
            if self._store is None:
                try:
                    self._store = open_store(self._choice, self._state_dir, patience_s=self._patience_s)
                except SecretsUnusable as error:
                    self._failure = error
                    raise
        return self._store.read(name)
