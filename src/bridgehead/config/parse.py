"""From untyped tables to settings, with every problem found and none hidden behind another. Knows no files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bridgehead.config.problems import Problem, dotted, suggestion
from bridgehead.config.settings import (
    BUILTIN,
    BackendSettings,
    GroupMember,
    GroupSettings,
    LimitSettings,
    ServerSettings,
    Settings,
    known_keys,
)
from bridgehead.config.tables import as_table

_GROUP_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_BACKEND_NAME_LENGTH = 100
_BACKENDS_ELSEWHERE = frozenset({"mcpServers", "mcp_servers", "mcp-servers", "servers"})
"""What other programs call the table that is `backends` here."""
_WORDING = {
    "missing": "is required",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "tuple_type": "must be a list",
    "mapping_type": "must be a table",
    "model_type": "must be a table",
    "dict_type": "must be a table",
    "string_too_short": "must not be empty",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "literal_error": "must be one of {expected}",
}


_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(slots=True)
class Parsing:
    """One run over one configuration.

    Attributes:
        file: What problems are reported under, where the value is not from the environment.
        directory: The directory of the file, which relative paths start from.
        backends_root: What the file calls the backends: `backends`, or a client's `mcpServers`.
        origins: Where values came from, by dotted key.
    """

    file: str
    directory: Path | None = None
    backends_root: str = "backends"
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: list[Problem] = field(default_factory=list[Problem])

    def settings(self, document: Mapping[str, Any]) -> Settings:
        """Parse the whole document; what is wrong is in `problems`, and then the result is not to be used."""
        self._unknown_sections(document)
        server = self._model(ServerSettings, document.get("server", {}), "server")
        limits = self._model(LimitSettings, document.get("limits", {}), "limits")
        backends = self._backends(self._table(document.get("backends", {}), self.backends_root))
        named = self._table(document.get("groups", {}), "groups")
        groups = self._groups(named, frozenset(as_table(document.get("backends")) or {}))
        return Settings(
            server=server or ServerSettings(), limits=limits or LimitSettings(), backends=backends, groups=groups
        )

    def _unknown_sections(self, document: Mapping[str, Any]) -> None:
        sections = known_keys(Settings)
        for key in document:
            if key in sections:
                continue
            homes = [
                f"{section}.{key}"
                for section, model in (("server", ServerSettings), ("limits", LimitSettings))
                if key in known_keys(model)
            ]
            if key in _BACKENDS_ELSEWHERE:
                homes = ["backends"]
            more = f"; did you mean `{homes[0]}`?" if homes else suggestion(key, sections)
            self._report(dotted(key), f"is not a known key{more}")

    def _backends(self, table: Mapping[str, Any]) -> dict[str, BackendSettings]:
        parsed: dict[str, BackendSettings] = {}
        for name, value in table.items():
            fault = backend_name_fault(name)
            if fault is not None:
                self._report(dotted(self.backends_root, name), fault)
            given = {"name": name, "directory": self.directory}
            backend = self._model(BackendSettings, value, self.backends_root, name, given=given)
            if backend is not None:
                parsed[name] = backend
        return parsed

    def _groups(self, table: Mapping[str, Any], backends: frozenset[str]) -> dict[str, GroupSettings]:
        parsed: dict[str, GroupSettings] = {}
        for name, value in table.items():
            if not _GROUP_NAME.fullmatch(name):
                self._report(
                    dotted("groups", name),
                    "is not a name for a group: use lower-case letters, digits and `-`, and no `-` at the start",
                )
            group = self._model(GroupSettings, value, "groups", name)
            if group is None:
                continue
            parsed[name] = group
            for index, member in enumerate(group.members):
                if member.backend not in backends and member.backend != BUILTIN:
                    more = suggestion(member.backend, (*backends, BUILTIN))
                    self._report(
                        dotted("groups", name, "members", index, "backend"),
                        f"names the backend `{member.backend}`, which is not configured{more}",
                    )
        return parsed

    def _report(self, key: str, message: str) -> None:
        self.problems.append(Problem(self.origins.get(key, self.file), key, message))

    def _table(self, value: object, key: str) -> dict[str, Any]:
        table = as_table(value)
        if table is None:
            self._report(key, "must be a table")
        return table or {}

    def _model(
        self, kind: type[_Model], value: object, *parts: str, given: Mapping[str, Any] | None = None
    ) -> _Model | None:
        """The table at `parts` as a `kind`, with the fields in `given`; None where something is wrong with it.

        Unknown keys are taken out first: while they are there, pydantic does not look at how the others go together.
        """
        before = len(self.problems)
        source = as_table(value)
        if source is None:
            self._report(dotted(*parts), "must be a table")
            return None
        known = known_keys(kind)
        table = dict(source)
        for key in [key for key in table if key not in known]:
            del table[key]
            self._report(dotted(*parts, key), f"is not a known key{suggestion(key, known)}")
        try:
            model = kind.model_validate(table | dict(given or {}))
        except ValidationError as error:
            # `include_input` off, and no chaining: the values may be secrets.
            for detail in error.errors(include_url=False, include_input=False):
                self._report(dotted(*parts, *detail["loc"]), _wording(detail))
            return None
        return model if len(self.problems) == before else None


def backend_name_fault(name: str) -> str | None:
    """Why this cannot be the name of a backend, or None if it can."""
    if name == BUILTIN:
        return "is the name of the backend that Bridgehead itself is: choose another"
    if not name.strip() or not name.isprintable() or "/" in name or len(name) > _BACKEND_NAME_LENGTH:
        return f"is not a name for a backend: use 1 to {_BACKEND_NAME_LENGTH} printable characters without `/`"
    return None


def _wording(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        # Only members are nested tables with fixed keys; those of the outer table were looked at before.
        return f"is not a known key{suggestion(str(detail['loc'][-1]), known_keys(GroupMember))}"
    if detail["type"] == "value_error":
        return detail["msg"].removeprefix("Value error, ")
    words = _WORDING.get(detail["type"])
    return words.format(**detail.get("ctx", {})) if words else detail["msg"]
