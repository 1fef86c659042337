"""Reading JSON values whose shape nobody has promised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def as_mapping(value: object) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
