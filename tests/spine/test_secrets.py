"""Secrets from the store to real servers, and nowhere else: the values are looked for in all that it writes and says."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from bridgehead.config import Secrets
from bridgehead.store.secrets import SealedFile
from tests.spine.bridge import BIN, SERVERS, Bridge, plain, running_bridge, wait_until

ROOT = Path(__file__).parents[2]
NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
LEAKY = SERVERS / "leaky.py"
ENV_VALUE = 'kä"y-in-the-environment/+='
ARG_VALUE = "key-among-the-arguments"
HEADER_VALUE = "key-in-a-header"
URL_VALUE = "key-in-the-url"
PATH_VALUE = "key-in-a-path"
VALUES = (ENV_VALUE, ARG_VALUE, HEADER_VALUE, URL_VALUE, PATH_VALUE)
NAMES = ("ENV_KEY", "arg.key", "HEADER-KEY", "URL_KEY", "PATH_KEY")


def config(port: int) -> str:
    python, leaky = json.dumps(sys.executable), json.dumps(str(LEAKY))
    return f"""
[server]
log_level = "debug"
[backends.child]
command = {python}
args = [{leaky}, "${{secret:arg.key}}"]
env = {{ KEY = "${{secret:ENV_KEY}}" }}
[backends.dying]
command = {python}
args = [{leaky}, "exit"]
env = {{ KEY = "${{secret:ENV_KEY}}" }}
[backends.remote]
url = "http://127.0.0.1:{port}/mcp?key=${{secret:URL_KEY}}"
headers = {{ Authorization = "Bearer ${{secret:HEADER-KEY}}" }}
[backends.nowhere]
command = "/no/such/${{secret:PATH_KEY}}"
cwd = "/"
[backends.refused]
url = "http://127.0.0.1:1/${{secret:URL_KEY}}"
"""


def store(state_dir: Path) -> Secrets:
    secrets = SealedFile(state_dir)
    for name, value in zip(NAMES, VALUES, strict=True):
        secrets.write(name, value)
    return secrets


@contextmanager
def leaky_http() -> Generator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(LEAKY), str(port)])
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def digests(*values: str) -> str:
    return " ".join(hashlib.sha256(value.encode()).hexdigest() for value in values)


def written_forms(value: str) -> set[bytes]:
    """The value as it might be written, and what is left of it where a line is cut."""
    return _forms(value) | _forms(value[:10])


def _forms(value: str) -> set[bytes]:
    texts = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    plain_forms = {text.encode() for text in texts}
    return plain_forms | {base64.b64encode(value.encode()), hashlib.sha256(value.encode()).hexdigest().encode()}


def found_in(content: bytes) -> list[str]:
    return [value for value in VALUES for form in written_forms(value) if form in content]


def command(bridge: Bridge, *arguments: str) -> str:
    done = subprocess.run(
        [str(BIN / "bridgehead"), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **NO_KEYRING, "BRIDGEHEAD_STATE_DIR": str(bridge.state_dir)},
    )
    assert "Unexpected" not in done.stderr
    return done.stdout + done.stderr


def test_every_secret_reaches_its_server_and_nothing_that_the_bridge_writes_or_says(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    store(state_dir)
    with leaky_http() as port, running_bridge(tmp_path, config(port), environ=NO_KEYRING) as bridge:
        bridge.wait_ready("child", "remote")
        assert bridge.call("child__digest")["result"]["content"][0]["text"] == digests(ENV_VALUE, ARG_VALUE)
        assert bridge.call("remote__digest")["result"]["content"][0]["text"] == digests(HEADER_VALUE, URL_VALUE)

        said: list[object] = [bridge.call(f"{backend}__refuse") for backend in ("child", "remote")]
        assert all("401 for ***" in json.dumps(answer) for answer in said)
        for value in VALUES:
            bridge.call("child__take", {"note": f"use {value} there", value: [value]})
        said += [bridge.call(f"child__{value}") for value in VALUES if value.isascii()]
        said.append(bridge.call("child__die"))
        assert "dying with ***" in json.dumps(said[-1])
        for name in ("nowhere", "refused", "dying"):
            wait_until(lambda name=name: bridge.backend(name)["state"] == "down")
        bridge.wait_ready("child")
        said += [bridge.health(), bridge.get("/health").json()]
        assert "starting with ***" in json.dumps(said[-1])

        file = str(tmp_path / "bridgehead.toml")
        outputs = [command(bridge, *words, "--json") for words in (("backend", "list"), ("secret", "list"))]
        outputs += [command(bridge, *words, "--config", file) for words in (("config", "show"), ("config", "check"))]
        outputs += [command(bridge, "backend", "test", name, "--config", file) for name in ("child", "nowhere")]
        outputs.append(command(bridge, "backend", "test", "dying", "--json", "--config", file))
        assert "starting with ***" in outputs[-1]

    everything = {
        "answers": json.dumps(said, ensure_ascii=False).encode(),
        "escaped answers": json.dumps(said).encode(),
        **{f"output {number}": text.encode() for number, text in enumerate(outputs)},
        "log": bridge.log.read_bytes(),
        **{str(path): path.read_bytes() for path in state_dir.rglob("*") if path.is_file()},
    }
    assert {where: found for where, content in everything.items() if (found := found_in(content))} == {}
    assert "starting with ***" in bridge.log.read_text()
    # That the search finds what is there: the audit log was looked at, and holds these calls.
    with sqlite3.connect(state_dir / "bridgehead.db") as database:
        arguments = [row[0] for row in database.execute("SELECT arguments FROM audit WHERE target = 'child__take'")]
    assert len(arguments) == len(VALUES)
    assert all("use *** there" in text for text in arguments)


def test_what_is_kept_of_a_backend_says_nothing_of_its_secrets(tmp_path: Path) -> None:
    """A digest of a launch with a secret in it would let anybody who has the database try values."""

    def fingerprint() -> str:
        with running_bridge(tmp_path, config(1), environ=NO_KEYRING) as bridge:
            bridge.wait_ready("child")
        with sqlite3.connect(tmp_path / "state" / "bridgehead.db") as database:
            return database.execute("SELECT fingerprint FROM listings WHERE backend = 'child'").fetchone()[0]

    secrets = store(tmp_path / "state")
    before = fingerprint()
    secrets.write("arg.key", "another-value")
    secrets.write("ENV_KEY", "another-value")

    assert fingerprint() == before


def test_a_missing_secret_disables_its_backend_alone_until_it_is_set(tmp_path: Path) -> None:
    text = f'[backends.good]\n{plain()}[backends.lacks]\n{plain()}env = {{ KEY = "${{secret:LATER}}" }}\n'

    with running_bridge(tmp_path, text, environ=NO_KEYRING) as bridge:
        bridge.wait_ready("good")
        status = bridge.backend("lacks")
        assert status["state"] == "broken"
        assert status["cause"] == (
            "The secret LATER (in backends.lacks.env.KEY) is not set. hint: run `bridgehead secret set LATER`."
        )
        assert bridge.call("good__echo", {"text": "x"})["result"]["content"][0]["text"] == "x"
        done = subprocess.run(
            [str(BIN / "bridgehead"), "secret", "set", "LATER"],
            input=b"hunter2",
            check=True,
            timeout=60,
            env={**os.environ, **NO_KEYRING, "BRIDGEHEAD_STATE_DIR": str(bridge.state_dir)},
            stdout=subprocess.PIPE,
        )
        assert b"sealed file" in done.stdout

    with running_bridge(tmp_path, text, environ=NO_KEYRING) as bridge:
        bridge.wait_ready("good", "lacks")


@pytest.mark.parametrize(
    ("ring", "cause"),
    [("HangingKeyring", "did not answer within 3 s"), ("LockedKeyring", "cannot be used (KeyringLocked)")],
)
def test_a_sick_keyring_stops_only_who_needs_it(tmp_path: Path, ring: str, cause: str) -> None:
    text = f'[server]\nsecret_store = "keyring"\n[backends.good]\n{plain()}[backends.needs]\n{plain()}'
    text += 'env = { KEY = "${secret:A}", OTHER = "${secret:B}" }\n'
    environ: Mapping[str, str] = {"PYTHON_KEYRING_BACKEND": f"tests.store.keyrings.{ring}", "PYTHONPATH": str(ROOT)}

    with running_bridge(tmp_path, text, environ=environ) as bridge:
        bridge.wait_ready("good")
        status = bridge.backend("needs")
        assert status["state"] == "broken"
        assert status["cause"].startswith("backends.needs.env.KEY needs the secret A. Secrets are kept in the keyring")
        assert cause in status["cause"]
        assert "hint:" in status["cause"]


def test_the_keyring_is_shared_by_the_command_line_and_the_bridge(tmp_path: Path) -> None:
    environ = {
        "PYTHON_KEYRING_BACKEND": "tests.store.keyrings.SharedKeyring",
        "PYTHONPATH": str(ROOT),
        "TEST_KEYRING": str(tmp_path / "ring.json"),
    }
    done = subprocess.run(
        [str(BIN / "bridgehead"), "secret", "set", "ENV_KEY", "--state-dir", str(tmp_path / "state")],
        input=ENV_VALUE.encode(),
        capture_output=True,
        check=True,
        timeout=60,
        env={**os.environ, **environ},
    )
    assert b"the keyring of this system" in done.stdout

    command = f'[backends.child]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(LEAKY))}, "x"]\n'
    with running_bridge(tmp_path, command + 'env = { KEY = "${secret:ENV_KEY}" }', environ=environ) as bridge:
        bridge.wait_ready("child")
        assert bridge.call("child__digest")["result"]["content"][0]["text"] == digests(ENV_VALUE, "x")
    files = {path: path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()}
    assert [path for path, content in files.items() if found_in(content)] == []


def test_a_backend_that_needs_no_secret_never_touches_a_keyring(tmp_path: Path) -> None:
    environ = {"PYTHON_KEYRING_BACKEND": "tests.store.no_such_module.Keyring", "PYTHONPATH": str(ROOT)}

    with running_bridge(tmp_path, f"[backends.good]\n{plain()}", environ=environ) as bridge:
        bridge.wait_ready("good")
    assert "keyring" not in bridge.log.read_text()
