"""The command line against a running bridge, as a person and as a program use it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.real.servers import BIN
from tests.spine.bridge import Bridge, plain, running_bridge

CONFIG = (
    f"[backends.good]\n{plain()}\n[backends.bad]\ncommand = 'no-such-program'\n"
    "[groups.some]\nmembers = [{ backend = 'good', names = ['echo'] }]\n"
)


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    with running_bridge(tmp_path_factory.mktemp("cli"), CONFIG) as running:
        running.wait_ready("good")
        yield running


def bridgehead(*arguments: str, state_dir: Path) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "bridgehead"), *arguments, "--state-dir", str(state_dir)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("arguments", "said", "names"),
    [
        (["backend", "list"], ["good", "ready", "no-such-program"], {"good", "bad"}),
        (["tools", "list", "--group", "some"], ["good__echo"], {"good__echo", "guidance", "read_result"}),
        (["tools", "show", "good__echo"], ["Return the text unchanged.", "`text`"], {"good__echo"}),
        (["groups", "list"], ["some", "on"], {"some"}),
    ],
)
def test_what_it_shows_is_for_people_and_for_programs(
    bridge: Bridge, arguments: list[str], said: list[str], names: set[str]
) -> None:
    shown = bridgehead(*arguments, state_dir=bridge.state_dir)
    assert shown.returncode == 0, shown.stderr
    assert [each for each in said if each not in shown.stdout] == []
    parsed = bridgehead(*arguments, "--json", state_dir=bridge.state_dir)
    assert parsed.returncode == 0, parsed.stderr
    assert named(json.loads(parsed.stdout)) == names


def named(document: Any) -> set[str]:
    """The names in a list of things, in one thing, or the keys of a table of things."""
    if isinstance(document, list):
        return {thing["name"] for thing in cast("list[Any]", document)}
    return {document["name"]} if "name" in document else set(document)


def test_all_tools_are_listed_without_a_group(bridge: Bridge) -> None:
    shown = bridgehead("tools", "list", state_dir=bridge.state_dir)
    assert shown.returncode == 0, shown.stderr
    assert "good__rich" in shown.stdout
    parsed = bridgehead("tools", "list", "--json", state_dir=bridge.state_dir)
    assert [tool["name"] for tool in json.loads(parsed.stdout)] == bridge.tools()


def test_a_tool_is_called_with_words_or_with_json(bridge: Bridge) -> None:
    for arguments in (["text=hello"], ['{"text": "hello"}']):
        called = bridgehead("tools", "call", "good__echo", *arguments, state_dir=bridge.state_dir)
        assert called.returncode == 0, called.stderr
        assert called.stdout == "hello\n"
    parsed = bridgehead("tools", "call", "good__echo", "text=hello", "--json", state_dir=bridge.state_dir)
    assert json.loads(parsed.stdout)["content"] == [{"type": "text", "text": "hello"}]


def test_the_exit_code_says_what_went_wrong(bridge: Bridge, tmp_path: Path) -> None:
    failed = bridgehead("tools", "call", "good__fail", state_dir=bridge.state_dir)
    assert (failed.returncode, "it did not work" in failed.stderr) == (1, True)
    unknown = bridgehead("tools", "call", "good__ecko", "text=x", state_dir=bridge.state_dir)
    assert unknown.returncode == 1
    assert "good__echo" in unknown.stderr
    assert bridgehead("tools", "call", state_dir=bridge.state_dir).returncode == 2
    assert bridgehead("tools", "call", "good__echo", "no-value", state_dir=bridge.state_dir).returncode == 2
    (tmp_path / "local-token").write_text("wrong")
    (tmp_path / "address").write_text(bridge.url)
    for command in (["tools", "list"], ["groups", "list"], ["tools", "call", "good__echo", "text=x"]):
        refused = bridgehead(*command, state_dir=tmp_path)
        assert (refused.returncode, refused.stdout) == (3, ""), command
        assert "local-token" in refused.stderr
    (tmp_path / "address").write_text("http://127.0.0.1:9")
    nobody = bridgehead("tools", "list", state_dir=tmp_path)
    assert nobody.returncode == 1
    assert "bridgehead serve" in nobody.stderr


def test_one_backend_is_tried_without_a_running_bridge(tmp_path: Path) -> None:
    config = tmp_path / "bridgehead.toml"
    # Whatever is switched on and shown: a backend is tried for itself.
    config.write_text(f'[server]\nungrouped = "hide"\n{CONFIG}')
    good = bridgehead("backend", "test", "good", "--config", str(config), "--json", state_dir=tmp_path)
    assert good.returncode == 0, good.stderr
    assert "echo" in json.dumps(json.loads(good.stdout))
    shown = bridgehead("backend", "test", "good", "--config", str(config), state_dir=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "echo" in shown.stdout
    bad = bridgehead("backend", "test", "bad", "--config", str(config), state_dir=tmp_path)
    assert bad.returncode == 1
    assert "no-such-program" in bad.stdout + bad.stderr


def test_the_configuration_is_checked_and_shown_with_where_it_comes_from(tmp_path: Path) -> None:
    config = tmp_path / "bridgehead.toml"
    config.write_text(CONFIG)
    checked = on_file("check", config)
    assert checked.returncode == 1, checked.stderr
    assert "bad: backends.bad.command: there is no program `no-such-program` on the PATH." in checked.stdout
    assert "MCP_GROUP_SOME" in checked.stdout
    told = json.loads(on_file("check", config, "--json").stdout)
    assert (told["ok"], [each["backend"] for each in told["would_not_start"]]) == (False, ["bad"])
    shown = on_file("show", config)
    assert shown.returncode == 0, shown.stderr
    assert "backends.bad.command" in shown.stdout
    parsed = json.loads(on_file("show", config, "--json").stdout)
    assert parsed["settings"]["backends"]["bad"]["command"] == "no-such-program"
    assert parsed["origins"]["backends.bad.command"] == config.name


def test_a_configuration_that_cannot_be_used_names_its_place(tmp_path: Path) -> None:
    config = tmp_path / "bridgehead.toml"
    config.write_text("[backends.good]\ncommand = \n")
    for action in ("check", "show"):
        done = on_file(action, config)
        assert (done.returncode, done.stdout) == (1, "")
        assert "bridgehead.toml, line 2" in done.stderr
        assert on_file(action, config, "--no-such-option").returncode == 2


def on_file(action: str, config: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "bridgehead"), "config", action, "--config", str(config), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_bind_beyond_this_machine_is_refused(tmp_path: Path) -> None:
    refused = bridgehead("serve", "--host", "0.0.0.0", "--port", "0", state_dir=tmp_path)  # noqa: S104 – to be refused
    assert refused.returncode == 3
    assert "authentication" in refused.stderr
