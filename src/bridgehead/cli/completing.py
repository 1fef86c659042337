"""Whether this process was started to complete a command line, and if so, by whom that is done."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence

COMPLETE_VARIABLE = "BRIDGEHEAD_COMPLETE"
"""Set by the scripts of `bridgehead completion`: to `next` where the word that is typed is a new one, still empty."""


def completions(words: Sequence[str]) -> str:
    """What `bridgehead.cli.complete` answers; it is imported here, because no other command line needs it."""
    typed = [*words, ""] if os.environ.get(COMPLETE_VARIABLE) == "next" else words
    return importlib.import_module("bridgehead.cli.complete").main(typed)
