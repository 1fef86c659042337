"""Results over the cap: kept whole on the shelf; the caller gets the head, how much there is, and how to read on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import orjson

from bridgehead.core import Call, Method, Outcome
from bridgehead.gate.limits import Limits
from bridgehead.gate.ports import Shelf

_HEAD_CHARS = 16_384
_BLOCK_BYTES = 64
"""What a text block takes in JSON besides its text, generously."""
_WORST_ESCAPE = 6
"""Bytes of JSON that one character takes at the worst (`\\u0000`)."""
_PLAIN_KEYS = frozenset({"content", "isError", "resultType"})


class Overflow:
    """Fits outcomes of tools and resources under the cap of their backend."""

    def __init__(self, shelf: Shelf, limits: Limits) -> None:
        self._shelf = shelf
        self._limits = limits

    async def fit(self, call: Call, outcome: Outcome) -> Outcome:
        """The outcome itself where it is small enough, else its head."""
        if call.method not in (Method.TOOL, Method.RESOURCE) or outcome.needs_input:
            return outcome
        cap = self._limits.cap(call.route.backend) if call.route is not None else None
        if cap is None or _is_surely_below(outcome.result, cap):
            return outcome
        whole = _json(outcome.result)
        if len(whole) <= cap:
            return outcome
        text = _joined_text(outcome.result)
        document = whole.decode(errors="replace") if text is None else text
        size = len(whole) if text is None else len(text.encode(errors="surrogatepass"))
        handle = await self._shelf.put(call.caller.id, document)
        head = document[: min(_HEAD_CHARS, cap)]
        return _head(call, outcome, head, _notice(outcome, document, head, size=size, handle=handle))


def _notice(outcome: Outcome, document: str, head: str, *, size: int, handle: str | None) -> str:
    dropped = " structuredContent was left out here." if "structuredContent" in outcome.result else ""
    what = "JSON of the result" if _joined_text(outcome.result) is None else "text"
    rest = (
        "The rest could not be kept. Call the tool again for less at a time."
        if handle is None
        else f'To read on, call tool `read_result` with {{"handle": "{handle}", "offset": {len(head)}}}.'
    )
    return (
        f"[This is the start of a result that is too large to send at once: {len(head)} of {len(document)} characters "
        f"of its {what} ({size} bytes in all).{dropped} {rest}]"
    )


def _head(call: Call, outcome: Outcome, head: str, notice: str) -> Outcome:
    if call.method is Method.RESOURCE:
        contents = [{"uri": call.target, "mimeType": "text/plain", "text": f"{head}\n\n{notice}"}]
        return Outcome({"contents": contents})
    # Two blocks, so that a reader can tell the bridge's word from the tool's.
    result: dict[str, Any] = {"content": [{"type": "text", "text": head}, {"type": "text", "text": notice}]}
    if "resultType" in outcome.result:
        result["resultType"] = outcome.result["resultType"]
    if outcome.is_error or "isError" in outcome.result:
        result["isError"] = outcome.is_error
    return Outcome(result, is_error=outcome.is_error)


def _is_surely_below(result: Mapping[str, Any], cap: int) -> bool:
    """Whether the result is plain text that fits even if every character had to be escaped; says nothing when false."""
    content = result.get("content")
    if not isinstance(content, list) or not _PLAIN_KEYS.issuperset(result):
        return False
    most = 128
    for block in cast("list[object]", content):
        if not isinstance(block, dict):
            return False
        part = cast("dict[str, object]", block)
        text = part.get("text")
        if len(part) != 2 or part.get("type") != "text" or not isinstance(text, str):  # noqa: PLR2004 – those two
            return False
        most += _BLOCK_BYTES + _WORST_ESCAPE * len(text)
    return most <= cap


def _joined_text(result: Mapping[str, Any]) -> str | None:
    """All of the result's text where it is nothing but text, else None."""
    blocks = result.get("content", result.get("contents"))
    if not isinstance(blocks, list) or not blocks:
        return None
    texts: list[str] = []
    for block in cast("list[object]", blocks):
        match block:
            case {"type": str(kind)} if kind != "text":
                return None
            case {"text": str(text)}:
                texts.append(text)
            case _:
                return None
    return "\n".join(texts)


def _json(result: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(result)
    except (TypeError, ValueError, RecursionError):
        # Lone surrogates and integers past 64 bits, which the standard library writes.
        return json.dumps(result, default=str).encode()
