"""Asking a person at a terminal, and knowing when there is none."""

from __future__ import annotations

import re
import sys

import typer

_RANGE = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+))?")


def somebody_is_there() -> bool:
    """Whether a person sees what is printed and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def agrees(question: str) -> bool:
    """Whether the person says yes."""
    return typer.confirm(question)


def numbers(question: str, highest: int) -> list[int]:
    """The numbers from 1 to `highest` that the person chooses, as in `1,3-5`; asked again until they make sense."""
    while True:
        answer = typer.prompt(f"{question} (as in 1,3-5; all; none)", default="all").strip().lower()
        chosen = parse_numbers(answer, highest)
        if chosen is not None:
            return chosen
        typer.echo(f"Give numbers from 1 to {highest}, or all, or none.")


def parse_numbers(answer: str, highest: int) -> list[int] | None:
    """The numbers in the answer, without repeating any; None where it makes no sense."""
    if answer in {"all", "none"}:
        return list(range(1, highest + 1)) if answer == "all" else []
    found: list[int] = []
    for word in re.split(r"[\s,]+", answer.strip(", ")):
        part = _RANGE.fullmatch(word)
        if part is None:
            return None
        first, last = int(part["first"]), int(part["last"] or part["first"])
        if not 1 <= first <= last <= highest:
            return None
        found.extend(range(first, last + 1))
    return list(dict.fromkeys(found))
