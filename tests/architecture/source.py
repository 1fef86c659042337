"""The project's own Python files, parsed once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file.

    Attributes:
        path: Relative to the project, with forward slashes.
    """

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Every function by its dotted name within the module, the nested ones too."""
        return dict(_functions(self.tree, ()))


def _functions(node: ast.AST, above: tuple[str, ...]) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        inner = above
        if isinstance(child, ast.ClassDef | Function):
            inner = (*above, child.name)
        if isinstance(child, Function):
            yield ".".join(inner), child
        yield from _functions(child, inner)


def modules(*directories: str) -> list[Module]:
    """The files of these directories; generated and installed ones are elsewhere."""
    paths = [path for directory in directories for path in sorted((ROOT / directory).rglob("*.py"))]
    return [Module(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


SRC = modules("src")
ALL = modules("src", "tests", "benchmarks", "scripts")
