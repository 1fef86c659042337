"""The reference pages say what the code says; `scripts/docs` brings them up to date."""

import re
from pathlib import Path

import pytest

from scripts.reference import PAGES, rewritten, tables

TABLES = tables()


def name_of(page: Path) -> str:
    return page.stem


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=name_of)
def test_a_page_holds_what_the_code_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert text == rewritten(text, TABLES), "run ./scripts/docs"


def test_every_table_is_on_a_page() -> None:
    shown = set[str]()
    for page in PAGES.glob("*.md"):
        shown.update(re.findall(r"<!-- table:(\w+) -->", page.read_text(encoding="utf-8")))

    assert shown == set(TABLES)


def test_a_table_that_does_not_exist_is_refused() -> None:
    with pytest.raises(LookupError, match="nonsense"):
        rewritten("<!-- table:nonsense -->\n<!-- /table:nonsense -->", TABLES)
