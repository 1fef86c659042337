"""The command line against a running bridge, as a person and as a program use it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

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
    ("arguments", "said"),
    [
        (["backend", "list"], "no-such-program"),
        (["tools", "list"], "good__echo"),
        (["tools", "list", "--group", "some"], "good__echo"),
        (["tools", "show", "good__echo"], "text"),
        (["groups", "list"], "some"),
    ],
)
def test_what_it_shows_is_for_people_and_for_programs(bridge: Bridge, arguments: list[str], said: str) -> None:
    shown = bridgehead(*arguments, state_dir=bridge.state_dir)
    assert shown.returncode == 0, shown.stderr
    assert said in shown.stdout
    parsed = bridgehead(*arguments, "--json", state_dir=bridge.state_dir)
    assert json.loads(parsed.stdout)


def test_a_tool_is_called_with_words_or_with_json(bridge: Bridge) -> None:
    for arguments in (["text=hello"], ['{"text": "hello"}']):
        called = bridgehead("tools", "call", "good__echo", *arguments, state_dir=bridge.state_dir)
        assert called.returncode == 0, called.stderr
        assert "hello" in called.stdout


def test_the_exit_code_says_what_went_wrong(bridge: Bridge, tmp_path: Path) -> None:
    failed = bridgehead("tools", "call", "good__fail", state_dir=bridge.state_dir)
    assert (failed.returncode, "it did not work" in failed.stderr) == (1, True)
    unknown = bridgehead("tools", "call", "good__ecko", "text=x", state_dir=bridge.state_dir)
    assert unknown.returncode == 1
    assert "good__echo" in unknown.stderr
    assert bridgehead("tools", "call", state_dir=bridge.state_dir).returncode == 2
    (tmp_path / "local-token").write_text("wrong")
    (tmp_path / "address").write_text(bridge.url)
    assert bridgehead("tools", "list", state_dir=tmp_path).returncode == 3
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
    bad = bridgehead("backend", "test", "bad", "--config", str(config), state_dir=tmp_path)
    assert bad.returncode == 1
    assert "no-such-program" in bad.stdout + bad.stderr


def test_a_bind_beyond_this_machine_is_refused(tmp_path: Path) -> None:
    refused = bridgehead("serve", "--host", "0.0.0.0", "--port", "0", state_dir=tmp_path)  # noqa: S104 – to be refused
    assert refused.returncode == 3
    assert "authentication" in refused.stderr
