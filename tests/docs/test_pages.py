"""Links between pages lead somewhere, the changelog is fed, and the README's commands exist."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#([^)\s]+))?\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / path).resolve()
        assert target.exists(), f"{page.name} links to {path}"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {path}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_scripts_that_a_page_names_can_be_run(page: Path) -> None:
    for name in re.findall(r"\./(scripts/\w+)", page.read_text(encoding="utf-8")):
        assert (ROOT / name).stat().st_mode & 0o111, f"{page.name} names {name}"


def test_changes_have_a_known_kind() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    kinds = {kind["directory"] for kind in project["tool"]["towncrier"]["type"]}

    for fragment in (ROOT / "changes").glob("*.md"):
        assert fragment.name.split(".")[-2] in kinds, fragment.name
