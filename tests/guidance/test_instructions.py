"""The instructions text: what matters stands within the first 512 characters, and nothing is cut silently."""

from __future__ import annotations

import re
from typing import Any

from bridgehead.catalog import BUILTIN, Catalog, Listing, Rules, Snapshot
from bridgehead.config import GroupMember, GroupSettings
from bridgehead.guidance import HEAD_LENGTH, instructions


def snapshot(groups: int, *, words: dict[str, str] | None = None, name: str = "group-number-{}") -> Snapshot:
    settings = {
        name.format(number): GroupSettings(members=(GroupMember(backend="many", names=(f"tool_{number}",)),))
        for number in range(groups)
    }
    said = words or {}
    catalog = Catalog(Rules(("many", *said), frozenset(), settings, ungrouped=True))
    builtin: tuple[dict[str, Any], ...] = ({"name": "guidance"}, {"name": "read_result"})
    catalog.publish(BUILTIN, Listing(tools=builtin))
    catalog.publish("many", Listing(tools=tuple({"name": f"tool_{number}"} for number in range(max(groups, 1)))))
    for backend, text in said.items():
        catalog.publish(backend, Listing(tools=({"name": "speak"},), instructions=text))
    return catalog.snapshot


def test_with_thirty_groups_the_first_512_characters_say_all_that_is_needful() -> None:
    held = snapshot(30, words={"talker": "I talk. " * 100})

    head = instructions(held.everything, held)[:HEAD_LENGTH]

    assert "{backend}__{tool}" in head
    assert 'guidance {"topic": "overview"}' in head
    assert "read_result" in head
    assert "30 groups: group-number-0 (1), " in head
    shown = len(re.findall(r"group-number-\d+ \(1\)", head))
    assert shown > 0
    assert f"and {30 - shown} more (topic groups)." in head
    assert "I talk" not in head.partition("more (topic groups).")[0]


def test_a_few_groups_are_all_named() -> None:
    held = snapshot(3)

    text = instructions(held.everything, held)

    assert text.endswith("3 groups: group-number-0 (1), group-number-1 (1), group-number-2 (1).")
    assert len(text) <= HEAD_LENGTH


def test_even_endless_group_names_leave_the_head_whole() -> None:
    held = snapshot(2, name="g{}" + "x" * 600)

    text = instructions(held.everything, held)

    assert len(text) <= HEAD_LENGTH
    assert text.endswith("2 groups, named under the topic groups.")


def test_on_a_groups_view_the_head_speaks_of_that_group() -> None:
    held = snapshot(5, words={"talker": "Not for this group."})

    text = instructions(held.by_group["group-number-1"], held)

    assert text.startswith("Bridgehead's group group-number-1: 3 tools.")
    assert "group-number-2" not in text
    assert "Not for this group" not in text


def test_long_backend_instructions_are_cut_and_say_how_to_go_on() -> None:
    held = snapshot(1, words={"talker": "word " * 1_000})

    text = instructions(held.everything, held)

    assert "## talker" in text
    assert re.search(r"cut after \d+ of 4999 characters", text)
    assert 'guidance {"topic": "backends"}' in text


def test_when_all_backends_say_much_some_are_left_out_by_name() -> None:
    held = snapshot(1, words={f"talker{number}": "word " * 1_000 for number in range(20)})

    text = instructions(held.everything, held)

    assert len(text) < 13_000
    left = re.search(r"The instructions of (\d+) more backends \((.+)\) are left out", text)
    assert left is not None
    assert text.count("\n## ") + int(left.group(1)) == 20
    assert left.group(2).endswith("talker19")
