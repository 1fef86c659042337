"""How often Python looks for garbage that reference counts do not find.

A bridge makes nearly none, while what it holds for good (the catalog, compiled schemas, modules) is large: looking through all
of it takes a tenth of a second, in which every call waits.
"""

from __future__ import annotations

import gc

_YOUNG = 20_000
"""New containers before the youngest are looked through; Python's own 700 makes that one twentieth of all work under load."""
_OLDER = 50


def spare_what_stays() -> None:
    """Look through everything once, then never again at what is there now; and seldom at what is new."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _OLDER, _OLDER)
