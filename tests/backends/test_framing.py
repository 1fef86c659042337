"""Lines out of chunks, wherever they are cut."""

import json

from hypothesis import given
from hypothesis import strategies as st

from bridgehead.backends.mcp.framing import Framer, TooLong


def fed(data: bytes, sizes: list[int], limit: int) -> list[bytes | TooLong]:
    """What a framer makes of `data` in chunks of these sizes, and of the rest in one."""
    framer, lines, start = Framer(limit), list[bytes | TooLong](), 0
    for size in sizes:
        lines += framer.feed(data[start : start + size])
        start += size
    return lines + framer.feed(data[start:])


@given(st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line)), st.lists(st.integers(0, 25)))
def test_lines_come_out_whole_wherever_the_chunks_are_cut(lines: list[bytes], sizes: list[int]) -> None:
    assert fed(b"".join(line + b"\n" for line in lines), sizes, 100) == lines


@given(st.lists(st.integers(1, 3_000), max_size=20))
def test_a_line_over_the_limit_is_thrown_away_and_the_next_one_is_not(sizes: list[int]) -> None:
    large = json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"id": 3, "text": "x" * 9_000}}).encode()

    lines = fed(large + b"\n" + b"small\n", sizes, 5_000)

    assert lines == [TooLong(len(large), 7, is_answer=True), b"small"]


@given(st.sampled_from([{"jsonrpc": "2.0", "id": "a"}, {"id": 12}, {}]), st.booleans())
def test_the_id_of_what_was_thrown_away_is_that_of_the_message(envelope: dict[str, object], last: bool) -> None:
    body = {"result": {"id": 99, "more": [{"id": 98}], "text": "x" * 20_000, "end": {"id": 97}}}
    message = {**body, **envelope} if last else {**envelope, **body}

    (line,) = Framer(5_000).feed(json.dumps(message).encode() + b"\n")

    assert isinstance(line, TooLong)
    assert (line.id, line.is_answer) == (envelope.get("id"), True)


def test_a_request_that_was_thrown_away_is_no_answer() -> None:
    request = {"jsonrpc": "2.0", "id": 5, "method": "sampling/createMessage", "params": {"text": "x" * 9_000}}

    (line,) = Framer(5_000).feed(json.dumps(request).encode() + b"\n")

    assert isinstance(line, TooLong)
    assert not line.is_answer
