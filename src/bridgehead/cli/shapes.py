"""Reading JSON whose shape nobody has promised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is a JSON object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects in the value where it is a JSON array, else none."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [mapping(item) for item in items if isinstance(item, dict)]
