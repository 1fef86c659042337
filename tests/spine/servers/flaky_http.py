"""A server over HTTP of the older generation that fails some requests on their way: `flaky_http.py PORT`."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

SESSIONS: set[str] = set()
NAMES = ("ok", "slow", "drop", "half", "forget")


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """The result of a request."""
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "flaky", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]}
        case _:
            return {"content": [{"type": "text", "text": "fine"}]}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request a connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    body = await reader.readexactly(int(fields.get("content-length", "0")))
    message: dict[str, Any] = json.loads(body or b"{}")
    method, name = message.get("method"), message.get("params", {}).get("name")
    status, content, session = "202 Accepted", b"", ""
    if not head.startswith("post"):
        status = "405 Method Not Allowed"
    elif method == "server/discover":
        status = "400 Bad Request"
    elif method != "initialize" and fields.get("mcp-session-id") not in SESSIONS:
        status = "404 Not Found"
        error = {"code": -32001, "message": "Session expired"}
        content = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "error": error}).encode()
    elif "id" in message:
        if name == "slow":
            await asyncio.sleep(2)
        if method == "initialize":
            session = f"s{len(SESSIONS)}"
            SESSIONS.add(session)
        if name == "forget":
            SESSIONS.clear()
        status = "200 OK"
        content = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}).encode()
    if name != "drop":
        extra = f"Mcp-Session-Id: {session}\r\n" if session else ""
        start = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n{extra}"
        writer.write(f"{start}Content-Length: {len(content)}\r\n\r\n".encode())
        writer.write(content[: len(content) // 2] if name == "half" else content)
        await writer.drain()
    writer.close()


async def main() -> None:
    """Serve until ended."""
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
