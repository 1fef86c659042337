"""`bridgehead doctor`, on real files, real programs and real servers."""

from __future__ import annotations

import io
import json
import os
import socket
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from bridgehead import probing
from bridgehead.app import Vault
from bridgehead.cli.progress import ProgressLine
from bridgehead.config import Concealment, Settings, load
from bridgehead.diagnosis import Diagnosis, Level, Probe, Question, diagnose
from bridgehead.diagnosis.files import state_findings
from tests.cli.tiny import CommandLine
from tests.spine.bridge import SERVERS, plain, running_bridge

posix = pytest.mark.skipif(os.name != "posix", reason="permissions are looked at where there are POSIX ones")


def telling(mode: str, journal: Path) -> str:
    args = [str(SERVERS / "telling.py"), mode, str(journal)]
    return f"command = {json.dumps(sys.executable)}\nargs = {json.dumps(args)}\n"


def write(folder: Path, text: str) -> Path:
    file = folder / "bridgehead.toml"
    file.write_text(f"[server]\nport = 0\n{text}")
    file.chmod(0o600)
    return file


def examined(config: Path, *backends: str) -> Diagnosis:
    """What is found with every backend really started, in this process."""

    def prober(settings: Settings, names: Sequence[str]) -> list[Probe]:
        return anyio.run(probing.try_each, settings, Vault(config.parent, Concealment()), names, None)

    return diagnose(Question(config, config.parent, backends), os.environ, prober=prober)


def about(found: Diagnosis, subject: str) -> list[tuple[str, str, str | None]]:
    return [(one.level.value, one.message, one.mend) for one in found.findings if one.about == subject]


def look(config: Path, state_dir: Path, environ: dict[str, str] | None = None) -> list[tuple[str, str, str | None]]:
    """Every finding but good news, with nothing started."""
    question = Question(config, state_dir, start=False)
    found = diagnose(question, environ or dict(os.environ), prober=lambda _settings, _names: ())
    return [(one.about, one.message, one.mend) for one in found.findings if one.level is not Level.WELL]


def test_a_backend_that_works_is_called_only_as_it_may_be(run: CommandLine, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    config = write(tmp_path, f"[backends.box]\n{telling('fine', journal)}")

    done = run("doctor", "--config", str(config), "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["ok"] is True
    assert journal.read_text() == "look\n"
    (box,) = found["backends"]
    assert (box["ok"], box["server"], len(box["tools"])) == (True, "telling 1", 7)
    assert (box["trial"]["tool"], box["trial"]["ok"]) == ("look", True)


@pytest.mark.parametrize(
    ("mode", "level", "said"),
    [
        ("fails", "warning", "look called without arguments says that it failed: nothing to look at"),
        ("silent", "problem", "but look was not answered"),
    ],
)
def test_a_harmless_call_that_comes_to_nothing_is_told(tmp_path: Path, mode: str, level: str, said: str) -> None:
    config = write(tmp_path, f"[backends.box]\ntimeout_s = 0.5\n{telling(mode, tmp_path / 'journal')}")

    found = examined(config)

    assert found.ok is (level != "problem")
    assert any(one[0] == level and said in one[1] for one in about(found, "backend box"))


def test_everything_that_is_wrong_is_said_with_what_mends_it(run: CommandLine, tmp_path: Path) -> None:
    config = write(
        tmp_path,
        f"""
[backends.good]
{plain()}
[backends.exits]
{plain("exits")}
[backends.absent]
command = "no-such-program"
[backends.unset]
command = "sh"
args = ["${{NOBODY_SETS_THIS}}"]
[backends.homeless]
command = "sh"
cwd = "nowhere"
[backends.off]
command = "also-no-such-program"
enabled = false
[groups.work]
members = [{{ backend = "good", names = ["ecko"], globs = ["z*"] }}]
""",
    )

    done = run("doctor", "--config", str(config))

    assert done.returncode == 1
    lines = done.stdout.splitlines()
    told = {line for line in lines if line.startswith("problem")}
    assert told == {
        "problem  backend absent: backends.absent.command: there is no program `no-such-program` on the PATH.",
        "problem  backend unset: NOBODY_SETS_THIS (in backends.unset.args[0]) is not set.",
        f"problem  backend homeless: backends.homeless.cwd: its working directory {tmp_path}/nowhere does not exist.",
        next(line for line in lines if "backend exits:" in line),
    }
    assert "exited with code 3" in done.stdout
    assert "         | cannot find my configuration" in lines
    assert all(lines[lines.index(line) + 1].lstrip().startswith(("hint: ", "| ")) for line in told)
    assert "warning  group work: good has no tool `ecko`; did you mean `echo`?" in lines
    assert "warning  group work: no tool of good matches `z*`." in lines
    assert lines[-1] == "1 of 2 backends came up; 4 problems, 2 warnings."


def test_names_that_were_changed_or_collide_are_told(tmp_path: Path) -> None:
    config = write(
        tmp_path,
        f"[backends.box]\n{telling('names', tmp_path / 'journal')}"
        '[groups.work]\nmembers = [{ backend = "box", names = ["plain"] }]\n',
    )
    config.write_text(config.read_text().replace("port = 0", 'port = 0\nungrouped = "hide"'))

    found = examined(config)

    assert found.ok
    text = "\n".join(one.message for one in found.findings)
    assert "3 of its names are too long or hold what clients do not take" in text
    assert "'with.dots:and:colons' is box__with_dots_and_colons_" in text
    assert "box lists 'plain' more than once" in text
    assert ("warning", "3 of its tools are in no group, so nobody sees them") in {
        (level, message.partition(":")[0]) for level, message, _ in about(found, "backend box")
    }


def test_only_the_named_backends_are_started(run: CommandLine, tmp_path: Path) -> None:
    config = write(tmp_path, f"[backends.a]\n{plain()}[backends.b]\n{plain('exits')}")

    assert [probe.name for probe in examined(config, "a").probes] == ["a"]
    unstarted = run("doctor", "--no-start", "--json", "--config", str(config))
    assert (unstarted.returncode, json.loads(unstarted.stdout)["backends"]) == (0, [])
    absent = run("doctor", "c", "--config", str(config))
    assert (absent.returncode, absent.stdout) == (1, "")
    assert absent.stderr == "error: No backend 'c' is configured.\nhint: configured are: a, b.\n"


def test_a_configuration_that_cannot_be_read_is_a_problem_and_the_rest_is_looked_at(tmp_path: Path) -> None:
    found = examined(write(tmp_path, "prot = 1\n"))

    assert not found.ok
    assert [one.about for one in found.findings] == ["state", "configuration"]
    assert "prot is not a known key" in about(found, "configuration")[0][1]


def test_a_secret_that_is_not_kept_is_a_problem_and_one_that_is_kept_is_shown_nowhere(
    run: CommandLine, tmp_path: Path
) -> None:
    value = "hunter2-telling.py"
    script = tmp_path / value
    script.write_text(f"#!/no/such/interpreter-{value}\n")
    script.chmod(0o700)
    config = write(
        tmp_path,
        '[backends.a]\ncommand = "sh"\nargs = ["${secret:NOBODY}"]\n'
        f'[backends.b]\ncommand = "{tmp_path}/${{secret:KEPT}}"\n'
        '[backends.c]\ncommand = "sh"\nargs = ["-c", "echo $0 >&2; exit 3", "${secret:KEPT}"]\n',
    )
    config.write_text(config.read_text().replace("port = 0", 'port = 0\nsecret_store = "file"'))
    assert run("secret", "set", "KEPT", "--stdin", "--config", str(config), stdin=value).returncode == 0

    done = run("doctor", "--config", str(config), "--json")

    problems = [one for one in json.loads(done.stdout)["findings"] if one["level"] == "problem"]
    told = {one["about"]: (one["message"], one["mend"]) for one in reversed(problems)}
    assert done.returncode == 1
    assert told["backend a"] == (
        "The secret NOBODY (in backends.a.args[0]) is not set.",
        "run `bridgehead secret set NOBODY`.",
    )
    assert told["backend b"][0] == f"{tmp_path}/*** is a script for /no/such/interpreter-***, which does not exist."
    assert "hunter2" not in done.stdout + done.stderr


async def test_eight_are_tried_at_a_time_and_all_are_heard_of(tmp_path: Path) -> None:
    names = [f"b{number}" for number in range(11)]
    settings = load(write(tmp_path, "".join(f'[backends.{name}]\ncommand = "/no/such"\n' for name in names)), {})
    told: list[tuple[int, int, int]] = []

    probes = await probing.try_each(
        settings,
        Vault(tmp_path, Concealment()),
        names,
        lambda done, total, trying: told.append((done, total, len(trying))),
    )

    assert [probe.name for probe in probes] == names
    assert max(trying for _, _, trying in told) == 8
    assert told[-1] == (11, 11, 0)
    assert [path.name async for path in anyio.Path(tmp_path).iterdir()] == ["bridgehead.toml"]


def test_a_running_bridge_is_asked_and_not_disturbed(run: CommandLine, tmp_path: Path) -> None:
    with running_bridge(tmp_path, f"[backends.box]\n{telling('fine', tmp_path / 'journal')}") as bridge:
        bridge.wait_ready("box")
        before = bridge.backend("box")
        port = bridge.url.rpartition(":")[2]
        config = tmp_path / "bridgehead.toml"
        mine = CommandLine(bridge.state_dir)

        done = mine("doctor", "--config", str(config), "--json", extra={"PORT": port})

        assert done.returncode == 0, done.stdout
        told = {one["about"]: one["message"] for one in json.loads(done.stdout)["findings"]}
        assert told["port"] == f"{port} is in use by your own bridge."
        assert "1 of 1 backends as they should be" in told["bridge"]
        assert bridge.backend("box") == before
        assert json.loads(mine("calls", "list", "--json").stdout) == []


def test_who_holds_the_port_is_named(run: CommandLine, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        config = write(tmp_path, "")
        config.write_text(f"[server]\nport = {port}\n")

        ((subject, message, mend),) = [one for one in look(config, tmp_path) if one[0] == "port"]

    assert subject == "port"
    assert f"{port} on 127.0.0.1 cannot be had: address already in use" in message
    if sys.platform == "linux":
        assert f"(process {os.getpid()}) is there" in message
    assert "--port 0" in (mend or "")


def test_an_address_that_serve_refuses_is_a_problem(tmp_path: Path) -> None:
    config = write(tmp_path, "")
    config.write_text('[server]\nhost = "0.0.0.0"\n')

    told = [message for subject, message, _ in look(config, tmp_path) if subject == "configuration"]

    assert any("listening on 0.0.0.0 would let other machines in" in message for message in told)


@posix
def test_what_is_open_to_others_is_told_with_the_command_that_closes_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "local-token").write_text("t")
    (tmp_path / "local-token").chmod(0o644)
    (tmp_path / "bridgehead.db").symlink_to(tmp_path / "local-token")

    told = {(one.level.value, one.mend) for one in state_findings(tmp_path)}

    assert told == {
        ("warning", f"chmod 700 {tmp_path}"),
        ("warning", f"chmod 600 {tmp_path / 'local-token'}"),
        ("problem", f"rm {tmp_path / 'bridgehead.db'}"),
    }
    tmp_path.chmod(0o700)
    for name in ("bridgehead.db", "local-token"):
        (tmp_path / name).unlink()
    assert [one.level for one in state_findings(tmp_path)] == [Level.WELL]


@posix
@pytest.mark.parametrize(
    ("mode", "text", "mends"),
    [
        (0o600, 'env = { API_KEY = "hunter2" }', []),
        (0o644, 'env = { API_KEY = "hunter2" }', ["chmod 600"]),
        (0o644, 'env = { API_KEY = "${HOME}" }', []),
        (0o644, 'args = ["-x", "sk-0123456789abcdef"]', ["chmod 600"]),
        (0o666, "", ["chmod go-w"]),
        (0o664, "", ["chmod g-w"]),
    ],
)
def test_a_configuration_that_others_can_read_or_write_is_told(
    tmp_path: Path, mode: int, text: str, mends: list[str]
) -> None:
    config = write(tmp_path, f'[backends.a]\ncommand = "sh"\n{text}\n')
    config.chmod(mode)

    told = [one for one in look(config, tmp_path) if one[0] == "configuration"]

    assert [(mend or "").partition(" /")[0] for _, _, mend in told] == mends
    assert "hunter2" not in str(told)
    assert stat.S_IMODE(config.stat().st_mode) == mode


@posix
def test_the_runtimes_that_backends_need_are_looked_for_and_no_others(tmp_path: Path) -> None:
    for name, first in (
        ("npx", "#!/bin/sh\necho 11.0.0"),
        ("server", "#!/usr/bin/env uv"),
        ("moved", "#!/gone/python"),
    ):
        (tmp_path / name).write_text(f"{first}\n")
        (tmp_path / name).chmod(0o755)
    config = write(
        tmp_path,
        '[backends.a]\ncommand = "npx"\n[backends.b]\ncommand = "server"\n[backends.c]\ncommand = "moved"\n'
        '[backends.d]\ncommand = "/bin/sh"\nargs = ["-c", "exec docker run x"]\n',
    )

    question = Question(config, tmp_path, start=False)
    found = diagnose(question, {"PATH": str(tmp_path)}, prober=lambda _settings, _names: ())

    assert [(each.name, each.path is not None, each.version, each.needed_by) for each in found.programs] == [
        ("docker", False, None, ("d",)),
        ("node", False, None, ("a",)),
        ("npx", True, "11.0.0", ("a",)),
        ("uv", False, None, ("b",)),
    ]
    told = {one.about: one for one in found.findings if one.level is Level.PROBLEM}
    assert told["program node"].mend == "install Node.js, and start the bridge again."
    assert told["program uv"].message == "it is not on the PATH, and b needs it."
    assert "is a script for /gone/python, which does not exist" in told["backend c"].message


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_on_a_terminal_that_is_gone_when_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, shown in ((Terminal(), "trying: 1 of 2 done, 0 s; odd[31m"), (io.StringIO(), "")):
        monkeypatch.setattr(sys, "stderr", stream)
        with ProgressLine("trying") as line:
            line.show(1, 2, ("odd\x1b[31m",))

        assert shown in stream.getvalue()
        assert "\n" not in stream.getvalue()
        assert stream.getvalue().endswith("\r\x1b[K" if shown else "")


def test_a_working_directory_that_is_not_there_is_named_where_one_backend_is_tried(
    run: CommandLine, tmp_path: Path
) -> None:
    config = write(tmp_path, '[backends.box]\ncommand = "sh"\ncwd = "nowhere"\n')

    done = run("backend", "test", "box", "--config", str(config))

    assert done.returncode == 1
    assert done.stderr == (
        "error: box does not work: Backend box cannot be started: its working directory"
        f" {tmp_path / 'nowhere'} does not exist.\nhint: create it, or correct `cwd`.\n"
    )
