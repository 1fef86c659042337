"""Values of secrets are taken out of text, however they are written there."""

from __future__ import annotations

import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridgehead.config import Concealment, Secret

VALUE = 'p@ss "word"/\\é+1'


def knowing(*values: str) -> Concealment:
    conceal = Concealment()
    conceal.learn(Secret(value) for value in values)
    return conceal


@pytest.mark.parametrize(
    "written",
    [
        VALUE,
        json.dumps(VALUE),
        json.dumps(VALUE, ensure_ascii=False),
        repr(VALUE),
        quote(VALUE),
        quote(VALUE, safe=""),
        quote_plus(VALUE),
    ],
)
def test_a_value_is_found_as_it_is_and_as_it_is_written_in_json_python_and_urls(written: str) -> None:
    assert knowing(VALUE)(f"<{written}>") in {"<***>", '<"***">', "<'***'>"}


def test_nothing_is_changed_where_nothing_is_known() -> None:
    assert Concealment()("hunter2") == "hunter2"
    assert knowing("hunter2")("nothing of it") == "nothing of it"


def test_a_value_within_another_leaves_nothing_of_the_other_behind() -> None:
    assert knowing("hunter2", "hunter2-and-more", "and-more-hunter2")(
        "<hunter2-and-more> and-more-hunter2 hunter2"
    ) == ("<***> *** ***")


def test_each_line_of_a_value_is_found_by_itself() -> None:
    conceal = knowing("-----BEGIN KEY-----\nMIIEvQIBADANBg\n  kqhkiG9w0BAQEF  \nend\n")

    assert conceal("MIIEvQIBADANBg") == conceal("kqhkiG9w0BAQEF") == "***"


def test_what_was_cut_off_is_found_by_its_beginning_or_its_end() -> None:
    conceal = knowing("abcdefghijklmnopqrstuvwxyz")

    assert conceal("key=abcdefghijkl") == "key=***"
    assert conceal("opqrstuvwxyz is my key") == "*** is my key"
    assert conceal("efghijklmnop") == "efghijklmnop", "neither end: this cannot be told from any other text"


def test_a_very_short_value_is_left_in_since_text_would_be_unreadable() -> None:
    assert knowing("a", "the")("the cat") == "the cat"


def test_what_was_learned_before_is_not_forgotten() -> None:
    conceal = knowing("hunter2")
    conceal.learn([Secret("hunter3")])

    assert conceal("hunter2 hunter3") == "*** ***"


@given(st.text(min_size=4), st.text(), st.text())
@example("0000000\n", "", "0")
def test_no_value_comes_through(value: str, before: str, after: str) -> None:
    shown = knowing(value)(before + value + after)

    assert all(value not in part for part in shown.split("***"))
