"""The benchmark runs, checks every answer, and reports every lane. No time is asserted: that is what reading it is for."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_quick_run_reports_every_lane_with_every_answer_checked(tmp_path: Path) -> None:
    file = tmp_path / "samples.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--tools", "20", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    samples = json.loads(file.read_text())
    lanes = {(sample["lane"], sample["generation"], sample["workload"]) for sample in samples}
    assert len(lanes) == 5 * 2 * 5
    assert all(sample["rate"] > 0 for sample in samples)
    assert "every answer was checked" in done.stdout
    assert done.stdout.count("the SDK on both sides") == 6
