"""A server of the older generation that does at the wrong moment what servers do: asks late, dies oddly, writes nonsense.

`late.py JOURNAL`; what it receives is appended to the journal, a line each.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

JOURNAL = Path(sys.argv[1])
NAMES = ("wait_then_ask", "pair", "unreadable", "signal", "take")


def write(*messages: dict[str, Any] | bytes) -> None:
    """Write all of it at once."""
    lines = [each if isinstance(each, bytes) else json.dumps({"jsonrpc": "2.0", **each}).encode() for each in messages]
    os.write(1, b"".join(line + b"\n" for line in lines))


def result(request_id: Any, text: str) -> dict[str, Any]:
    """A result of one text."""
    return {"id": request_id, "result": {"content": [{"type": "text", "text": text}]}}


def call(request_id: Any, name: str, waiting: list[Any]) -> None:
    """Answer a call, in whichever wrong way it asks for."""
    if name == "wait_then_ask":
        waiting.append(request_id)
    elif name == "pair":
        write({"method": []}, {"method": {"a": 1}}, result(request_id, "beside nonsense"))
    elif name == "unreadable":
        write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"caf\xe9"}]}}' % request_id)
    elif name == "signal":
        os.kill(os.getpid(), 40)
    else:
        write(result(request_id, "taken"))


def answer(message: dict[str, Any], waiting: list[Any]) -> None:
    """Answer one message."""
    request_id, method = message.get("id"), message.get("method")
    if method == "initialize":
        info = {"name": "late", "version": "1"}
        agreed = {"protocolVersion": message["params"]["protocolVersion"], "serverInfo": info}
        write({"id": request_id, "result": {**agreed, "capabilities": {"tools": {}}}})
    elif method == "tools/list":
        write(
            {
                "id": request_id,
                "result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]},
            }
        )
    elif method == "tools/call":
        call(request_id, message["params"]["name"], waiting)
    elif method == "notifications/cancelled" and waiting:
        # Told to stop, it asks all the same, a little later.
        time.sleep(0.3)
        params: dict[str, Any] = {"message": "of another", "requestedSchema": {"type": "object", "properties": {}}}
        write({"id": "late", "method": "elicitation/create", "params": params})
    elif method is not None and request_id is not None:
        write({"id": request_id, "error": {"code": -32601, "message": "Method not found"}})


def main() -> None:
    """Serve until the input ends."""
    waiting: list[Any] = []
    for line in sys.stdin:
        with JOURNAL.open("a") as journal:
            journal.write(line)
        answer(json.loads(line), waiting)


main()
