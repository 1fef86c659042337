"""What commands print: JSON for programs, tables for people; both to standard output, nothing else goes there.

Names and texts come from backends that may be hostile, so control characters, which could drive the terminal, are taken
out of everything meant for people.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bridgehead.core.terminal import takes_colours

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PIPED_WIDTH = 200
_SHORT = 12
"""Characters of a cell that is not broken over lines."""


class Colour(StrEnum):
    """The colours that are used, as SGR parameters (ECMA-48, section 8.3.117)."""

    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    FAINT = "2"


def painted(text: str, colour: Colour) -> str:
    """The text in that colour where standard output takes colours. It has to be free of control characters itself."""
    return f"\x1b[{colour.value}m{text}\x1b[0m" if takes_colours(sys.stdout, os.environ) else text


def plain(text: object) -> str:
    """The text without characters that could drive a terminal or turn the reading direction."""
    return _CONTROL.sub("", str(text))


def print_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode() + "\n")


def print_text(text: str) -> None:
    """Print text as it is; on a terminal without control characters."""
    print_line(plain(text) if sys.stdout.isatty() else text)


def print_line(text: str) -> None:
    """Print what has been made plain and painted already."""
    sys.stdout.write(text.rstrip("\n") + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Print a table, or the sentence `empty` where there are no rows."""
    if not rows:
        print_text(empty)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        # The first column names the thing: it is never cut, so that it can be copied. Nor are short cells broken.
        longest = max(len(plain(row[number])) for row in rows)
        table.add_column(column, no_wrap=number == 0 or longest <= _SHORT, overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else plain(cell)) for cell in row))
    screen = console()
    with screen.capture() as captured:
        screen.print(table)
    # Rich pads the last column too.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def console() -> Console:
    """Standard output for Rich; wide where it is no terminal, so that little is folded."""
    return Console(
        width=None if sys.stdout.isatty() else _PIPED_WIDTH,
        highlight=False,
        emoji=False,
        markup=False,
        # Asked, not left to Rich, so that everything here follows the same rule.
        force_terminal=takes_colours(sys.stdout, os.environ),
    )
