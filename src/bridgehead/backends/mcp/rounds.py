"""What is sent for a call, and the rounds of input that a modern server may ask for.

Rounds are the multi round-trip requests of MCP 2026-07-28. A modern caller gets the interim result and answers it itself. A
caller of the older generation is asked here, by pushing each question to it, and the answers go back to the server in the next
round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as types

from bridgehead.backends.mcp.connection import Connection
from bridgehead.backends.mcp.in_flight import InFlight
from bridgehead.backends.mcp.sdk import OWN_META_KEYS
from bridgehead.core import Call, Channel, Era, Method, Outcome, Risk, as_mapping, new_id
from bridgehead.core.errors import BackendFaulty, BackendUnavailable

MOST_ROUNDS = 20
_STATE_ONLY_PAUSE_S = 0.2
_NOT_RELAYED_EXTENSIONS = frozenset({"io.modelcontextprotocol/tasks"})
"""Extensions whose further methods are not relayed, so that no server may answer by them."""


def params_of(call: Call) -> dict[str, Any]:
    """The request's parameters as the server knows them, without `_meta`."""
    name = call.route.name if call.route is not None else call.target
    match call.method:
        case Method.TOOL | Method.PROMPT:
            params: dict[str, Any] = {"name": name, "arguments": dict(call.arguments)}
        case Method.RESOURCE | Method.SUBSCRIBE | Method.UNSUBSCRIBE:
            params = {"uri": name}
        case Method.COMPLETE:
            ref = dict(call.arguments.get("ref", {}))
            ref["uri" if ref.get("type") == "ref/resource" else "name"] = name
            params = {**call.arguments, "ref": ref}
    if call.answers is not None:
        params["inputResponses"] = dict(call.answers)
    if call.state is not None:
        params["requestState"] = call.state
    return params


def request_meta(call: Call, channel: Channel, *, modern: bool) -> dict[str, Any]:
    """The request's `_meta`: what the caller sent, without what belongs to its own connection."""
    meta = {key: value for key, value in call.meta.items() if key not in OWN_META_KEYS} if call.meta else {}
    if modern:
        meta[types.CLIENT_CAPABILITIES_META_KEY] = declared(channel)
        if channel.log_level is not None:
            meta[types.LOG_LEVEL_META_KEY] = channel.log_level
    return meta


def declared(channel: Channel) -> Mapping[str, Any]:
    """The capabilities to declare for a request: the caller's own, and no more than can be relayed to it."""
    given = channel.capabilities
    if not given or (channel.era is Era.LEGACY and not channel.can_ask):
        return {}
    capabilities = {
        key: given[key]
        for key in ("sampling", "elicitation", "roots", "experimental")
        if isinstance(given.get(key), Mapping)
    }
    extensions = as_mapping(given.get("extensions"))
    kept = {key: value for key, value in extensions.items() if key not in _NOT_RELAYED_EXTENSIONS}
    if kept:
        capabilities["extensions"] = kept
    return capabilities


def _for_legacy(params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A question as the older generation has it, where a visit to a URL needs an id (MCP 2025-11-25, elicitation)."""
    if params is not None and params.get("mode") == "url" and "elicitationId" not in params:
        return {**params, "elicitationId": new_id("elicitation")}
    return params


def is_repeatable(call: Call) -> bool:
    """Whether sending the call twice does no more than sending it once, by what its method and its tool's definition say."""
    match call.method:
        case Method.TOOL:
            if call.route is None:
                return False
            annotations = as_mapping(call.route.definition.get("annotations"))
            return call.route.risk is Risk.READ or annotations.get("idempotentHint") is True
        case Method.RESOURCE | Method.PROMPT | Method.COMPLETE:
            return True
        case Method.SUBSCRIBE | Method.UNSUBSCRIBE:
            return False


async def answer_rounds(call: Call, connection: Connection, flight: InFlight, timeout_s: float) -> Outcome:
    """Send a call to a modern server and, for a caller of the older generation, answer its questions until it is done.

    Args:
        call: The call.
        connection: The session to send it over.
        flight: The call's first request; each round is one of its own like it.
        timeout_s: The time of each.

    Raises:
        BackendUnavailable: The server does not stop asking.
    """
    params = params_of(call)
    channel = flight.channel
    meta = request_meta(call, channel, modern=True)
    for _ in range(MOST_ROUNDS):
        outcome = await connection.run(call.method, params, flight=flight, timeout_s=timeout_s, meta=meta)
        flight = InFlight(channel, longest_s=flight.longest_s)
        if not outcome.needs_input or channel.era is Era.MODERN:
            return outcome
        questions = as_mapping(outcome.result.get("inputRequests"))
        answers: dict[str, Any] = {}
        if questions:
            for key, question in questions.items():
                asked = as_mapping(question)
                method, sent = asked.get("method"), asked.get("params", {})
                params_sent = as_mapping(sent)
                if not isinstance(method, str) or not isinstance(sent, Mapping):
                    raise BackendFaulty(
                        f"Backend {connection.name} asked for something that is no request.",
                        hint="this is a mistake in that server.",
                    )
                answers[key] = dict(await channel.ask(method, _for_legacy(params_sent) if "params" in asked else None))
        else:
            await anyio.sleep(_STATE_ONLY_PAUSE_S)
        params = {**params_of(call)}
        if answers:
            params["inputResponses"] = answers
        if outcome.result.get("requestState") is not None:
            params["requestState"] = outcome.result["requestState"]
    raise BackendUnavailable(
        f"Backend {connection.name} asked for input {MOST_ROUNDS} times without coming to a result.",
        hint="the call was given up; call with other arguments.",
    )
