"""`python -m benchmarks.floor_pipe PORT BACKEND…`: bare ASGI in front of the child's pipe, with an id map and no checks at all.

What is physically possible in Python without writing a server of one's own.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import orjson
import uvicorn


class Pipe:
    """A child whose answers are matched by ids of our own."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._next = 0
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=64 * 1024 * 1024
            )
            self._reader = asyncio.create_task(self._read(self._process))
        return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            reply = orjson.loads(line)
            self._waiting.pop(reply["id"]).set_result(reply)

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send the message under an id of our own and return the answer under the caller's."""
        process = await self._started()
        assert process.stdin is not None
        self._next += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._next] = future
        process.stdin.write(orjson.dumps({**message, "id": self._next}) + b"\n")
        reply = await future
        return {**reply, "id": message["id"]}


def serve(port: int, command: list[str]) -> None:
    """Answer on the port with what the child answers."""
    pipe = Pipe(command)

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        message: dict[str, Any] = orjson.loads(body or b"{}")
        reply = orjson.dumps(await pipe.ask(message)) if "id" in message else b""
        if scope["method"] != "POST":
            reply = b""
        headers = [(b"content-type", b"application/json"), (b"mcp-session-id", b"bench")]
        await send({"type": "http.response.start", "status": 200 if reply else 202, "headers": headers})
        await send({"type": "http.response.body", "body": reply})

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", lifespan="off")  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2:])
