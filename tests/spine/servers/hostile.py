"""A server that means no good, on standard input and output: `hostile.py MODE`."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

MODE = sys.argv[1] if len(sys.argv) > 1 else "server"
SECRET = "sk-written-by-the-server"


def nested(depth: int) -> dict[str, Any]:
    """An object with objects in it, that deep."""
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"properties": {"x": value}}
    return value


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.setrecursionlimit(10_000)
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tools() -> Any:
    """What it lists."""
    plain = {"inputSchema": {"type": "object"}}
    match MODE:
        case "no-list":
            return 5
        case "deep-tool":
            return [{"name": "deep", "inputSchema": {"type": "object", **nested(150)}}, {"name": "ok", **plain}]
        case "huge-number":
            return [{"name": "huge", "inputSchema": {"type": "object", "maximum": 10**40}}, {"name": "ok", **plain}]
        case _:
            return [{"name": name, **plain} for name in ("ok", "slow", "server-error", "deep", "nan", "odd-error")]


def call(number: Any, name: str) -> None:
    """Answer a call in its own way."""
    text = {"content": [{"type": "text", "text": "fine"}]}
    match name:
        case "server-error":
            send({"id": number, "error": {"code": -32000, "message": "quota exceeded"}})
        case "deep":
            send({"id": number, "result": {**text, "structuredContent": nested(130)}})
        case "nan":
            send({"id": number, "result": {**text, "structuredContent": {"x": float("nan")}}})
        case "odd-error":
            send({"id": number, "error": "a string"})
        case _:
            send({"id": number, "result": text})


def greet(number: Any, message: dict[str, Any]) -> None:
    """Answer `initialize`, or not."""
    if MODE == "mute":
        time.sleep(600)
    version = 5 if MODE == "odd-handshake" else message["params"]["protocolVersion"]
    info = {"name": MODE, "version": "1"}
    send({"id": number, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}})


def main() -> None:
    """Serve."""
    if MODE == "last-words":
        sys.stderr.write(f"using key {SECRET}\n")
        sys.exit(5)
    waiting: list[Any] = []
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        if number is None:
            continue
        if method == "initialize":
            greet(number, message)
        elif method == "tools/list":
            send({"id": number, "result": {"tools": tools()}})
        elif method == "tools/call" and message["params"]["name"] == "slow":
            waiting.append(number)
        elif method == "tools/call":
            call(number, message["params"]["name"])
            if message["params"].get("arguments", {}).get("last"):
                for held in waiting:
                    call(held, "ok")
        else:
            send({"id": number, "error": {"code": -32601, "message": "no"}})


if __name__ == "__main__":
    main()
