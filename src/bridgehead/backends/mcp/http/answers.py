"""Which of the bytes that a server sent are the answer to a request, and what the others are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import mcp_types as types
import orjson

from bridgehead.core import as_mapping
from bridgehead.core.json import dumps

RequestId = int | str
_SESSION_WORDS = re.compile(r"\bsession\b|not initiali[sz]ed", re.IGNORECASE)
_SENTENCE = 500
"""Bytes up to which a body is a complaint, and not a page on which a word stands somewhere."""
_SESSION_CODES = frozenset({-32_000, -32_001, -32_600})
"""Codes under which servers complain of a session; there is no agreed one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request.

    Attributes:
        raw: The JSON-RPC message as the server wrote it.
        message: The same, parsed.
    """

    raw: bytes
    message: Mapping[str, Any]


def decoded(raw: bytes) -> Any:
    """The JSON of a message; NaN and the like are let in, since servers write them and only one answer is theirs.

    Raises:
        ValueError: It is no JSON.
        RecursionError: It is nested too deep to be read.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        if not raw.lstrip().startswith((b"{", b"[")):
            raise
        return json.loads(raw)


def sort(raw: bytes, request_id: RequestId) -> tuple[Answer | None, list[Mapping[str, Any]]]:
    """The answer to `request_id` among what a server sent at once, and the messages that are something else.

    One message, or a batch of them (MCP 2025-03-26). Answers to other requests are in neither: nobody asked here.

    Raises:
        ValueError: It is no JSON.
        RecursionError: It is nested too deep to be read.
    """
    content = decoded(raw)
    batch = cast("list[Any]", content) if isinstance(content, list) else [content]
    answer: Answer | None = None
    others: list[Mapping[str, Any]] = []
    for item in batch:
        message = as_mapping(item)
        if "method" in message:
            others.append(message)
        elif answer is None and ("result" in message or "error" in message):
            answer = _if_for(message, request_id, raw if item is content else None)
    return answer, others


def _if_for(message: Mapping[str, Any], request_id: RequestId, raw: bytes | None) -> Answer | None:
    """The message as the answer to `request_id`, if it is that.

    An error without an id is of a request that could not be read (JSON-RPC 2.0, section 5), and only one was sent.
    """
    own = message.get("id")
    if own is None and "error" in message:
        mended = {**message, "id": request_id}
        return Answer(dumps(mended), mended)
    if isinstance(own, bool) or not isinstance(own, int | str) or str(own) != str(request_id):
        return None
    return Answer(raw if raw is not None else dumps(message), message)


def is_session_complaint(answer: Answer | None, body: bytes) -> bool:
    """Whether a 400 says that the server does not know the session, so that it surely ran nothing."""
    if answer is None:
        return len(body) <= _SENTENCE and _SESSION_WORDS.search(body.decode("utf-8", "replace")) is not None
    error = as_mapping(answer.message.get("error"))
    return error.get("code") in _SESSION_CODES and _SESSION_WORDS.search(str(error.get("message"))) is not None


def as_rpc(message: Mapping[str, Any], request_id: RequestId | None = None) -> types.JSONRPCMessage:
    """The message for the SDK's session; an answer under the id of the request that it is for.

    Raises:
        ValueError: It is no JSON-RPC message.
    """
    if request_id is not None and "method" not in message:
        if "result" in message:
            # Results can be large and are relayed as they are; only the envelope matters here.
            return types.JSONRPCResponse.model_construct(jsonrpc="2.0", id=request_id, result=message["result"])
        message = {**message, "id": request_id}
    return types.jsonrpc_message_adapter.validate_python(message, by_name=False)
