"""What the configuration needs of others, in its own words: the values that `${secret:NAME}` stands for.

Where they are kept is not known here; `check_name` and `check_value` say what every keeper takes.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol

from bridgehead.core.errors import BridgeError, Kind

SECRET_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
LARGEST_VALUE = 64 * 1024
"""Bytes of UTF-8: more than any key, certificate or service account, and less than an argument list can hold."""

StoreKind = Literal["keyring", "file"]
"""The keyring of the operating system, or the sealed file in the state directory."""


class SecretInvalid(BridgeError):
    """A name or a value that no secret can have."""

    kind = Kind.INVALID
    code = "invalid_secret"


class SecretNotFound(BridgeError):
    """No secret of that name is kept."""

    kind = Kind.NOT_FOUND
    code = "unknown_secret"


class SecretsUnusable(BridgeError):
    """The store of the secrets cannot be read or written now; what it holds is untouched."""

    kind = Kind.UNAVAILABLE
    code = "secrets_unusable"


class SecretReader(Protocol):
    """Gives the values of secrets. May block for some seconds, and never longer."""

    def read(self, name: str) -> str | None:
        """The value now, or None where no secret has that name.

        Raises:
            SecretsUnusable: The store cannot be read, so that it is not known.
        """
        ...


class Secrets(SecretReader, Protocol):
    """A store of secrets. A failure loses nothing that was kept before."""

    @property
    def kind(self) -> StoreKind:
        """Where it keeps them."""
        ...

    def write(self, name: str, value: str) -> None:
        """Keep `value` under `name`, instead of any earlier one.

        Raises:
            SecretInvalid: No secret can have that name or value.
            SecretsUnusable: It cannot be kept.
        """
        ...

    def remove(self, name: str) -> bool:
        """Forget the secret; whether there was one.

        Raises:
            SecretsUnusable: It cannot be removed.
        """
        ...

    def names(self) -> list[str]:
        """The names of all secrets, sorted.

        Raises:
            SecretsUnusable: They cannot be read.
        """
        ...


class NoSecrets:
    """Implements `SecretReader` where there is no store."""

    def read(self, name: str) -> str | None:
        """None, whatever the name."""
        del name


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a secret.

    Raises:
        SecretInvalid: It cannot.
    """
    if not SECRET_NAME.fullmatch(name):
        # The name itself is not repeated: it may be a value that was given by mistake.
        raise SecretInvalid(
            "This is not a name for a secret.",
            hint="use 1 to 64 letters, digits, `_`, `.` and `-`, as in GITHUB_TOKEN.",
        )


def too_large() -> SecretInvalid:
    """The error for a value that is larger than any secret may be."""
    return SecretInvalid(
        f"The value is larger than {LARGEST_VALUE} bytes.",
        hint="keep it in a file that only you can read, and give the server the file's path.",
    )


def check_value(value: str) -> None:
    """Refuse what cannot be the value of a secret.

    Raises:
        SecretInvalid: It cannot; the error does not hold it.
    """
    if not value:
        raise SecretInvalid(
            "The value is empty.", hint="give one, or remove the secret with `bridgehead secret remove`."
        )
    if "\0" in value:
        raise SecretInvalid(
            "The value holds a NUL character, which no program or header can be given.",
            hint="check where it comes from; secrets are text, so write bytes as base64.",
        )
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise SecretInvalid(
            "The value is not UTF-8.", hint="save it as UTF-8; secrets are text, so write bytes as base64."
        ) from None
    if size > LARGEST_VALUE:
        raise too_large()
