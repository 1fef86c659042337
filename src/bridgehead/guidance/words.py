"""Small text rules shared by the pages: first sentences, cuts that say so, and how many of what."""

from __future__ import annotations

import re

from bridgehead.core import Risk

GUIDANCE_TOOL = "guidance"
"""The built-in tool that shows these pages."""
READ_TOOL = "read_result"
"""The built-in tool that reads a stored result on."""

RISK_WORDS = {
    Risk.READ: "reads only",
    Risk.WRITE: "changes things, destroys nothing",
    Risk.DESTRUCTIVE: "may change or destroy things, or does not say that it will not",
}

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\sa-z])")
_ABBREVIATIONS = ("e.g.", "i.e.", "etc.", "vs.", "cf.", "approx.", "no.", "incl.")


def one_line(text: str) -> str:
    """The text with every run of white space made one space."""
    return " ".join(text.split())


def cut(text: str, limit: int) -> str:
    """The text where it fits, else as many whole words as fit with an ellipsis behind them."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    at = max(head.rfind(" "), head.rfind("\n"))
    return f"{head[:at] if at > limit // 2 else head}…"


def first_sentence(text: str, limit: int = 200) -> str:
    """The first sentence of a description on one line, cut with an ellipsis at `limit` characters."""
    paragraph = one_line(text.strip().partition("\n\n")[0])
    for end in _SENTENCE_END.finditer(paragraph):
        sentence = paragraph[: end.start()]
        if not sentence.lower().endswith(_ABBREVIATIONS):
            return cut(sentence, limit)
    return cut(paragraph, limit)


def count(number: int, noun: str) -> str:
    """`1 tool`, `2 tools`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def code_list(names: list[str]) -> str:
    """The names as code, with commas between them."""
    return ", ".join(f"`{name}`" for name in names)


def cell(text: str) -> str:
    """The text fit for a cell of a Markdown table."""
    return one_line(text).replace("|", "\\|")
