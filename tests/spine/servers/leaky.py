"""A server that tells the secret it was given wherever it can, over stdio, or with a PORT as its argument over HTTP.

Over stdio the secret is its last argument and the variable KEY, over HTTP what follows `Bearer` and the query's `key`. Only in
results it keeps the secret to itself, and tells a digest instead. With `exit` among its arguments it tells it and exits.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

NAMES = ("digest", "refuse", "take", "die")


def answer(message: dict[str, Any], secrets: list[str]) -> dict[str, Any]:
    """The result, or the error, of one request."""
    key = secrets[0]
    match message["method"], message.get("params", {}).get("name"):
        case "initialize", _:
            version = message["params"]["protocolVersion"]
            info = {"name": f"leaky {key}", "version": "1"}
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list", _:
            return {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]}}
        case "tools/call", "digest" | "take":
            digests = " ".join(hashlib.sha256(secret.encode()).hexdigest() for secret in secrets)
            return {"result": {"content": [{"type": "text", "text": digests}]}}
        case "tools/call", "die":
            sys.stderr.write(f"dying with {key}\n")
            sys.stderr.flush()
            os._exit(3)
        case "tools/call", _:
            data = {"url": f"https://hub.example/?key={key}", key: [key]}
            return {"error": {"code": -32000, "message": f"401 for {key}", "data": data}}
        case _:
            return {"error": {"code": -32601, "message": f"no method for {key}"}}


def serve_stdio() -> None:
    """Serve until the input ends."""
    key = os.environ["KEY"]
    for stream in (sys.stderr, sys.stdout):
        stream.write(f"starting with {key} in {dict(os.environ)}\n{'.' * 186}{key}\n")
        stream.flush()
    if "exit" in sys.argv:
        sys.exit(3)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            sys.stdout.write(
                json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message, [key, sys.argv[-1]])}) + "\n"
            )
            sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    """One request of the older generation."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer, once a request shows both secrets."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        query = parse_qs(urlsplit(self.path).query).get("key", [""])[0]
        if "id" not in body:
            self.reply(202, b"")
        elif body["method"] == "server/discover":
            self.reply(400, f"what is that, {key}?".encode())
        else:
            self.reply(200, json.dumps({"jsonrpc": "2.0", "id": body["id"], **answer(body, [key, query])}).encode())

    def do_GET(self) -> None:
        """Refuse to stream."""
        self.reply(405, b"")

    def do_DELETE(self) -> None:
        """Refuse to end a session."""
        self.reply(405, b"")

    def reply(self, status: int, content: bytes) -> None:
        """Send it."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the parent's name for it
        """Log nothing."""


def main() -> None:
    """Serve on what the arguments say."""
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
    serve_stdio()


if __name__ == "__main__":
    main()
