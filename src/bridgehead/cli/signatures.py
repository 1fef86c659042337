"""The options and arguments of a command, read from its module's text: importing half of them takes a second.

Command modules are written alike (keyword parameters, each annotated with `typer.Option(…)` or `typer.Argument(…)` or with
a name from `options`), and that is all that is understood here. A test holds it to the real parsers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bridgehead.cli.lazy import module_of

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Parameter:
    """One option or argument.

    Attributes:
        name: The parameter's name in the code.
        spellings: `--json`, or `--group` and `-g`; empty for an argument.
        help: What it is for.
        takes_value: Whether a value follows; true for arguments.
        many: Whether it is an argument that may be given again and again.
        choices: What it can be, where that is fixed.
        is_path: Whether it names a file or directory.
    """

    name: str
    spellings: tuple[str, ...]
    help: str
    takes_value: bool
    many: bool
    choices: tuple[str, ...]
    is_path: bool


def signature(path: str) -> list[Parameter]:
    """The parameters of the command, in order."""
    module = _HERE / "commands" / f"{module_of(path).rpartition('.')[2]}.py"
    shared = {
        target.id: statement.value
        for statement in _parsed(_HERE / "options.py").body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    for statement in _parsed(module).body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "command":
            given = [*statement.args.args, *statement.args.kwonlyargs]
            return [parameter for each in given for parameter in _parameter(each, shared)]
    raise LookupError(f"{module} defines no command")


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _parameter(given: ast.arg, shared: dict[str, ast.expr]) -> Iterator[Parameter]:
    annotation = given.annotation
    if isinstance(annotation, ast.Name):
        annotation = shared.get(annotation.id)
    if not (isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple)):
        return
    kind, made = annotation.slice.elts[:2]
    if not isinstance(made, ast.Call):
        return
    words = [word.value for word in made.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
    # `--http/--stdio` is a switch with a spelling for each way.
    written = [spelling for word in words for spelling in word.split("/")]
    helps = [keyword.value for keyword in made.keywords if keyword.arg == "help"]
    text = helps[0].value if helps and isinstance(helps[0], ast.Constant) else ""
    names = {node.id for node in ast.walk(kind) if isinstance(node, ast.Name)}
    is_option = isinstance(made.func, ast.Attribute) and made.func.attr == "Option"
    yield Parameter(
        name=given.arg,
        spellings=tuple(written),
        help=str(text),
        takes_value=not is_option or "bool" not in names,
        many=not is_option and "list" in names,
        choices=tuple(
            node.value
            for node in ast.walk(kind)
            if "Literal" in names and isinstance(node, ast.Constant) and isinstance(node.value, str)
        ),
        is_path="Path" in names,
    )
