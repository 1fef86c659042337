"""Which headers of a caller's request a call carries on. By default none; the configuration names the others."""

from __future__ import annotations

from collections.abc import Mapping


def forwarded_headers(headers: Mapping[str, str], wanted: frozenset[str]) -> dict[str, str]:
    """The headers whose names are in `wanted`, which are in lower case.

    A value that holds the caller's credential for this bridge is left out, under whatever name it comes.

    Args:
        headers: The request's headers; looked up without regard to case.
        wanted: The names.
    """
    credential = headers.get("authorization", "").strip().partition(" ")[2].strip()
    found = {name: value for name in wanted if (value := headers.get(name)) is not None}
    return {name: value for name, value in found.items() if not credential or credential not in value}
