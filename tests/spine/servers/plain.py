"""A hand-written MCP server on standard input and output, for what no SDK would let a server do.

Behaviour is chosen by the first argument; what it receives is appended, a line each, to the file named by the second.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1] if len(sys.argv) > 1 else "plain"
JOURNAL = Path(sys.argv[2]) if len(sys.argv) > 2 else None
TOOLS: list[dict[str, Any]] = [
    {
        "name": "echo",
        "description": "Return the text unchanged.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True},
    },
    {"name": "hang", "description": "Never answer.", "inputSchema": {"type": "object"}},
    {"name": "fail", "description": "Fail as tools fail.", "inputSchema": {"type": "object"}},
    {"name": "die", "description": "Exit with code 7.", "inputSchema": {"type": "object"}},
    {"name": "rich", "description": "Return one of everything.", "inputSchema": {"type": "object"}},
    {"name": "big", "description": "Return many bytes.", "inputSchema": {"type": "object"}},
    {"name": "slow", "description": "Answer after a while.", "inputSchema": {"type": "object"}},
    {"name": "nonsense", "description": "Answer with what is no result.", "inputSchema": {"type": "object"}},
    {"name": "grow", "description": "Add a tool and announce it.", "inputSchema": {"type": "object"}},
]
RICH: dict[str, Any] = {
    "content": [
        {"type": "text", "text": "héllo ✓", "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///x", "name": "x", "title": "X"},
        {"type": "resource", "resource": {"uri": "file:///y", "mimeType": "text/plain", "text": "y"}},
    ],
    "structuredContent": {"rows": [1, 2.5, None, {"deep": [True]}]},
    "isError": False,
    "_meta": {"vendor.example/key": {"kept": True}},
}
WRITING = threading.Lock()


def send(message: dict[str, Any]) -> None:
    """Write one message on one line."""
    with WRITING:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def note(message: dict[str, Any]) -> None:
    """Keep what was received, with the time."""
    if JOURNAL is not None:
        with JOURNAL.open("a") as journal:
            journal.write(json.dumps({"at": time.time(), **message}) + "\n")


def text(value: str, **more: Any) -> dict[str, Any]:
    """A tool result of one text block."""
    return {"content": [{"type": "text", "text": value}], **more}


def call(request_id: Any, name: str, arguments: dict[str, Any]) -> None:
    """Answer a tool call, or not."""
    if name == "echo":
        send({"id": request_id, "result": text(arguments["text"])})
    elif name == "fail":
        send({"id": request_id, "result": text("it did not work", isError=True)})
    elif name == "die":
        sys.stderr.write("going down on request\n")
        sys.stderr.flush()
        sys.exit(7)
    elif name == "rich":
        send({"id": request_id, "result": RICH})
    elif name == "big":
        send({"id": request_id, "result": text("x" * arguments["bytes"])})
    elif name == "slow":
        time.sleep(arguments["seconds"])
        send({"id": request_id, "result": text("at last")})
    elif name == "nonsense":
        send({"id": request_id, "result": {"list": [1], "string": "x", "null": None}[arguments["kind"]]})
    elif name == "grow":
        TOOLS.append({"name": f"grown_{len(TOOLS)}", "inputSchema": {"type": "object"}})
        send({"method": "notifications/tools/list_changed"})
        send({"id": request_id, "result": text("grown")})
    elif name != "hang":
        send({"id": request_id, "error": {"code": -32602, "message": f"no tool {name}"}})


def answer(message: dict[str, Any]) -> None:
    """Answer one message of the older generation."""
    request_id, method = message.get("id"), message.get("method")
    if request_id is None:
        return
    if method == "initialize":
        version = MODE if MODE.startswith("20") else message["params"]["protocolVersion"]
        info = {"name": f"plain-{MODE}", "version": "1.2.3"}
        result: dict[str, Any] = {"protocolVersion": version, "serverInfo": info}
        result["capabilities"] = {"prompts": {}} if MODE == "no-tools" else {"tools": {"listChanged": True}}
        send({"id": request_id, "result": result})
    elif method == "tools/list" and MODE in ("pages", "endless"):
        start = int(message.get("params", {}).get("cursor", "0"))
        page: dict[str, Any] = {"tools": TOOLS[start : start + 3]}
        if MODE == "endless" or start + 3 < len(TOOLS):
            page["nextCursor"] = "0" if MODE == "endless" else str(start + 3)
        send({"id": request_id, "result": page})
    elif method == "tools/list" and MODE != "no-tools":
        send({"id": request_id, "result": {"tools": TOOLS}})
    elif method == "prompts/list" and MODE == "no-tools":
        send({"id": request_id, "result": {"prompts": [{"name": "hello"}]}})
    elif method == "tools/call":
        call(request_id, message["params"]["name"], message["params"].get("arguments") or {})
    else:
        if MODE == "dies-on-probe":
            sys.exit(4)
        send({"id": request_id, "error": {"code": -32601, "message": "Method not found"}})


def main() -> None:
    """Serve until the input ends."""
    if MODE == "exits":
        sys.stderr.write("cannot find my configuration\n")
        sys.exit(3)
    if MODE == "banner":
        sys.stdout.write("\r\n\U0001f680 welcome, this is no JSON\r\n\n")
        sys.stdout.flush()
    for line in sys.stdin:
        message = json.loads(line)
        note(message)
        answer(message)


main()
