"""Fixtures of the command line's tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.inside import Inside
from tests.cli.tiny import TOKEN, CommandLine, TinyBridge


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[TinyBridge]:
    """A running tiny bridge whose address and token are in `tmp_path`, as `serve` would leave them."""
    tiny = TinyBridge()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tiny.requests.append((self.path, dict(self.headers), {}))
            self.reply(200, "application/json", json.dumps(tiny.pages[self.path]).encode())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            tiny.requests.append((self.path, dict(self.headers), body))
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                error = {"code": "unauthenticated", "message": "A token is needed."}
                self.reply(401, "application/json", json.dumps({"error": error}).encode())
                return
            status, message = tiny.answer(body)
            content = json.dumps(message).encode()
            if not tiny.stream:
                self.reply(status, "application/json; charset=utf-8", content)
                return
            progress = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n'
            self.reply(status, "text/event-stream", b": hello\n\n" + progress + b"data: " + content + b"\r\n\r\n")

        def reply(self, status: int, kind: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the parent's name for it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    tiny.url = f"http://127.0.0.1:{server.server_port}"
    (tmp_path / "address").write_text(tiny.url + "\n")
    (tmp_path / "local-token").write_text(TOKEN)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield tiny
    tiny.let_go.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def run(tmp_path: Path) -> CommandLine:
    """The command line, with `tmp_path` as its state directory."""
    return CommandLine(tmp_path)


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    """The command line in this process, with `tmp_path` as its state directory and an empty one to work in."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for name in ("BRIDGEHEAD_CONFIG", "BRIDGEHEAD_URL", "BRIDGEHEAD_TOKEN", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    # Whatever keyring this machine has, it is not touched.
    own = {**CommandLine(tmp_path).environ(), "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    return Inside(monkeypatch, capsys, own)
