"""Nothing reaches a backend but through the gate: what servers received is what the audit log holds."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from tests.spine.bridge import SERVERS, Bridge, plain, running_bridge

RELAYED = {"tools/call", "prompts/get", "resources/read", "completion/complete", "resources/subscribe"}


def use_everything(bridge: Bridge) -> None:
    """Ask for everything that can be asked for, in ways that go through and in ways that are refused."""
    bridge.call("plain__echo", {"text": "one"})
    bridge.call("plain__echo", {"text": 5})
    bridge.call("plain__nonesuch")
    bridge.call("plain__echo", {"text": "two"}, group="/only")
    bridge.call("asking__logs", {}, group="/only")
    bridge.call("asking__progress")
    bridge.call("guidance", {"topic": "overview"})
    bridge.modern("prompts/get", {"name": "asking__greet", "arguments": {"who": "x"}})
    bridge.modern("resources/read", {"uri": "note://1"})
    bridge.modern("resources/read", {"uri": "other://nothing"})
    reference = {"type": "ref/prompt", "name": "asking__greet"}
    bridge.modern("completion/complete", {"ref": reference, "argument": {"name": "who", "value": "a"}})


def test_what_servers_received_is_what_the_audit_log_holds(tmp_path: Path) -> None:
    journal, tee = tmp_path / "plain.journal", tmp_path / "asking.journal"
    wrapper = tmp_path / "asking.sh"
    wrapper.write_text(f'#!/bin/sh\ntee -a "{tee}" | "{sys.executable}" "{SERVERS / "asking.py"}" modern\n')
    wrapper.chmod(0o755)
    config = (
        f"[backends.plain]\n{plain('plain', journal)}\n[backends.asking]\ncommand = {json.dumps(str(wrapper))}\n"
        "[groups.only]\nmembers = [{ backend = 'plain' }]\n"
    )
    with running_bridge(tmp_path, config) as bridge:
        bridge.wait_ready("plain", "asking")
        use_everything(bridge)
    received = [
        json.loads(line)["method"]
        for path in (journal, tee)
        for line in path.read_text().splitlines()
        if json.loads(line).get("method") in RELAYED
    ]
    with closing(sqlite3.connect(tmp_path / "state" / "bridgehead.db")) as database:
        rows = database.execute("SELECT method, backend, verdict FROM audit").fetchall()
    reached = [
        method
        for method, backend, verdict in rows
        if backend in ("plain", "asking") and verdict in ("ok", "tool_error")
    ]
    assert sorted(received) == sorted(reached)
    assert len(rows) == 11, "every call is on record, the refused ones too"
    assert sorted(verdict for _, _, verdict in rows if verdict == "refused") == ["refused"] * 3


def test_secrets_in_arguments_are_not_in_the_audit_log(tmp_path: Path) -> None:
    with running_bridge(tmp_path, f"[backends.b]\n{plain()}") as bridge:
        bridge.wait_ready("b")
        bridge.call("b__fail", {"password": "hunter2-hunter2", "note": "sk-abcdefghijklmnopqrstuvwxyz123456"})
    stored = b"".join(path.read_bytes() for path in (tmp_path / "state").glob("bridgehead.db*"))
    assert b"b__fail" in stored
    assert b"hunter2" not in stored
    assert b"sk-abcdefghijklmnop" not in stored
