"""From a file and the environment to `Settings`, once, at the start.

The only module here that reads files. Whether what they name exists is for `check` and for the start to see.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridgehead.config.client_json import read_client_json
from bridgehead.config.environment import CONFIG_VARIABLE, Overlay, read_environment
from bridgehead.config.parse import Parsing
from bridgehead.config.placeholders import expand_home, home, names_in
from bridgehead.config.problems import Problem, dotted, invalid
from bridgehead.config.settings import Settings
from bridgehead.config.tables import as_table, texts, walk
from bridgehead.core.errors import ConfigInvalid

FILE_NAME = "bridgehead.toml"
_TOML_PLACE = re.compile(r" \(at (?:line (?P<line>\d+), column (?P<column>\d+)|(?P<end>end of document))\)$")


@dataclass(slots=True)
class _Document:
    """A file as tables."""

    tables: dict[str, Any] = field(default_factory=dict[str, Any])
    backends_root: str = "backends"
    warnings: list[str] = field(default_factory=list[str])
    problems: list[Problem] = field(default_factory=list[Problem])


def load(path: Path | None, environ: Mapping[str, str]) -> Settings:
    """Read the configuration.

    Args:
        path: TOML, or a client's JSON. None: what `BRIDGEHEAD_CONFIG` names, else `./bridgehead.toml`, else
            `$XDG_CONFIG_HOME/bridgehead/bridgehead.toml`, else nothing but the environment.
        environ: What `environment` reads. Placeholders are not filled in here.

    Raises:
        ConfigInvalid: There is no such file, or it cannot be used. All problems are reported together.
    """
    file = locate(path, environ)
    document = _read(file) if file is not None else _Document()
    shown = file.name if file is not None else "no configuration file"
    parsing = Parsing(shown, file.absolute().parent if file else None, document.backends_root)
    parsing.problems.extend(document.problems)
    origins = dict.fromkeys(walk(document.tables), shown)
    placeholders = {name for text in texts(document.tables) for name in names_in(text)}
    overlay = read_environment(environ, as_table(document.tables.get("groups")) or (), placeholders)
    _lay_over(document.tables, overlay)
    origins |= overlay.origins
    parsing.origins = origins
    parsing.problems.extend(overlay.problems)
    settings = parsing.settings(document.tables)
    if parsing.problems:
        raise invalid(parsing.problems)
    warnings = [*document.warnings, *overlay.warnings, *_doubts(settings)]
    if file is None:
        warnings.insert(0, _nothing_found(environ))
    elif not settings.backends:
        warnings.append(f"{shown} configures no backend.")
    return settings.model_copy(update={"source": file, "origins": origins, "warnings": tuple(warnings)})


def locate(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The file that `load` reads; it need not exist where it was named. None where none is named and none found."""
    return _named(path, environ) or _found(environ)


def search_order(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Where a configuration is looked for when none is named."""
    base = environ.get("XDG_CONFIG_HOME", "")
    # A relative path there is invalid and to be ignored (XDG Base Directory Specification 0.8).
    root = Path(base) if Path(base).is_absolute() else home(environ) / ".config"
    return Path(FILE_NAME), root / "bridgehead" / FILE_NAME


def _named(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    if path is None and environ.get(CONFIG_VARIABLE):
        path = Path(environ[CONFIG_VARIABLE])
    return Path(expand_home(str(path), environ)) if path is not None else None


def _found(environ: Mapping[str, str]) -> Path | None:
    return next((path for path in search_order(environ) if _may_be_file(path)), None)


def _may_be_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # Not allowed to look: reading it then says so, where passing over it would be a riddle.
        return True


def _nothing_found(environ: Mapping[str, str]) -> str:
    looked = " nor ".join(str(path) for path in search_order(environ))
    return (
        f"There is neither {looked}, so no backend is configured: "
        f"write one of them, or name a file with --config or {CONFIG_VARIABLE}."
    )


def _read(path: Path) -> _Document:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigInvalid(
            f"There is no file {path}.",
            hint=f"check the path, or name another file with --config or {CONFIG_VARIABLE}.",
        ) from None
    except IsADirectoryError:
        raise ConfigInvalid(f"{path} is a directory.", hint=f"name a file in it, such as {path / FILE_NAME}.") from None
    except OSError as error:
        raise ConfigInvalid(
            f"{path} cannot be read: {error.strerror or error}.",
            hint="check the rights of the file and its directories.",
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigInvalid(f"{path} is not UTF-8, from byte {error.start} on.", hint="save it as UTF-8.") from None
    is_json = path.suffix in {".json", ".jsonc"} or (path.suffix != ".toml" and text.lstrip().startswith("{"))
    return _from_json(text, path.name) if is_json else _Document(_from_toml(text, path.name))


def _from_toml(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # Only the message has the place before Python 3.14.
        place = _TOML_PLACE.search(str(error))
        at = ""
        if place is not None:
            lines = text.split("\n")
            line, column = (len(lines), len(lines[-1]) + 1) if place["end"] else (place["line"], place["column"])
            at = f", line {line}, column {column}"
        what = _TOML_PLACE.sub("", str(error)).rstrip(".")
        raise ConfigInvalid(
            f"{file}{at}: this is not TOML: {what}.", hint="correct the line, then run `bridgehead config check`."
        ) from None
    except (RecursionError, ValueError):
        raise _outlandish(file) from None


def _from_json(text: str, file: str) -> _Document:
    doubled: list[str] = []

    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        doubled.extend(dict.fromkeys(key for key in keys if keys.count(key) > 1))
        return dict(pairs)

    try:
        value: Any = json.loads(text, object_pairs_hook=table)
    except json.JSONDecodeError as error:
        raise ConfigInvalid(
            f"{file}, line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}.",
            hint="correct the line; comments and commas at the end of a list are not JSON.",
        ) from None
    except (RecursionError, ValueError):
        raise _outlandish(file) from None
    document = as_table(value)
    if document is None:
        raise ConfigInvalid(f"{file} is no JSON object.", hint="name a file with `mcpServers`, or write TOML.")
    read = read_client_json(document, file)
    problems = [Problem(file, "", f"the key `{key}` is there more than once in one object") for key in doubled]
    return _Document({"backends": read.backends}, read.root, read.warnings, [*problems, *read.problems])


def _outlandish(file: str) -> ConfigInvalid:
    return ConfigInvalid(
        f"{file} is nested too deeply, or holds a number that is too long.", hint="check that it is the right file."
    )


def _lay_over(tables: dict[str, Any], overlay: Overlay) -> None:
    """Put the environment's values in; a section that is no table is left for validation to refuse."""
    for (section, key), value in overlay.values.items():
        table = as_table(tables.setdefault(section, {}))
        if table is not None:
            table[key] = value
    groups = as_table(tables.get("groups", {})) or {}
    for group, on in overlay.switches.items():
        table = as_table(groups[group])
        if table is not None:
            table["enabled"] = on


def _doubts(settings: Settings) -> list[str]:
    """What can be meant, but is probably a mistake."""
    doubts = [
        f"{dotted('groups', name)} has no members, so it holds no tool."
        for name, group in settings.groups.items()
        if not group.members
    ]
    if settings.server.ungrouped == "hide":
        named = {member.backend for group in settings.groups.values() for member in group.members}
        doubts += [
            f'{dotted("backends", name)} is in no group and `server.ungrouped` is "hide", so no tool of it is visible: '
            "name it in a group."
            for name in settings.backends
            if name not in named
        ]
    return doubts
