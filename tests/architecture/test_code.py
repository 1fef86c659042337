"""Habits that keep the code readable, held for every file."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

from tests.architecture.source import ALL, ROOT, SRC, Module

EMPTY_WORDS = ("Manager", "Helper", "Helpers", "Util", "Utils", "Service", "Info", "Data")
ROOMS = sorted((ROOT / "src" / "bridgehead").glob("*/__init__.py"))


def name_of(module: Module) -> str:
    return module.path


def room_of(door: Path) -> str:
    return door.parent.name


each_module = pytest.mark.parametrize("module", ALL, ids=name_of)


@each_module
def test_imports_stand_at_the_top(module: Module) -> None:
    hidden = [
        f"{name}, line {node.lineno}"
        for name, function in module.functions.items()
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]

    assert not hidden


@each_module
def test_nothing_is_mocked(module: Module) -> None:
    imported = {
        name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [f"{node.module}.{alias.name}" for alias in node.names]
        )
    }

    assert not [name for name in imported if re.match(r"(unittest\.)?mock\b|pytest_mock\b", name)]


@each_module
def test_nothing_is_left_for_later(module: Module) -> None:
    comments = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline)
        if token.type == tokenize.COMMENT
    ]

    assert not [comment for comment in comments if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", comment)]


def test_class_names_say_what_the_thing_is() -> None:
    names = [
        f"{module.path}: {node.name}"
        for module in SRC
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith(EMPTY_WORDS)
    ]

    assert not names


@pytest.mark.parametrize("door", ROOMS, ids=room_of)
def test_a_rooms_door_says_what_it_is_for_and_what_may_be_taken(door: Path) -> None:
    tree = ast.parse(door.read_text(encoding="utf-8"))
    assigned = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    assert ast.get_docstring(tree)
    assert "__all__" in assigned


def test_every_room_has_a_door() -> None:
    directories = {
        path for path in (ROOT / "src" / "bridgehead").iterdir() if path.is_dir() and list(path.glob("*.py"))
    }

    assert {door.parent for door in ROOMS} == directories
