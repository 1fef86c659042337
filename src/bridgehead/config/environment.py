"""What environment variables change in a configuration. They win over the file.

    PORT, BRIDGEHEAD_<KEY>, BRIDGEHEAD_<SECTION>_<KEY>   a key of `server` or `limits`; lists have commas
    MCP_GROUP_<NAME>                                     a group on or off

    PORT, BRIDGEHEAD_<KEY>, BRIDGEHEAD_<SECTION>_<KEY>   a key of `server` or `limits`; commas part a list
guessing could open tools that were meant to stay shut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from bridgehead.config.problems import Problem, dotted, nearest
from bridgehead.config.settings import LimitSettings, ServerSettings, known_keys

PREFIX = "BRIDGEHEAD_"
GROUP_PREFIX = "MCP_GROUP_"
CONFIG_VARIABLE = "BRIDGEHEAD_CONFIG"
READ_ELSEWHERE = frozenset(
    {
        CONFIG_VARIABLE,
        "BRIDGEHEAD_CHILD",
        "BRIDGEHEAD_COMPLETE",
        "BRIDGEHEAD_DEBUG",
        "BRIDGEHEAD_DEPTH",
        "BRIDGEHEAD_STATE_DIR",
        "BRIDGEHEAD_TOKEN",
        "BRIDGEHEAD_URL",
    }
)
"""Variables of ours that set no key of the configuration."""

WORDS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
"""What a switch may be set to, in any case."""

_SECTIONS: Mapping[str, type[BaseModel]] = {"server": ServerSettings, "limits": LimitSettings}


@dataclass(slots=True)
class Overlay:
    """What the environment says.

    Attributes:
        values: By section and key.
        switches: Groups on or off, by name.
        origins: `environment NAME`, by dotted key.
    """

    values: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])
    switches: dict[str, bool] = field(default_factory=dict[str, bool])
    origins: dict[str, str] = field(default_factory=dict[str, str])
    warnings: list[str] = field(default_factory=list[str])
    problems: list[Problem] = field(default_factory=list[Problem])


def variable_names(section: str, key: str) -> tuple[str, ...]:
    """The variables that set `section.key`, from the weakest to the strongest."""
    general = ("PORT",) if (section, key) == ("server", "port") else ()
    return (*general, f"{PREFIX}{key.upper()}", f"{PREFIX}{section.upper()}_{key.upper()}")


def group_variable(group: str) -> str:
    """The variable that switches the group."""
    return GROUP_PREFIX + group.upper().replace("-", "_")


def read_environment(environ: Mapping[str, str], groups: Iterable[str], placeholders: Iterable[str]) -> Overlay:
    """Read the variables that concern this configuration.

    Args:
        environ: The environment.
        groups: The configured groups.
        placeholders: Variables that backends name, which are therefore not unknown.
    """
    overlay = Overlay()
    known: set[str] = set(READ_ELSEWHERE)
    for section, model in _SECTIONS.items():
        for key in known_keys(model):
            for name in variable_names(section, key):
                known.add(name)
                if environ.get(name):
                    overlay.values[section, key] = _value(environ[name], model.model_fields[key].default)
                    overlay.origins[dotted(section, key)] = f"environment {name}"
    _read_switches(overlay, environ, groups)
    _warn_unknown(overlay, environ, known, frozenset(placeholders))
    return overlay


def _value(text: str, default: object) -> object:
    """The text as the type of the key's default; what cannot be read stays text, and validation refuses it."""
    if isinstance(default, tuple):
        return [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(default, str):
        return text.strip()
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _read_switches(overlay: Overlay, environ: Mapping[str, str], groups: Iterable[str]) -> None:
    by_variable = {group_variable(group): group for group in groups}
    for name in sorted(name for name in environ if name.startswith(GROUP_PREFIX)):
        where = f"environment {name}"
        on = WORDS.get(environ[name].strip().lower())
        if on is None:
            overlay.problems.append(Problem(where, "", f"must be one of {', '.join(WORDS)}, or not be set at all"))
            continue
        group = by_variable.get(name)
        if group is None:
            near = _nearest_variable(name, by_variable, GROUP_PREFIX)
            more = f"; did you mean {near}?" if near else _known_groups(by_variable)
            overlay.warnings.append(f"{name} is ignored, since it names no group{more}")
            continue
        overlay.switches[group] = on
        overlay.origins[dotted("groups", group, "enabled")] = where


def _nearest_variable(name: str, known: Iterable[str], prefix: str) -> str | None:
    """The nearest by what follows the prefix, which all have in common and which would make all look alike."""
    tails = [variable.removeprefix(prefix) for variable in known if variable.startswith(prefix)]
    near = nearest(name.removeprefix(prefix), tails)
    return f"{prefix}{near}" if near else None


def _known_groups(by_variable: Mapping[str, str]) -> str:
    return f"; known are {', '.join(by_variable)}." if by_variable else ", and no group is configured."


def _warn_unknown(
    overlay: Overlay, environ: Mapping[str, str], known: Iterable[str], placeholders: frozenset[str]
) -> None:
    for name in sorted(environ.keys() - known - placeholders):
        if name.startswith(PREFIX):
            near = _nearest_variable(name, placeholders.union(known), PREFIX)
            more = f"; did you mean {near}?" if near else "."
            overlay.warnings.append(f"{name} is ignored, since it is no variable of Bridgehead{more}")
