"""A backend that costs next to nothing, so that what is measured is what stands in front of it.

`python -m benchmarks.backend [--http PORT] [--tools N]`: hand-written JSON-RPC on standard input and output, or on `/mcp`.
Serves both generations. It lists N tools, of which two do something: `echo(text)` and `blob(size)`.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import orjson
import uvicorn

MODERN = "2026-07-28"
_SERVER = {"name": "bench-backend", "version": "1"}
_BLOCK = "0123456789abcdef" * 64


def block(size: int) -> str:
    """A text of so many bytes."""
    return (_BLOCK * (size // len(_BLOCK) + 1))[:size]


def catalogue(tools: int) -> list[dict[str, Any]]:
    """The tools that are listed."""

    def tool(name: str, kind: str, field: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
        return {"name": name, "description": f"The tool {name}, which takes {field}.", "inputSchema": schema}

    return [tool("echo", "string", "text"), tool("blob", "integer", "size")] + [
        tool(f"tool_{number:04}", "string", "value") for number in range(tools - 2)
    ]


def answer(message: dict[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The answer to one message, or None for a notification."""
    if "id" not in message:
        return None
    method: str = message["method"]
    params: dict[str, Any] = message.get("params") or {}
    modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
    capabilities: dict[str, Any] = {"tools": {}}
    match method:
        case "initialize":
            version = params["protocolVersion"]
            result: dict[str, Any] = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": _SERVER}
        case "server/discover":
            result = {"supportedVersions": [MODERN], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"}
        case "tools/list":
            result = {"tools": tools, **({"ttlMs": 0, "cacheScope": "private"} if modern else {})}
        case "tools/call":
            arguments = params["arguments"]
            text = arguments["text"] if params["name"] == "echo" else block(arguments["size"])
            result = {"content": [{"type": "text", "text": text}]}
        case _:
            error = {"code": -32601, "message": "Method not found"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    if modern:
        result["resultType"] = "complete"
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def serve_stdio(tools: list[dict[str, Any]]) -> None:
    """Answer line by line until the input ends."""
    for line in sys.stdin.buffer:
        reply = answer(orjson.loads(line), tools)
        if reply is not None:
            sys.stdout.buffer.write(orjson.dumps(reply) + b"\n")
            sys.stdout.buffer.flush()


def serve_http(tools: list[dict[str, Any]], port: int) -> None:
    """Answer POSTs; sessions are named and not kept."""

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        reply = answer(orjson.loads(body), tools) if scope["method"] == "POST" and body else None
        status = 200 if reply is not None else 202 if scope["method"] == "POST" else 405
        headers = [(b"content-type", b"application/json"), (b"mcp-session-id", b"bench")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": orjson.dumps(reply) if reply is not None else b""})

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", lifespan="off")  # pyright: ignore[reportArgumentType]


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int)
    parser.add_argument("--tools", type=int, default=2)
    options = parser.parse_args()
    tools = catalogue(options.tools)
    if options.http:
        serve_http(tools, options.http)
    else:
        serve_stdio(tools)


if __name__ == "__main__":
    main()
