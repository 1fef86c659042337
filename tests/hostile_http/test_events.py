"""Server-sent events in any pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.backends.mcp.http.events import Event, EventParser, EventTooLarge

STREAM = (
    '\N{BOM}: a comment\nevent: message\nid: 1\nretry: 250\ndata: {"a":\ndata:"zürich 🦊"}\n\n'
    "event: odd\ndata: x\n\nid: 2\ndata:\n\ndata\n\nevent: message\n\ndata: last\nunknown: field\n\n"
)
EXPECTED = [Event("message", '{"a":\n"zürich 🦊"}'.encode()), Event("odd", b"x"), Event("message", b"last")]


@given(st.sampled_from(["\n", "\r", "\r\n"]), st.lists(st.integers(0, 250), max_size=40))
def test_the_borders_of_chunks_and_lines_change_nothing(ending: str, borders: list[int]) -> None:
    stream = STREAM.replace("\n", ending).encode()
    cuts = [0, *sorted(min(border, len(stream)) for border in borders), len(stream)]
    parser = EventParser(1_000)
    events = [found for start, end in pairwise(cuts) for found in parser.feed(stream[start:end])]
    assert events == EXPECTED
    assert (parser.last_id, parser.retry_s) == ("2", 0.25)


def test_byte_by_byte_is_the_same() -> None:
    parser = EventParser(1_000)
    events = [found for byte in STREAM.encode() for found in parser.feed(bytes([byte]))]
    assert events == EXPECTED


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 90 + b"\n", b"data: x\n", b"y"])
def test_an_event_without_end_is_not_kept(piece: bytes) -> None:
    parser = EventParser(1_000)
    with pytest.raises(EventTooLarge):
        parser.feed(piece * 2_000)
    parser = EventParser(1_000)
    with pytest.raises(EventTooLarge):
        feed_all(parser, [piece] * 2_000)


def feed_all(parser: EventParser, pieces: list[bytes]) -> None:
    for piece in pieces:
        parser.feed(piece)


def test_many_events_are_not_one_large_one() -> None:
    parser = EventParser(100)
    assert len([found for _ in range(1_000) for found in parser.feed(b"data: " + b"x" * 90 + b"\n\n")]) == 1_000


def test_what_is_no_id_and_no_number_is_ignored() -> None:
    parser = EventParser(100)
    parser.feed(b"id: 7\n\nid: a\0b\nretry: soon\ndata: x\n\n")
    assert (parser.last_id, parser.retry_s) == ("7", None)
