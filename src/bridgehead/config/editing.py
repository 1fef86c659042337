"""Changes our own configuration file: the new text is loaded before it takes the place of the old one.

What cannot be used is never written, comments and layout stay, and the file is replaced all at once with its mode. A file
that was not there is made, readable by its owner alone, since people put secrets into it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bridgehead.config.environment import read_environment
from bridgehead.config.files import TextFile, new_file, read_file, replace_file
from bridgehead.config.load import load, locate, search_order
from bridgehead.config.parse import Parsing
from bridgehead.config.problems import dotted, invalid
from bridgehead.config.settings import BackendSettings, GroupSettings, Settings
from bridgehead.config.toml_text import TomlUneditable, put_table, put_value, remove_table
from bridgehead.core.errors import BackendNotFound, BridgeError, ConfigInvalid, GroupNotFound, Kind

_FIRST_LINE = "# The configuration of Bridgehead; `bridgehead config check` says whether it can be used.\n"


class ConfigConflict(BridgeError):
    """The configuration has something of that name already, or something else needs what is to go."""

    kind = Kind.CONFLICT
    code = "config_conflict"


class ConfigFile:
    """The configuration in force, to be changed in memory and then put back whole.

    Attributes:
        path: The file; it need not exist yet.
        settings: What it says now, without the environment.
    """

    def __init__(self, file: TextFile, settings: Settings) -> None:
        self.path = file.path
        self.settings = settings
        self._file = file
        self._text = file.text if file.content is not None else _FIRST_LINE

    @property
    def is_new(self) -> bool:
        """Whether there is no file yet."""
        return self._file.content is None

    def in_force(self, environ: Mapping[str, str]) -> Settings:
        """What it says now with the environment on top, as a bridge has it.

        Raises:
            ConfigInvalid: What the environment says cannot be used.
        """
        if not self.is_new:
            return load(self.path, environ)
        overlay = read_environment(environ, (), ())
        server = {key: value for (section, key), value in overlay.values.items() if section == "server"}
        parsing = Parsing("environment", origins=overlay.origins)
        settings = parsing.settings({"server": server})
        if parsing.problems:
            raise invalid(parsing.problems)
        return settings

    def add_backend(self, name: str, table: Mapping[str, Any]) -> None:
        """Put a backend behind everything else.

        Raises:
            ConfigConflict: There is one of that name.
        """
        if name in self.settings.backends:
            raise ConfigConflict(
                f"{self.path.name} has a backend {name} already.",
                hint=f"choose another name, or take it out first: bridgehead backend remove {name}",
            )
        self._change(lambda text: put_table(text, ("backends", name), table))

    def remove_backend(self, name: str) -> None:
        """Take a backend out.

        Raises:
            BackendNotFound: There is none of that name.
            ConfigConflict: A group names it.
        """
        if name not in self.settings.backends:
            known = ", ".join(self.settings.backends) or "none"
            raise BackendNotFound(f"No backend {name!r} is configured.", hint=f"configured are: {known}.")
        groups = [
            key for key, group in self.settings.groups.items() if any(one.backend == name for one in group.members)
        ]
        if groups:
            raise ConfigConflict(
                f"{name} is a member of {', '.join(dotted('groups', group) for group in groups)}.",
                hint="take it out of `members` there first.",
            )
        self._change(lambda text: remove_table(text, ("backends", name)))

    def switch_group(self, name: str, *, on: bool) -> bool:
        """Switch a group; whether that changed anything.

        Raises:
            GroupNotFound: There is none of that name.
        """
        group: GroupSettings | None = self.settings.groups.get(name)
        if group is None:
            known = ", ".join(self.settings.groups) or "none"
            raise GroupNotFound(f"No group {name!r} is configured.", hint=f"configured are: {known}.")
        if group.enabled is on:
            return False
        self._change(lambda text: put_value(text, ("groups", name, "enabled"), on))
        return True

    def _change(self, edit: Callable[[str], str]) -> None:
        try:
            self._text = edit(self._text)
        except TomlUneditable as error:
            raise ConfigInvalid(
                f"{self.path} cannot be changed here: {error}.", hint="change it with an editor, then run it again."
            ) from error

    def check(self) -> Settings:
        """What the changed file would say.

        Raises:
            ConfigInvalid: It could not be used.
        """
        self._file.target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            # Beside the file itself, since relative paths in it start there.
            draft = new_file(self._file.target, f".{secrets.token_hex(4)}.toml", self._file.encoded(self._text))
        except OSError as error:
            raise ConfigInvalid(
                f"{self.path} cannot be written: {error.strerror or error}.", hint="check the rights of its directory."
            ) from error
        try:
            return load(draft, {})
        except ConfigInvalid as error:
            told = error.message.replace(draft.name, self.path.name)
            raise ConfigInvalid(f"Nothing was written. {told}", hint=error.hint, details=error.details) from None
        finally:
            draft.unlink(missing_ok=True)

    def write(self) -> Settings:
        """Check it, and put it in its place.

        Raises:
            ConfigInvalid: It could not be used, or cannot be written; nothing was.
        """
        settings = self.check()
        replace_file(self._file, self._file.encoded(self._text))
        return settings


def open_config(path: Path | None, environ: Mapping[str, str]) -> ConfigFile:
    """The configuration in force; where there is none, the one that would be found next time, still to be made.

    Raises:
        ConfigInvalid: It cannot be used as it is, or it is another client's JSON.
    """
    found = locate(path, environ) or search_order(environ)[-1]
    file = read_file(found)
    if file.content is None:
        return ConfigFile(file, Settings())
    if found.suffix in {".json", ".jsonc"} or (found.suffix != ".toml" and file.text.lstrip().startswith("{")):
        raise ConfigInvalid(
            f"{found} is the JSON of another client, which is not changed here.",
            hint=f"take its servers over: bridgehead import --from {found} --config bridgehead.toml",
        )
    return ConfigFile(file, load(found, {}))


def backend_table(backend: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a backend that say something, in the order in which people write them."""
    return {key: backend[key] for key in BackendSettings.model_fields if backend.get(key) not in (None, [], {}, ())}
