"""The configurations in examples/ are what they say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.spine.bridge import BIN, running_bridge, wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
NODE_BIN = Path(__file__).parents[2] / ".node"


def test_the_demo_brings_up_all_six_servers(tmp_path: Path) -> None:
    environ = {
        "BRIDGEHEAD_DEMO_BIN": f"{BIN}/",
        "BRIDGEHEAD_DEMO_NODE_BIN": f"{NODE_BIN / 'node_modules' / '.bin'}/",
        "PATH": f"{NODE_BIN / 'bin'}:{os.environ['PATH']}",
    }
    with running_bridge(tmp_path, (EXAMPLES / "demo.toml").read_text(), environ=environ) as bridge:
        wait_until(lambda: bridge.health()["backends"]["ready"] == 6, within_s=60)
        assert "time__get_current_time" in bridge.tools()
        assert "guidance" in bridge.tools("/work")


def test_without_node_the_rest_of_the_demo_still_comes_up(tmp_path: Path) -> None:
    environ = {"BRIDGEHEAD_DEMO_BIN": f"{BIN}/"}
    with running_bridge(tmp_path, (EXAMPLES / "demo.toml").read_text(), environ=environ) as bridge:
        bridge.wait_ready("time", "git", "fetch")
        assert bridge.backend("memory")["state"] == "broken"
        assert "BRIDGEHEAD_DEMO_NODE_BIN" in bridge.backend("memory")["cause"]


def test_every_example_passes_the_check_of_the_command_line() -> None:
    for example in sorted(EXAMPLES.iterdir()):
        if example.suffix not in (".toml", ".json"):
            continue
        command = [str(BIN / "bridgehead"), "config", "check", "--config", str(example)]
        checked = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        # The only thing an example may lack is what its user has to give: keys, and programs.
        assert "unknown" not in checked.stdout + checked.stderr, checked.stdout
        assert checked.returncode in (0, 1), checked.stderr
