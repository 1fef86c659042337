"""The command line as a whole: what it loads, how it fails, and that its table of commands is true."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

import bridgehead
from bridgehead.cli.errors import exit_code
from bridgehead.cli.lazy import COMMANDS, GROUPS, load, module_of
from bridgehead.core import Kind
from tests.cli.tiny import BRIDGEHEAD, CommandLine


def test_help_names_every_command_without_loading_any() -> None:
    script = (
        "import sys; from bridgehead.cli.root import run; code = run(['--help']);"
        "heavy = {'pydantic', 'sqlalchemy', 'mcp', 'starlette', 'rich', 'httpx2', 'anyio', 'bridgehead.cli.commands'};"
        "print('loaded:', sorted(heavy & set(sys.modules))); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 0, done.stderr
    assert "loaded: []" in done.stdout
    for name in {path.split()[0] for path in COMMANDS}:
        assert f"\n  {name} " in done.stdout


def test_help_costs_little() -> None:
    """Under 150 ms on a quiet machine; measured as its own processor time, with room for a slow one."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([BRIDGEHEAD, "--help"], capture_output=True, check=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)

    assert after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime < 0.45


@pytest.mark.parametrize("path", [path for path in COMMANDS if path not in {"serve", "mcp stdio", "completion"}])
def test_every_command_that_tells_something_tells_it_to_programs_too(path: str) -> None:
    assert "--json" in {spelling for parameter in load(path).params for spelling in parameter.opts}


def test_the_table_of_commands_and_the_modules_agree() -> None:
    folder = Path(bridgehead.__file__).parent / "cli" / "commands"
    modules = {f"bridgehead.cli.commands.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__"}

    assert modules == {module_of(path) for path in COMMANDS}
    assert {path.split()[0] for path in COMMANDS if " " in path} == GROUPS.keys()


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_explains_itself(run: CommandLine, path: str) -> None:
    done = run(*path.split(), "--help")

    assert done.returncode == 0, done.stderr
    assert f"Usage: bridgehead {path}" in done.stdout
    assert COMMANDS[path] in " ".join(done.stdout.split())


def test_without_arguments_the_help_is_shown(run: CommandLine) -> None:
    done = run()

    assert done.returncode == 0
    assert done.stdout.startswith("Usage: bridgehead")


def test_the_version_is_the_packages(run: CommandLine) -> None:
    assert run("--version").stdout == f"bridgehead {bridgehead.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "told", "hint"),
    [
        (["toosl"], "No such command 'toosl'. Did you mean 'tools'", "bridgehead --help"),
        (["tools"], "Missing command.", "bridgehead tools --help"),
        (["tools", "list", "--nope"], "No such option: --nope", "bridgehead tools list --help"),
        (["tools", "call"], "Missing argument 'NAME'", "bridgehead tools call --help"),
        (["tools", "call", "x", "{bad"], "This is not JSON", "bridgehead"),
        (["tools", "call", "x", "word"], "neither key=value nor a JSON object", "bridgehead"),
    ],
)
def test_a_wrong_command_line_is_told_in_a_sentence_with_a_hint(
    run: CommandLine, arguments: list[str], told: str, hint: str
) -> None:
    done = run(*arguments)

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {told}") or told in done.stderr
    assert f"hint: {hint}" in done.stderr


def test_denied_and_conflict_have_exit_codes_of_their_own() -> None:
    assert {kind: exit_code(kind) for kind in Kind} == {
        **dict.fromkeys(Kind, 1),
        Kind.UNAUTHENTICATED: 3,
        Kind.FORBIDDEN: 3,
        Kind.CONFLICT: 4,
    }


def test_serving_other_machines_is_refused(run: CommandLine) -> None:
    done = run("serve", "--host", "192.0.2.1")

    assert done.returncode == 3
    assert "no authentication for remote callers" in done.stderr
    assert "hint:" in done.stderr
