"""The benchmark runs, checks every answer, and reports every lane. No time is asserted: that is what reading it is for."""

import asyncio
import json
import subprocess
import sys
from asyncio import StreamReader, StreamWriter
from pathlib import Path

from benchmarks.lanes import ALONE, BRIDGE_HTTP, BRIDGE_PIPE, PIPE, SDK
from benchmarks.load import GENERATIONS, MODERN_GENERATION, Door, Load, Measured, echo, run
from benchmarks.report import IN_FLIGHT, LARGE, LIST, echo_of

ROOT = Path(__file__).parents[2]
LANES = (ALONE, PIPE, SDK, BRIDGE_PIPE, BRIDGE_HTTP)
WORKLOADS = (*(echo_of(n) for n in IN_FLIGHT), LIST, LARGE)


def test_a_quick_run_reports_every_lane_and_no_wrong_answer(tmp_path: Path) -> None:
    file = tmp_path / "samples.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--rounds", "1", "--tools", "10", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong answers: 0 of " in done.stdout
    kept = json.loads(file.read_text())
    measured = {(sample["workload"], sample["generation"], sample["lane"]) for sample in kept["samples"]}
    assert measured == {(workload, era, lane) for workload in WORKLOADS for era in GENERATIONS for lane in LANES}
    assert all(f"{workload:<8}  {era}  {lane} " in done.stdout for workload, era, lane in measured)
    assert all(len(kept["starts"][lane]["cold_s"]) == 1 for lane in LANES)
    assert done.stdout.count("the bare pipe at 1, 8, 32") == len(GENERATIONS)


def test_answers_that_are_swapped_between_callers_are_counted_as_wrong() -> None:
    """The server under test keeps each second question and gives its two askers one another's answers."""

    async def swapping() -> Measured:
        waiting: list[tuple[StreamWriter, bytes]] = []
        writers: list[StreamWriter] = []

        async def serve(reader: StreamReader, writer: StreamWriter) -> None:
            writers.append(writer)
            while head := (await reader.readline() and await reader.readuntil(b"\r\n\r\n")):
                length = next(line for line in head.splitlines() if line.startswith(b"Content-Length: "))
                asked = json.loads(await reader.readexactly(int(length.split()[1])))
                content = [{"type": "text", "text": asked["params"]["arguments"]["text"]}]
                answer = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"content": content}}).encode()
                if asked["params"]["arguments"]["text"].endswith("turn 0 ✓"):
                    pairs = [(writer, answer)]
                else:
                    waiting.append((writer, answer))
                    pairs = []
                if len(waiting) == 2:
                    (one, of_one), (other, of_other) = waiting
                    pairs = [(one, of_other), (other, of_one)]
                    waiting.clear()
                for to, body in pairs:
                    to.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            door = Door(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", MODERN_GENERATION, None)
            measured = await run(door, echo("echo"), Load(callers=2, times=3, shared=False), lambda: 0.0)
            for writer in writers:
                await writer.wait_closed()
            return measured

    measured = asyncio.run(swapping())

    assert len(measured.wrong) == measured.calls == 6
