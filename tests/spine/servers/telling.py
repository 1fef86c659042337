"""A server whose tools say of themselves what they do, for those who call a tool only to see whether it answers.

`telling.py MODE JOURNAL`: each tool that is called is appended to the journal, one name a line. Modes: `fine`; `fails`, whose
harmless tool fails; `silent`, whose harmless tool never answers; `names`, whose tools have odd names.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

MODE, JOURNAL = sys.argv[1], Path(sys.argv[2])
SAFE = {"readOnlyHint": True, "openWorldHint": False}
NOTHING = {"type": "object"}
NEEDY = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
TOOLS: list[dict[str, Any]] = [
    {"name": "unsaid", "inputSchema": NOTHING},
    {"name": "reaches_out", "inputSchema": NOTHING, "annotations": {"readOnlyHint": True}},
    {"name": "writes", "inputSchema": NOTHING, "annotations": {"destructiveHint": False, "openWorldHint": False}},
    {"name": "both", "inputSchema": NOTHING, "annotations": {**SAFE, "destructiveHint": True}},
    {"name": "needs", "inputSchema": NEEDY, "annotations": SAFE},
    {"name": "fussy", "inputSchema": {**NOTHING, "minProperties": 1}, "annotations": SAFE},
    {"name": "look", "inputSchema": NOTHING, "annotations": SAFE},
]
ODD = ["plain", "with.dots:and:colons", "grüße", "x" * 80, "plain"]


def main() -> None:
    """Serve until the input ends."""
    listed = TOOLS if MODE != "names" else [{"name": name, "inputSchema": NOTHING} for name in ODD]
    for line in sys.stdin:
        message = json.loads(line)
        request_id, method = message.get("id"), message.get("method")
        if request_id is None:
            continue
        answer: dict[str, Any] = {"error": {"code": -32601, "message": "Method not found"}}
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            told = {"name": "telling", "version": "1"}
            answer = {"result": {"protocolVersion": version, "serverInfo": told, "capabilities": {"tools": {}}}}
        elif method == "tools/list":
            answer = {"result": {"tools": listed}}
        elif method == "tools/call":
            with JOURNAL.open("a") as journal:
                journal.write(f"{message['params']['name']}\n")
            if MODE == "silent":
                continue
            content = [{"type": "text", "text": "nothing to look at"}]
            answer = {"result": {"content": content, "isError": MODE == "fails"}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request_id, **answer}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
