"""Printing Markdown. Apart from `output`, because Rich's Markdown takes longer to import than most commands run."""

from __future__ import annotations

import sys

from rich.markdown import Markdown

from bridgehead.cli.output import console, plain, print_text


def print_markdown(text: str) -> None:
    """Print Markdown: laid out on a terminal, as it is elsewhere."""
    if sys.stdout.isatty():
        console().print(Markdown(plain(text)))
    else:
        print_text(text)
