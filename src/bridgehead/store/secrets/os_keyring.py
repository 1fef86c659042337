"""Secrets in the keyring of the operating system, through the library `keyring`, and their names in the state directory.

A keyring cannot list what it holds, hence the names. It may ask a person, wait for a bus that nobody serves, or raise
whatever its platform raises: so each step runs in a thread that is given up after a time, and until that thread is back,
further steps fail at once.
"""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from bridgehead.config.ports import SecretsUnusable, StoreKind, check_name, check_value
from bridgehead.store.secrets.folder import Folder

_INDEX = "keyring.json"
_SERVICE = "bridgehead"
_NO_KEYRINGS = ("keyring.backends.fail", "keyring.backends.null", "keyrings.alt")
"""Modules whose keyrings keep nothing, keep it in plain text, or ask for a password on the terminal."""
_LEAST_PRIORITY = 1
"""What the library calls recommended."""
_FILE_INSTEAD = 'unlock or install one, or set `secret_store = "file"` under `[server]`.'

_Result = TypeVar("_Result")


class _Keyring(Protocol):
    """The part of `keyring.backend.KeyringBackend` that is used here."""

    priority: float

    def get_password(self, service: str, username: str) -> str | None: ...

    def set_password(self, service: str, username: str, password: str) -> None: ...

    def delete_password(self, service: str, username: str) -> None: ...


class OsKeyring:
    """Implements `Secrets`. Entries belong to one state directory: two bridges of one person do not share any."""

    kind: StoreKind = "keyring"

    def __init__(self, state_dir: Path, *, patience_s: float) -> None:
        """Find the keyring and see whether it answers.

        Args:
            state_dir: Where the names are kept.
            patience_s: How long the keyring may take for one step.

        Raises:
            SecretsUnusable: There is none, or it does not answer.
        """
        self._folder = Folder(state_dir)
        self._new_service = f"{_SERVICE} ({state_dir.absolute()})"
        self._patience = _Patience(patience_s)
        # Imported when a keyring is wanted, since it takes a tenth of a second that no other command should.
        self._keyring = self._patience.run(lambda: _usable(importlib.import_module("keyring").get_keyring()))
        service = self._index()[0]
        self._patience.run(lambda: self._keyring.get_password(service, "bridgehead.probe"))

    def read(self, name: str) -> str | None:
        """The value now, or None where no secret has that name.

        Raises:
            SecretsUnusable: The keyring does not answer, or refuses.
        """
        service, _ = self._index()
        return self._patience.run(lambda: self._keyring.get_password(service, name))

    def write(self, name: str, value: str) -> None:
        """Keep `value` under `name`, instead of any earlier one.

        Raises:
            SecretInvalid: No secret can have that name or value.
            SecretsUnusable: The keyring does not answer, or refuses; some take no long values.
        """
        check_name(name)
        check_value(value)
        with self._folder.writing(self.kind):
            service, names = self._index()
            self._patience.run(lambda: self._keyring.set_password(service, name, value))
            # Written although the name may be there: that the file changed says that a value did.
            self._folder.write_table(_INDEX, {"service": service, "names": sorted({*names, name})})

    def remove(self, name: str) -> bool:
        """Forget the secret; whether there was one.

        Raises:
            SecretsUnusable: The keyring does not answer, or refuses.
        """
        service, names = self._index()
        kept = self._patience.run(lambda: self._keyring.get_password(service, name)) is not None
        if not kept and name not in names:
            return False
        with self._folder.writing(self.kind):
            if kept:
                self._patience.run(lambda: self._keyring.delete_password(service, name))
            _, names = self._index()
            self._folder.write_table(_INDEX, {"service": service, "names": sorted({*names} - {name})})
        return True

    def names(self) -> list[str]:
        """The names of all secrets, sorted.

        Raises:
            SecretsUnusable: The list of names is damaged.
        """
        return sorted(self._index()[1])

    def _index(self) -> tuple[str, list[str]]:
        """What the entries are filed under, and the names of the secrets."""
        table = self._folder.read_table(_INDEX)
        if table is None:
            return self._new_service, []
        service, names = table.get("service"), table.get("names")
        if not isinstance(service, str) or not isinstance(names, list):
            raise self._folder.damaged(_INDEX)
        entries = cast("list[Any]", names)
        if not all(isinstance(name, str) for name in entries):
            raise self._folder.damaged(_INDEX)
        return service, entries


class _Patience:
    """Runs what may hang, for a limited time."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._stuck: threading.Thread | None = None

    def run(self, step: Callable[[], _Result]) -> _Result:
        """The result of `step`.

        Raises:
            SecretsUnusable: It raised, took too long, or one before it still hangs.
        """
        if self._stuck is not None and self._stuck.is_alive():
            raise self._too_long()
        done: queue.SimpleQueue[tuple[_Result | None, Exception | None]] = queue.SimpleQueue()

        def work() -> None:
            try:
                done.put((step(), None))
            except Exception as error:  # noqa: BLE001  each platform has errors of its own; they are raised below
                done.put((None, error))

        # A daemon: a keyring that never answers must not keep the process from ending either.
        thread = threading.Thread(target=work, name="bridgehead-keyring", daemon=True)
        thread.start()
        try:
            result, error = done.get(timeout=self._limit_s)
        except queue.Empty:
            self._stuck = thread
            raise self._too_long() from None
        if isinstance(error, SecretsUnusable):
            raise error
        if error is not None:
            # Its kind only: what it says may be anything.
            raise SecretsUnusable(
                f"The keyring of this system cannot be used ({type(error).__name__}).", hint=_FILE_INSTEAD
            ) from error
        return cast("_Result", result)

    def _too_long(self) -> SecretsUnusable:
        return SecretsUnusable(
            f"The keyring of this system did not answer within {self._limit_s:g} s.", hint=_FILE_INSTEAD
        )


def _usable(found: Any) -> _Keyring:
    """The keyring itself, or the first usable one of a chain.

    Raises:
        SecretsUnusable: Nothing is kept there, or everybody could read it.
    """
    chained = cast("list[Any]", getattr(found, "backends", [found]))
    for keyring in chained:
        modules = {parent.__module__ for parent in type(keyring).__mro__}
        refused = any(module == no or module.startswith(f"{no}.") for module in modules for no in _NO_KEYRINGS)
        if not refused and keyring.priority >= _LEAST_PRIORITY:
            return keyring
    raise SecretsUnusable("This system has no keyring that can be used.", hint=_FILE_INSTEAD)
