"""The configuration for people and programs to read: what is wrong with it here and now, and what is in effect.

Starts nothing and reaches nothing over the network; looks at the disk only for programs and directories that are named.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bridgehead.config.environment import group_variable
from bridgehead.config.placeholders import (
    LaunchInvalid,
    MissingPlaceholder,
    ResolvedBackend,
    StdioLaunch,
    resolve,
)
from bridgehead.config.ports import NoSecrets, SecretReader
from bridgehead.config.problems import Problem, dotted
from bridgehead.config.secrets import MASK
from bridgehead.config.settings import BackendSettings, Settings
from bridgehead.config.tables import as_table

_USER_INFO = re.compile(r"(?<=//)[^/?#@]*@")
_QUERY_VALUE = re.compile(r"(?<=[?&])([^=&#]+)=[^&#]+")


@dataclass(frozen=True, slots=True)
class Missing:
    """A variable that has to be set before its backend can start."""

    variable: str
    field: str


@dataclass(frozen=True, slots=True)
class MissingSecret:
    """A secret that has to be kept before its backend can start."""

    secret: str
    field: str


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """A group as it stands.

    Attributes:
        origin: What says so: the file, `environment MCP_GROUP_…`, or `default`.
        variable: The environment variable that would switch it.
        backends: The backends it names.
    """

    name: str
    title: str | None
    enabled: bool
    origin: str
    variable: str
    backends: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What `check` found.

    Attributes:
        problems: What keeps a backend from starting, besides missing variables and secrets.
        missing: Variables that are not set, by backend; each keeps its backend from starting and no other.
        missing_secrets: Secrets that are not kept, likewise.
    """

    source: Path | None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    missing: Mapping[str, tuple[Missing, ...]] = field(default_factory=dict[str, tuple[Missing, ...]])
    groups: tuple[GroupStatus, ...] = ()
    missing_secrets: Mapping[str, tuple[MissingSecret, ...]] = field(
        default_factory=dict[str, tuple[MissingSecret, ...]]
    )

    @property
    def ok(self) -> bool:
        """Whether every backend that is enabled could be started."""
        return not self.problems and not self.missing and not self.missing_secrets


def check(settings: Settings, environ: Mapping[str, str], secrets: SecretReader | None = None) -> Report:
    """Look for what would go wrong at the start; backends that would not be started are left out.

    `secrets` is asked where a placeholder names one; without it, no secret is set.
    """
    store = secrets or NoSecrets()
    problems: list[Problem] = []
    warnings: list[str] = list(settings.warnings)
    missing: dict[str, tuple[Missing, ...]] = {}
    missing_secrets: dict[str, tuple[MissingSecret, ...]] = {}
    for name, backend in settings.backends.items():
        if not backend.enabled or not settings.wants(name):
            continue
        try:
            resolved = resolve(backend, environ, store)
        except MissingPlaceholder as error:
            if error.details["missing"]:
                missing[name] = tuple(Missing(**entry) for entry in error.details["missing"])
            if error.details["missing_secrets"]:
                missing_secrets[name] = tuple(MissingSecret(**entry) for entry in error.details["missing_secrets"])
        except LaunchInvalid as error:
            key = str(error.details["field"])
            where = settings.origin(dotted("backends", name))
            problems.append(Problem(where, key, error.message.removeprefix(f"{key} ")))
        else:
            warnings += _program_doubts(dotted("backends", name), resolved, environ)
    return Report(settings.source, tuple(problems), tuple(warnings), missing, _groups(settings), missing_secrets)


def show(settings: Settings) -> dict[str, Any]:
    """The effective configuration as JSON values.

    `source`, `settings` (nested, defaults included, secrets as `***`), `origins` (by dotted key) and `warnings`.
    """
    shown = {
        "server": _plain(settings.server),
        "limits": _plain(settings.limits),
        "backends": {name: _backend(backend) for name, backend in settings.backends.items()},
        "groups": {name: _plain(group) for name, group in settings.groups.items()},
    }
    return {
        "source": str(settings.source) if settings.source is not None else None,
        "settings": shown,
        "origins": {key: settings.origin(key) for key in _leaves(shown)},
        "warnings": list(settings.warnings),
    }


def _plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json")


def _backend(backend: BackendSettings) -> dict[str, Any]:
    """One backend, without the half that its kind does not have."""
    shown = _plain(backend)
    for key in ("command", "args", "env", "cwd") if backend.url is not None else ("url", "headers", "transport"):
        del shown[key]
    if backend.url is not None:
        shown["url"] = _QUERY_VALUE.sub(rf"\1={MASK}", _USER_INFO.sub(f"{MASK}@", backend.url))
    return shown


def _leaves(table: Mapping[str, Any], *above: str) -> Iterator[str]:
    for key, value in table.items():
        inner = as_table(value)
        if inner:
            yield from _leaves(inner, *above, key)
        else:
            yield dotted(*above, key)


def _groups(settings: Settings) -> tuple[GroupStatus, ...]:
    return tuple(
        GroupStatus(
            name=name,
            title=group.title,
            enabled=group.enabled,
            origin=settings.origin(dotted("groups", name, "enabled")),
            variable=group_variable(name),
            backends=tuple(dict.fromkeys(member.backend for member in group.members)),
        )
        for name, group in settings.groups.items()
    )


def _program_doubts(key: str, resolved: ResolvedBackend, environ: Mapping[str, str]) -> Iterator[str]:
    """What is looked for is the launch; what is shown is the launch as written, without the values of secrets."""
    launch, written = resolved.launch, resolved.written
    if not isinstance(launch, StdioLaunch) or not isinstance(written, StdioLaunch):
        return
    if launch.cwd is not None and not launch.cwd.is_dir():
        yield f"{key}.cwd: there is no directory {written.cwd}, so it cannot start: create it, or correct the path."
    program = launch.command
    if os.sep in program:
        program = str((launch.cwd or Path.cwd()) / program)
    if shutil.which(program, path=environ.get("PATH", os.defpath)) is None:
        yield (
            f"{key}.command: there is no program `{written.command}` on the PATH, so it cannot start: "
            "install it, or correct the command."
        )
