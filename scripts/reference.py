"""Writes the tables of `docs/reference/` from the code, so that the pages cannot say what the code does not do.

A table stands between `<!-- table:NAME -->` and `<!-- /table:NAME -->`; the text around it is written by hand.
`tests/docs/test_reference.py` compares what is in the pages with what this module would write.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

import bridgehead
from bridgehead.cli.lazy import COMMANDS, load
from bridgehead.config import BackendSettings, GroupMember, GroupSettings, LimitSettings, ServerSettings
from bridgehead.config.environment import variable_names
from bridgehead.core.errors import BridgeError

PAGES = Path(__file__).parent.parent / "docs" / "reference"
_ATTRIBUTE = re.compile(r"^ {4}(?P<name>\w+): (?P<text>.*(?:\n {8}.*)*)", re.MULTILINE)

SELF_EXPLANATORY = {
    "server.host": "The address to listen on; only a loopback address is accepted for now.",
    "server.max_body_bytes": "Largest request body.",
    "server.shutdown_grace_s": "How long calls that are running may go on after the bridge was told to stop.",
    "server.log_level": "What is logged, on standard error.",
    "backends.NAME.command": "The program to start.",
    "backends.NAME.args": "Its arguments.",
    "backends.NAME.env": "Variables it gets besides the minimal environment.",
    "backends.NAME.url": "The server to reach.",
    "backends.NAME.headers": "HTTP headers to send, for `url` only.",
    "backends.NAME.enabled": "Off: not started, and none of its tools shown.",
    "backends.NAME.start_timeout_s": "How long it may take to start and to list what it offers.",
    "backends.NAME.timeout_s": "How long a call may take.",
    "groups.NAME.description": "One sentence on what the group is for.",
    "groups.NAME.enabled": "Off: its tools are hidden and cannot be called, unless another group holds them.",
    "groups.NAME.members": "Which tools are in it; see below.",
    "groups.NAME.members.backend": "The backend; `builtin` is the bridge itself.",
    "groups.NAME.members.prefixes": "Tools whose names begin so.",
    "groups.NAME.members.names": "Tools of exactly these names.",
    "groups.NAME.members.globs": "Tools whose names match, as in `read_*`.",
}
"""Meanings of keys whose docstring leaves them to their name."""


def tables() -> dict[str, str]:
    """Every table by its name, as Markdown."""
    return {
        "server": settings_table("server", ServerSettings, has_variables=True),
        "limits": settings_table("limits", LimitSettings, has_variables=True),
        "backends": settings_table("backends.NAME", BackendSettings),
        "groups": settings_table("groups.NAME", GroupSettings),
        "members": settings_table("groups.NAME.members", GroupMember),
        "errors": errors_table(),
        "commands": commands_section(),
    }


def settings_table(section: str, model: type[BaseModel], *, has_variables: bool = False) -> str:
    """One row a key.

    Raises:
        LookupError: A key whose meaning nobody wrote down.
    """
    described = _attributes(model)
    properties = cast("Mapping[str, Mapping[str, Any]]", model.model_json_schema()["properties"])
    rows: list[list[str]] = []
    for name, field in model.model_fields.items():
        if field.exclude:
            continue
        meaning = described.get(name) or SELF_EXPLANATORY.get(f"{section}.{name}")
        if meaning is None:
            raise LookupError(f"{section}.{name}: describe it under `Attributes:` of {model.__name__}")
        default = "required" if field.is_required() else _default(field.get_default(call_default_factory=True))
        variable = [f"`{variable_names(section, name)[-1]}`"] if has_variables else []
        rows.append([f"`{name}`", _kind(properties[name]), default, *variable, meaning])
    head = ["Key", "Value", "Default", *(["Variable"] if has_variables else []), "Meaning"]
    return _table(head, rows)


def _attributes(model: type[BaseModel]) -> dict[str, str]:
    text = inspect.getdoc(model) or ""
    _, _, section = text.partition("Attributes:\n")
    return {found["name"]: " ".join(found["text"].split()) for found in _ATTRIBUTE.finditer(section)}


def _kind(schema: Mapping[str, Any]) -> str:
    """What may stand there, in a word or two."""
    options = [option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"]
    one = cast("Mapping[str, Any]", options[0])
    match one:
        case {"enum": choices}:
            return " or ".join(f"`{choice}`" for choice in cast("list[str]", choices))
        case {"type": "array", "items": {"$ref": _}}:
            return "list of tables"
        case {"type": "array"}:
            return "list of texts"
        case {"type": "object"}:
            return "table"
        case {"type": "boolean"}:
            return "`true` or `false`"
        case {"type": "integer" | "number"}:
            return "number"
        case _:
            return "text"


def _default(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return f"`{str(value).lower()}`"
        case str():
            return f'`"{value}"`'
        case float() if value.is_integer():
            return f"`{int(value)}`"
        case int() | float():
            return f"`{value}`"
        case _:
            return "empty"


def errors_table() -> str:
    """One row a code; where classes share one, the first in the alphabet tells its meaning."""
    by_code: dict[str, type[BridgeError]] = {}
    for error in sorted(_errors(), key=lambda error: error.__name__):
        by_code.setdefault(error.code, error)
    rows = [[f"`{code}`", error.kind.value, _first_paragraph(error)] for code, error in sorted(by_code.items())]
    return _table(["Code", "Kind", "Meaning"], rows)


def _errors() -> Iterator[type[BridgeError]]:
    for module in pkgutil.walk_packages(bridgehead.__path__, "bridgehead."):
        importlib.import_module(module.name)
    waiting = list(BridgeError.__subclasses__())
    while waiting:
        error = waiting.pop()
        waiting.extend(error.__subclasses__())
        yield error


def commands_section() -> str:
    """A heading, a usage line and the options for every command."""
    parts: list[str] = []
    for path, summary in COMMANDS.items():
        command = load(path)
        words: list[str] = []
        rows: list[list[str]] = []
        for parameter in command.params:
            if getattr(parameter, "param_type_name", "") == "argument":
                shown = str(parameter.metavar or parameter.name.upper())
                words.append(shown if parameter.required else f"[{shown}]")
                rows.append([f"`{shown}`", str(parameter.help or "")])
                continue
            names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
            rows.append([names, str(parameter.help or "")])
        usage = " ".join(["bridgehead", path, *words])
        table = f"\n\n{_table(['Argument', 'Meaning'], rows)}" if rows else ""
        parts.append(f"### {path}\n\n{summary}\n\n    {usage}{table}")
    return "\n\n".join(parts)


def _first_paragraph(thing: object) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def rewritten(page: str, known: Mapping[str, str]) -> str:
    """The page with every table replaced by what the code says.

    Raises:
        LookupError: The page asks for a table that there is not.
    """

    def replacement(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in known:
            raise LookupError(f"there is no table {name!r}; there are {', '.join(known)}")
        return f"<!-- table:{name} -->\n\n{known[name]}\n\n<!-- /table:{name} -->"

    return re.sub(r"<!-- table:(?P<name>\w+) -->.*?<!-- /table:(?P=name) -->", replacement, page, flags=re.DOTALL)


def main() -> int:
    """Rewrite the pages that are out of date."""
    known = tables()
    for path in sorted(PAGES.glob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = rewritten(before, known)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"rewrote {path.relative_to(PAGES.parent.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
