"""Secrets in one file of the state directory, each sealed with AES-256-GCM under a key that lies beside it.

Names are in the clear, values are not. What that protects against: the file by itself, in a backup, a synchronised folder or
a screenshot, gives nothing away. What it does not: whoever can read the whole state directory has the key too.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from binascii import Error as NotBase64
from pathlib import Path
from typing import Any, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bridgehead.config.ports import SecretsUnusable, StoreKind, check_name, check_value
from bridgehead.store.secrets.folder import Folder

_FILE = "sealed.json"
_KEY_FILE = "key"
_KEY_BYTES = 32
_NONCE_BYTES = 12  # NIST SP 800-38D, section 8.2
_BOUND = b"bridgehead secret 1\0"


class SealedFile:
    """Implements `Secrets`. A value opens only under the name and with the key that it was sealed with."""

    kind: StoreKind = "file"

    def __init__(self, state_dir: Path) -> None:
        self._folder = Folder(state_dir)

    def read(self, name: str) -> str | None:
        """The value now, or None where no secret has that name.

        Raises:
            SecretsUnusable: The file is damaged, or the key is gone or another.
        """
        key_id, sealed = self._load()
        if name not in sealed:
            return None
        key = self._key(key_id)
        try:
            content = base64.b64decode(sealed[name], validate=True)
            return AESGCM(key).decrypt(content[:_NONCE_BYTES], content[_NONCE_BYTES:], _bound(name)).decode()
        except (InvalidTag, NotBase64, ValueError) as error:
            raise SecretsUnusable(
                f"The secret {name} in {self._folder.path / _FILE} is damaged.",
                hint=f"run `bridgehead secret set {name}`, or put the file back from a backup.",
            ) from error

    def write(self, name: str, value: str) -> None:
        """Keep `value` under `name`, instead of any earlier one.

        Raises:
            SecretInvalid: No secret can have that name or value.
            SecretsUnusable: The file is damaged, the key does not fit what is there, or nothing can be written.
        """
        check_name(name)
        check_value(value)
        with self._folder.writing(self.kind):
            key_id, sealed = self._load()
            key = self._key(key_id) if sealed else self._key_or_new()
            nonce = os.urandom(_NONCE_BYTES)
            sealed[name] = base64.b64encode(nonce + AESGCM(key).encrypt(nonce, value.encode(), _bound(name))).decode()
            self._save(_id_of(key), sealed)

    def remove(self, name: str) -> bool:
        """Forget the secret; whether there was one. The key is not needed for it.

        Raises:
            SecretsUnusable: The file is damaged, or cannot be written.
        """
        if name not in self._load()[1]:
            return False
        with self._folder.writing(self.kind):
            key_id, sealed = self._load()
            if sealed.pop(name, None) is None:
                return False
            self._save(key_id, sealed)
            return True

    def names(self) -> list[str]:
        """The names of all secrets, sorted.

        Raises:
            SecretsUnusable: The file is damaged.
        """
        return sorted(self._load()[1])

    def _load(self) -> tuple[str, dict[str, str]]:
        """The id of the key, and the sealed values by name."""
        table = self._folder.read_table(_FILE)
        if table is None:
            return "", {}
        key_id, sealed = table.get("key_id"), table.get("secrets")
        if not isinstance(key_id, str) or not isinstance(sealed, dict):
            raise self._folder.damaged(_FILE)
        entries = cast("dict[str, Any]", sealed)
        if not all(isinstance(value, str) for value in entries.values()):
            raise self._folder.damaged(_FILE)
        return key_id, entries

    def _save(self, key_id: str, sealed: dict[str, str]) -> None:
        self._folder.write_table(_FILE, {"key_id": key_id, "secrets": dict(sorted(sealed.items()))})

    def _key(self, key_id: str) -> bytes:
        """The key that the values were sealed with."""
        path = self._folder.path / _KEY_FILE
        key = self._folder.read(_KEY_FILE)
        if key is None or len(key) != _KEY_BYTES or not hmac.compare_digest(_id_of(key), key_id):
            what = "is gone" if key is None else "is not the one they were sealed with"
            raise SecretsUnusable(
                f"The secrets in {self._folder.path / _FILE} cannot be opened: the key {path} {what}.",
                hint="put the key back from a backup; or move the file away and run `bridgehead secret set` again for each.",
            )
        return key

    def _key_or_new(self) -> bytes:
        """The key for a file without secrets, of which nothing can be lost."""
        key = self._folder.read(_KEY_FILE)
        if key is None or len(key) != _KEY_BYTES:
            key = AESGCM.generate_key(8 * _KEY_BYTES)
            self._folder.write(_KEY_FILE, key)
        return key


def _bound(name: str) -> bytes:
    """What a value is bound to, so that it cannot be passed off as another secret's."""
    return _BOUND + name.encode()


def _id_of(key: bytes) -> str:
    """Tells keys apart, and says nothing of them."""
    return hmac.new(key, b"bridgehead key id", hashlib.sha256).hexdigest()[:16]
