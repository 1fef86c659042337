"""Completion: in real shells where they are, and what is read of a command against its real parser."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cli.complete import PATHS, complete
from bridgehead.cli.lazy import COMMANDS, load
from bridgehead.cli.signatures import signature
from bridgehead.config.clients import CLIENTS
from tests.cli.tiny import BRIDGEHEAD, CommandLine, TinyBridge

ECHO = {"name": "box__echo", "description": "Says it\nagain."}


def words(line: list[str]) -> list[str]:
    return [each.partition("\t")[0] for each in complete(line)]


@pytest.mark.parametrize("path", COMMANDS)
def test_what_is_read_of_a_command_is_what_its_parser_says(path: str) -> None:
    parsed: list[Any] = [one for one in load(path).params if one.name != "help"]

    assert [
        (
            one.name,
            (*one.opts, *one.secondary_opts) if one.param_type_name == "option" else (),
            one.help,
            one.param_type_name == "argument" or not one.is_flag,
            one.nargs == -1,
        )
        for one in parsed
    ] == [(one.name, one.spellings, one.help, one.takes_value, one.many) for one in signature(path)]


def test_commands_are_completed() -> None:
    assert "serve" in words([""])
    assert "tools" in words([""])
    assert words(["to"]) == ["tools"]
    assert words(["tools", ""]) == ["list", "show", "call"]
    assert complete(["tools", "sh"]) == [f"show\t{COMMANDS['tools show']}"]
    assert words(["tools", "nope", ""]) == []


def test_clients_are_completed_and_named_as_they_are_known() -> None:
    assert words(["connect", ""]) == words(["import", "cursor", ""]) == list(CLIENTS)
    for path in ("connect", "import"):
        assert ", ".join(CLIENTS) in signature(path)[0].help


def test_options_and_their_values_are_completed() -> None:
    assert words(["serve", "--log-f"]) == ["--log-format"]
    assert words(["serve", "--log-format", ""]) == ["text", "json"]
    assert words(["serve", "--log-format=j"]) == ["--log-format=json"]
    assert words(["serve", "--port", "1", "--p"]) == []
    assert words(["completion", "z"]) == ["zsh"]
    assert complete(["serve", "--config", ""]) == [PATHS]
    assert words(["serve", "--port", ""]) == []
    assert "--help" in words(["tools", "list", "--"])


def ask(run: CommandLine, *line: str) -> list[str]:
    return run(*line, extra={"BRIDGEHEAD_COMPLETE": "1"}).stdout.splitlines()


def test_names_are_those_of_the_running_bridge(bridge: TinyBridge, run: CommandLine) -> None:
    bridge.tools = [[ECHO, {"name": "odd name$(x)"}]]
    bridge.pages["/health"] = {"backends": {"list": [{"name": "box", "state": "ready", "tools": 1}]}}
    bridge.pages["/groups"] = {"work": {"description": "For work."}, "play": {}}

    assert ask(run, "tools", "call", "") == ["box__echo\tSays it again."]
    assert ask(run, "tools", "show", "nope") == []
    assert ask(run, "backend", "test", "b") == ["box\tready, 1 tools"]
    assert ask(run, "groups", "disable", "w") == ["work\tFor work."]
    assert ask(run, "backend", "remove", "") == ["box\tready, 1 tools"]
    assert ask(run, "doctor", "box", "") == ["box\tready, 1 tools"]
    assert ask(run, "tail", "--backend", "") == ["box\tready, 1 tools"]
    assert ask(run, "tools", "list", "--group=w") == ["--group=work\tFor work."]


def test_a_shell_that_cannot_pass_an_empty_word_says_so_otherwise(run: CommandLine) -> None:
    done = run("tools", extra={"BRIDGEHEAD_COMPLETE": "next"})

    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == ["list", "show", "call"]


def test_where_no_bridge_answers_there_are_no_names_and_no_errors(run: CommandLine) -> None:
    done = run("tools", "call", "", extra={"BRIDGEHEAD_COMPLETE": "1"})

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_completing_imports_nothing_heavy() -> None:
    script = (
        "import sys; from bridgehead.cli.completing import completions; completions(['serve', '--']);"
        "heavy = {'pydantic', 'sqlalchemy', 'mcp', 'starlette', 'rich', 'httpx2', 'anyio', 'aiohttp'};"
        "print('loaded:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == "loaded: []\n"


def typed_into(shell: list[str], set_up: str, line: str, run: CommandLine) -> str:
    """What an interactive shell shows after the set-up, the line and the tab key."""
    pid, terminal = pty.fork()
    if pid == 0:
        path = f"{BRIDGEHEAD.parent}:{os.environ['PATH']}"
        os.execvpe(shell[0], shell, {**run.environ(), "PATH": path, "TERM": "dumb", "PS1": "$ "})  # noqa: S606  on a terminal
    shown = b""
    try:
        # What is typed is shown as well, so it must not read as what it says. Every shell joins the two.
        os.write(terminal, f'{set_up}; echo ready-""42\n'.encode())
        shown += until(terminal, rb"ready-42")
        os.write(terminal, f"{line}\t".encode())
        shown = until(terminal, rb"(?s).*\S", quiet_s=1.5)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[\r\x07\x08]", "", shown.decode(errors="replace"))


def until(terminal: int, wanted: bytes, *, quiet_s: float = 0.0, within_s: float = 20) -> bytes:
    """What the terminal shows until that is in it and nothing more has come for a while."""
    shown, deadline = b"", time.monotonic() + within_s
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], quiet_s or 0.2)
        if ready:
            shown += os.read(terminal, 4096)
        elif re.search(wanted, shown):
            return shown
    raise AssertionError(f"the shell shows only {shown!r}")


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(bridgehead completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -u; source <(bridgehead completion zsh)"),
    "fish": (["fish", "--no-config", "-i"], "bridgehead completion fish | source"),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_shell_completes(shell: str, bridge: TinyBridge, run: CommandLine) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    bridge.tools = [[ECHO]]
    argv, set_up = SHELLS[shell]

    assert "bridgehead tools show box__echo" in typed_into(argv, set_up, "bridgehead tools show bo", run)


def test_bash_completes_commands_options_values_and_files(run: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "bridge-settings.toml").touch()
    argv, set_up = SHELLS["bash"]
    for line, completed in (
        ("bridgehead conf", "bridgehead config "),
        ("bridgehead serve --log-fo", "bridgehead serve --log-format "),
        ("bridgehead serve --log-format=js", "bridgehead serve --log-format=json"),
        # A dumb terminal scrolls a long line, so that only its end is there.
        (f"bridgehead serve --config {tmp_path}/bridge-s", "/bridge-settings.toml"),
    ):
        assert completed in typed_into(argv, set_up, line, run).replace("\n", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_every_script_says_where_to_load_it(run: CommandLine, shell: str) -> None:
    script = run("completion", shell).stdout

    assert f"bridgehead completion {shell}" in "".join(script.splitlines()[:2])
    assert "BRIDGEHEAD_COMPLETE" in script


def test_another_shell_is_a_wrong_command_line(run: CommandLine) -> None:
    assert run("completion", "tcsh").returncode == 2
