"""Keyrings registered through the library's own API: good ones, and such as are found in the wild."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class MemoryKeyring(KeyringBackend):
    """Keeps everything in memory, and deletes nothing that is not there, as the real ones do."""

    priority = 5  # pyright: ignore[reportAssignmentType]  as the library's own keyrings have it
    viable = False  # pyright: ignore[reportAssignmentType]  never picked by the library itself

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if (service, username) not in self.entries:
            raise PasswordDeleteError("No such password!")
        del self.entries[service, username]


class WeakKeyring(MemoryKeyring):
    """One that the library does not recommend."""

    priority = 0.5  # pyright: ignore[reportAssignmentType]


class LockedKeyring(MemoryKeyring):
    """One whose owner has dismissed the prompt."""

    def get_password(self, service: str, username: str) -> str | None:
        raise KeyringLocked("Failed to unlock the collection!")


class HangingKeyring(MemoryKeyring):
    """One that waits for a bus that nobody serves."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()
        self.asked = 0

    def get_password(self, service: str, username: str) -> str | None:
        self.asked += 1
        self.let_go.wait(120)
        return super().get_password(service, username)


class SharedKeyring(MemoryKeyring):
    """One that several processes share: what it holds is in the file that TEST_KEYRING names."""

    def __init__(self) -> None:
        super().__init__()
        self._file = Path(os.environ["TEST_KEYRING"])

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service}\n{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._file.write_text(json.dumps({**self._read(), f"{service}\n{username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        entries = self._read()
        del entries[f"{service}\n{username}"]
        self._file.write_text(json.dumps(entries))

    def _read(self) -> dict[str, str]:
        return json.loads(self._file.read_text()) if self._file.exists() else {}
