"""Reading the configuration again, within this process and with real children."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridgehead.app import Bridge, Reloading, Vault, running
from bridgehead.catalog import State
from bridgehead.cli.settings import with_logs
from bridgehead.config import Concealment, Settings, load
from bridgehead.core import Call, CallId, Method, Silence, new_id
from bridgehead.identity import LOCAL_OWNER
from bridgehead.store.secrets import SealedFile
from bridgehead.surfaces.mcp.endpoints import Endpoints
from tests.spine.bridge import SERVERS

pytestmark = pytest.mark.anyio

SAYS_KEY = f"""
import os
source = open({str(SERVERS / "plain.py")!r}).read()
exec(source.replace('text(arguments["text"])', 'text(os.environ["KEY"] + " in " + str(os.getpid()))'))
"""


async def until_ready(bridge: Bridge, *names: str) -> None:
    with anyio.fail_after(20):
        while any(bridge.catalog.statuses[name].state is not State.READY for name in names):  # noqa: ASYNC110
            await anyio.sleep(0.02)


async def said(bridge: Bridge, backend: str) -> str:
    call = Call(
        id=CallId(new_id("call")),
        caller=LOCAL_OWNER,
        method=Method.TOOL,
        target=f"{backend}__echo",
        arguments={"text": ""},
        channel=Silence(),
        surface="test",
    )
    return (await bridge.gate.run(call)).result["content"][0]["text"]


def configured(file: Path, script: Path, keys: Mapping[str, str]) -> Path:
    command = f"command = {json.dumps(sys.executable)}\nargs = {json.dumps([str(script)])}\n"
    file.write_text("".join(f"[backends.{name}]\n{command}env = {{ KEY = '{key}' }}\n" for name, key in keys.items()))
    return file


async def test_a_value_that_changed_elsewhere_restarts_those_that_name_it_and_no_others(tmp_path: Path) -> None:
    """As a secret does, of which the file holds the name alone."""
    script = tmp_path / "says_key.py"
    script.write_text(SAYS_KEY)
    file = configured(tmp_path / "bridgehead.toml", script, {"a": "${FIRST}", "b": "${SECOND:-none}"})
    environ = {"PATH": os.environ["PATH"], "FIRST": "old"}
    async with running(load(file, environ), tmp_path / "state", environ) as bridge:
        reloading = Reloading(bridge, environ, lambda _: None)
        await until_ready(bridge, "a", "b")
        before = await said(bridge, "a"), await said(bridge, "b")
        listed = [*bridge.catalog.snapshot.everything.tools]

        environ["FIRST"] = "new"
        await reloading.reload()

        # The server is the same one, so its tools stay, and a call waits for it to be back.
        assert [*bridge.catalog.snapshot.everything.tools] == listed
        assert (await said(bridge, "a")).startswith("new in ")
        assert before[0].startswith("old in ")
        assert await said(bridge, "b") == before[1]

        # Written in another way, but the same once it is filled in.
        configured(file, script, {"a": "new", "b": "none"})
        now = await said(bridge, "a")
        await reloading.reload()
        assert (await said(bridge, "a"), await said(bridge, "b")) == (now, before[1])
        assert reloading.status.error is None


async def test_a_secret_that_is_set_anew_reaches_its_backend_and_is_told_nowhere(tmp_path: Path) -> None:
    script, state_dir = tmp_path / "says_key.py", tmp_path / "state"
    script.write_text(SAYS_KEY)
    file = configured(tmp_path / "bridgehead.toml", script, {"a": "${secret:KEY}", "b": "plain"})
    file.write_text(f'[server]\nsecret_store = "file"\n{file.read_text()}')
    environ = {"PATH": os.environ["PATH"]}
    secrets, vault = SealedFile(state_dir), Vault(state_dir, Concealment())
    secrets.write("KEY", "hunter2-old")
    async with running(load(file, environ), state_dir, environ, vault=vault) as bridge:
        reloading = Reloading(bridge, environ, lambda _: None)
        await until_ready(bridge, "a", "b")
        stays = await said(bridge, "b")
        assert (await said(bridge, "a")).startswith("hunter2-old in ")

        secrets.write("KEY", "hunter2-new")
        await reloading.reload()
        assert (await said(bridge, "a")).startswith("hunter2-new in ")
        assert await said(bridge, "b") == stays
        assert vault.conceal("hunter2-old, hunter2-new") == "***, ***"

        secrets.remove("KEY")
        await reloading.reload()
        status = bridge.catalog.statuses["a"]
        assert (status.state, "run `bridgehead secret set KEY`" in (status.cause or "")) == (State.BROKEN, True)


async def test_a_group_that_is_switched_on_has_a_lane_and_one_that_is_switched_off_has_none(tmp_path: Path) -> None:
    file = tmp_path / "bridgehead.toml"
    file.write_text("[groups.g]\n")
    async with running(load(file, {}), tmp_path / "state", {}) as bridge:
        reloading = Reloading(bridge, {}, lambda _: None)
        fast, plain = (Endpoints(bridge.inside, fast_lane=fast_lane) for fast_lane in (True, False))
        async with fast.running(), plain.running():
            file.write_text("[groups.h]\n")
            await reloading.reload()

            assert fast.get("g") is None
            for endpoints, has_lane in ((fast, True), (plain, False)):
                for group in (None, "h"):
                    endpoint = endpoints.get(group)
                    assert endpoint is not None
                    assert (endpoint.lane is not None) is has_lane


async def test_a_failure_that_nobody_foresaw_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where secrets are kept is another's code."""
    file = tmp_path / "bridgehead.toml"
    file.write_text("[groups.g]\n")
    async with running(load(file, {}), tmp_path / "state", {}) as bridge:
        reloading = Reloading(bridge, {}, lambda _: None)
        file.write_text("[groups.h]\n")

        def break_down(_: Settings) -> Any:
            raise RuntimeError("the keyring is on fire")

        with monkeypatch.context() as patched:
            patched.setattr(bridge, "plan", break_down)
            await reloading.reload()
        assert "nobody foresaw" in (reloading.status.error or "")
        assert "fire" not in (reloading.status.error or "")
        assert [*bridge.catalog.snapshot.by_group] == ["g"]

        await reloading.reload()
        assert reloading.status.error is None
        assert [*bridge.catalog.snapshot.by_group] == ["h"]


async def test_keys_that_the_command_line_decides_about_stay_whatever_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "bridgehead.toml"
    file.write_text("[server]\nport = 4000\n")
    settings = load(file, {}).model_copy(update={"pinned": frozenset({"server.port"})})
    async with running(settings, tmp_path / "state", {}) as bridge:
        reloading = Reloading(bridge, {}, lambda _: None)
        file.write_text("[server]\nport = 5000\nhost = 'localhost'\nshutdown_grace_s = 3\n")
        await reloading.reload()

        assert reloading.status.needs_restart == ("server.host",)
        assert bridge.settings.server.port == 4000
        assert bridge.settings.server.shutdown_grace_s == 3


async def test_what_the_command_line_says_of_logs_stays_whatever_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "bridgehead.toml"
    file.write_text("[server]\n")
    applied: list[str] = []
    async with running(with_logs(load(file, {}), "debug", None), tmp_path / "state", {}) as bridge:
        reloading = Reloading(bridge, {}, lambda changed: applied.append(changed.server.log_level))
        file.write_text("[server]\nlog_level = 'error'\nlog_format = 'json'\n")
        await reloading.reload()

        assert applied == ["debug"]
        assert reloading.status.needs_restart == ("server.log_format",)
