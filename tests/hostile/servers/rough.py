"""A server of the older generation with bad manners, chosen by the first argument: `rough.py MODE [JOURNAL]`.

Plain standard library and quick to start, since some tests start a hundred.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1] if len(sys.argv) > 1 else "plain"
JOURNAL = sys.argv[2] if len(sys.argv) > 2 else None
NAMES = ["x" * 100, "x" * 99 + "y", "数", "a:b.c", "a.b.c", "a b c", "ünïcode", "-", "_" * 70]
QUIET = subprocess.DEVNULL
STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
TEXT = "añ→🚀"
READS = {"readOnlyHint": True}
REPEATS = {"readOnlyHint": False, "idempotentHint": True}


def write(data: bytes, step: int = 1 << 20) -> None:
    """Write all of it, `step` bytes at a time."""
    for start in range(0, len(data), step):
        part = data[start : start + step]
        while part:
            part = part[os.write(1, part) :]


def send(message: dict[str, Any], step: int = 1 << 20) -> None:
    """Write one message on one line, in characters rather than escapes."""
    write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n", step)


def note(**what: Any) -> None:
    """Append a line to the journal."""
    if JOURNAL is not None:
        with Path(JOURNAL).open("a", encoding="utf-8") as journal:
            journal.write(json.dumps({"at": time.time(), "pid": os.getpid(), **what}) + "\n")


def text(value: str) -> dict[str, Any]:
    """A result of one text block."""
    return {"content": [{"type": "text", "text": value}]}


def tools() -> list[dict[str, Any]]:
    """What it lists."""
    if MODE == "names":
        names = NAMES
    elif MODE == "new-cursors":
        names = []
    else:
        names = [
            "read",
            "write",
            "again",
            "big",
            "progress",
            "hang",
            "die",
            "noise",
            "flood",
            "deaf",
            "pid",
            "sleep",
            "leave",
        ]
    annotations = {"read": READS, "again": REPEATS}
    return [
        {"name": name, "inputSchema": {"type": "object"}, "annotations": annotations.get(name, {})} for name in names
    ]


def stubborn_child(*, start_new_session: bool = False, env: dict[str, str] | None = None) -> int:
    """Start one; its number."""
    command = [sys.executable, "-S", "-c", STUBBORN]
    return subprocess.Popen(
        command, stdin=QUIET, stdout=QUIET, stderr=QUIET, start_new_session=start_new_session, env=env
    ).pid


def noise(number: Any) -> None:
    """Everything that a server should not say around an answer."""
    send({"id": 987654, "result": text("to nobody")})
    send({"id": "no-such-id", "error": {"code": 1, "message": "to nobody"}})
    send({"id": "mine-1", "method": "ping"})
    send({"id": "mine-2", "method": "roots/list"})
    send({"id": number, "method": "no/such/request", "params": {}})
    send({"method": "notifications/no/such/thing", "params": {"x": 1}})
    send({"method": "notifications/progress", "params": {"progressToken": "not-mine", "progress": "much"}})
    write(b'[{"jsonrpc":"2.0","id":5,"result":{}},{"jsonrpc":"2.0","id":6,"result":{}}]\n')
    write(b'null\n5\n"text"\n[]\n{}\n{]\n\xff\xfe\n\x00\n')
    send({"id": number, "result": text("said")})
    send({"id": number, "result": text("said twice")})


def flood(arguments: dict[str, Any]) -> None:
    """Write a lot that nobody wants."""
    line = b"this is no message and there is a lot of it, on and on and on and on and on and on\n"
    data = line * (arguments.get("bytes", 8_000_000) // len(line))
    if arguments["to"] == "stdout":
        write(data)
        return
    while data:
        data = data[os.write(2, data[: 1 << 16]) :]


def progress(number: Any, params: dict[str, Any]) -> None:
    """Report step after step, then answer."""
    arguments = params["arguments"]
    token = params.get("_meta", {}).get("progressToken")
    for step in range(arguments["steps"]):
        time.sleep(arguments["every_s"])
        if token is not None:
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": step}})
    send({"id": number, "result": text("done")})


def deaf(number: Any) -> None:
    """Answer, and close the input for good."""
    send({"id": number, "result": text("not listening any more")})
    os.close(0)
    time.sleep(600)


def die(*, leaving_one: bool) -> None:
    """End at once, or so that somebody goes on who holds every pipe."""
    if leaving_one:
        subprocess.Popen([sys.executable, "-S", "-c", STUBBORN], stdin=0)
    os._exit(9)


def call(number: Any, name: str, params: dict[str, Any]) -> None:
    """Answer a call in its own way."""
    arguments: dict[str, Any] = params.get("arguments") or {}
    note(call=name, arguments=arguments)
    match name:
        case "big":
            send({"id": number, "result": text(TEXT * (arguments["bytes"] // len(TEXT.encode())))}, arguments["step"])
        case "progress":
            progress(number, params)
        case "die" | "leave":
            die(leaving_one=name == "leave")
        case "noise":
            noise(number)
        case "flood":
            flood(arguments)
            send({"id": number, "result": text("flooded")})
        case "deaf":
            deaf(number)
        case "pid":
            send({"id": number, "result": text(str(os.getpid()))})
        case "sleep":
            time.sleep(arguments["seconds"])
            send({"id": number, "result": text("slept")})
        case "hang":
            return
        case _:
            send({"id": number, "result": text(arguments.get("text", name))})


def answer(message: dict[str, Any]) -> None:
    """Answer one message."""
    number, method = message.get("id"), message.get("method")
    params: dict[str, Any] = message.get("params") or {}
    if number is None or method is None:
        return
    if method == "initialize":
        if MODE == "exit-3":
            sys.stderr.write("my licence has run out\n")
            sys.stderr.flush()
            os._exit(3)
        if MODE == "mute":
            time.sleep(600)
        info = {"name": MODE, "version": "1"}
        capabilities = {"tools": {"listChanged": True}}
        send(
            {
                "id": number,
                "result": {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": capabilities,
                    "serverInfo": info,
                },
            }
        )
    elif method == "tools/list":
        if MODE == "slow-list":
            time.sleep(1)
        page: dict[str, Any] = {"tools": tools()}
        if MODE == "new-cursors":
            page["nextCursor"] = str(time.monotonic_ns())
        send({"id": number, "result": page})
        note(ready=True)
    elif method == "tools/call":
        if MODE == "threads":
            threading.Thread(target=call, args=(number, params["name"], params), daemon=True).start()
        else:
            call(number, params["name"], params)
    else:
        send({"id": number, "error": {"code": -32601, "message": "no"}})


def be_stubborn() -> None:
    """Start a tree that ends for nothing less than SIGKILL, wherever its members went."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pids = [stubborn_child(), stubborn_child(start_new_session=True)]
    if MODE == "stubborn":
        pids.append(stubborn_child(start_new_session=True, env={}))
    # One whose own parent is gone before anyone looks.
    between = "import subprocess, sys; subprocess.Popen([sys.executable, '-S', *sys.argv[1:]], start_new_session=True)"
    command = [sys.executable, "-S", "-c", between, "-c", STUBBORN]
    subprocess.run(command, check=True, stdin=QUIET, stdout=QUIET, stderr=QUIET)
    note(pids=pids)


def main() -> None:
    """Serve until the input ends, or beyond."""
    note(began=True, environment=os.environ.get("ASKED_FOR"))
    if MODE.startswith("stubborn"):
        be_stubborn()
    for line in sys.stdin:
        answer(json.loads(line))
    if MODE.startswith("stubborn"):
        time.sleep(600)


if __name__ == "__main__":
    main()
