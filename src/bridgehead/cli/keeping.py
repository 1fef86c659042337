"""What the `secret` commands share: the store that the configuration means, and which backends name a secret."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from bridgehead import app
from bridgehead.cli.state import state_dir_or_default
from bridgehead.config import Secrets, Settings, load, secrets_of

KEPT_IN: Mapping[str, str] = {"keyring": "the keyring of this system", "file": "the sealed file"}
"""Where a kind of store keeps its secrets, in words."""


def settings_and_store(config: Path | None, state_dir: Path | None) -> tuple[Settings, Secrets]:
    """The configuration, whose doubtful places are not told since they are beside the point, and its store.

    Raises:
        ConfigInvalid: The configuration cannot be used, so that it is not known which store it means.
        SecretsUnusable: The store cannot be opened.
    """
    settings = load(config, os.environ)
    return settings, app.open_secrets(settings, state_dir_or_default(state_dir))


def uses(settings: Settings) -> dict[str, list[str]]:
    """The backends that name a secret, by secret, switched off ones too."""
    used: dict[str, list[str]] = {}
    for name, backend in settings.backends.items():
        for secret in secrets_of(backend):
            used.setdefault(secret, []).append(name)
    return used
