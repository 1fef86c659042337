"""Commands whose modules are imported when they are invoked, and not before.

Half of the commands need the whole bridge (SQLAlchemy, pydantic, the MCP SDK: about a second of imports), the other
half a small HTTP client. Were every command module imported to build the parser, `bridgehead --help` and each press of
the tab key would take that second. Imports inside functions would hide what a module needs, so the delay lives in this
one place: the table below knows every command's help, which is all that help pages and completion show, and
`LazyGroup` imports a command's module, by its name in the table, once that command is asked for. A test holds the
table to the modules.
"""

from __future__ import annotations

import importlib
import keyword
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

GROUPS = {
    "mcp": "Speak MCP to one client.",
    "backend": "Look at the backends, add, remove and try them.",
    "tools": "List, show and call tools of a running bridge.",
    "calls": "Look at the calls on record.",
    "groups": "Look at the tool groups, and switch them.",
    "secret": "Keep secrets out of the configuration.",
    "config": "Check and show the configuration.",
}

COMMANDS = {
    "serve": "Run the bridge.",
    "doctor": "Look for everything that is wrong, and say what mends it.",
    "mcp stdio": "Run the bridge for one client, on standard input and output.",
    "import": "Take over the servers that other clients have.",
    "connect": "Put the bridge into a client's configuration, or take it out again.",
    "backend add": "Put a backend into the configuration.",
    "backend remove": "Take a backend out of the configuration.",
    "backend list": "How every backend of the running bridge is.",
    "backend test": "Start one configured backend, list what it offers, and stop it.",
    "tools list": "The tools that can be called.",
    "tools show": "One tool: what it does, and its parameters.",
    "tools call": "Call a tool and print its result.",
    "tail": "The calls of the running bridge, each as it ends.",
    "calls list": "The latest calls on record.",
    "groups list": "The groups, on and off, and how many tools each holds.",
    "groups enable": "Switch a group on in the configuration.",
    "groups disable": "Switch a group off in the configuration.",
    "secret set": "Keep a secret, which `${secret:NAME}` stands for in the configuration.",
    "secret list": "The secrets, and which backends use them; never a value.",
    "secret remove": "Forget a secret.",
    "config check": "Say whether the configuration can be used.",
    "config show": "The settings in force, and where each comes from.",
    "completion": "Print the script that teaches a shell to complete command lines.",
}


def module_of(path: str) -> str:
    """The module that defines the command: `tools list` is `bridgehead.cli.commands.tools_list`, `import` is `import_`."""
    return f"bridgehead.cli.commands.{path.replace(' ', '_')}{'_' if keyword.iskeyword(path) else ''}"


def load(path: str) -> Any:
    """The parser of the command, made from the `command` function of its module."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(path.rpartition(" ")[2], help=COMMANDS[path])(importlib.import_module(module_of(path)).command)
    return get_command(single)


class LazyGroup(TyperGroup):
    """A group whose commands are placeholders with a name and a help text until one of them is resolved."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """As the parent does, with the placeholder replaced by the real command."""
        name, command, rest = super().resolve_command(ctx, args)
        path = f"{self.name} {name}".strip()
        return name, load(path) if path in COMMANDS else command, rest


def lazy_app(help_text: str) -> typer.Typer:
    """An application that knows every command of the table by name, and has imported none of them."""
    # Plain help: Rich would double the time that a help page takes.
    root = typer.Typer(cls=LazyGroup, help=help_text, rich_markup_mode=None, add_completion=False)
    groups = {
        name: typer.Typer(cls=LazyGroup, name=name, help=text, rich_markup_mode=None) for name, text in GROUPS.items()
    }
    for path, text in COMMANDS.items():
        group, _, name = path.rpartition(" ")
        (groups[group] if group else root).command(name, help=text)(_placeholder)
    for name, group in groups.items():
        root.add_typer(group, name=name)
    return root


def _placeholder() -> None:
    """Stands for a command that has not been imported; `LazyGroup` never lets it run."""
