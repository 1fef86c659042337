"""From a request of one view to a call through the gate, and from its outcome to the result that the caller gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import mcp_types as types

from bridgehead.catalog import Catalog
from bridgehead.core import BridgeError, Call, Caller, CallId, Channel, Clock, Era, Method, as_mapping, new_id
from bridgehead.surfaces.mcp.failures import as_rpc_error, as_tool_result, is_for_the_model
from bridgehead.surfaces.mcp.forwarding import forwarded_headers
from bridgehead.surfaces.mcp.lists import SERVER_IDENTITY
from bridgehead.surfaces.mcp.ports import Gate, Instructions
from bridgehead.surfaces.mcp.sealing import Binding, Seal, digest

_CONNECTION_META = frozenset(
    {types.SERVER_INFO_META_KEY, types.PROTOCOL_VERSION_META_KEY, "io.modelcontextprotocol/subscriptionId"}
)
_NOTHING: Mapping[str, Any] = {}
_MODERN_KEYS = ("resultType", "ttlMs", "cacheScope")


@dataclass(frozen=True, slots=True)
class Inside:
    """What a surface may know of the inside of the bridge."""

    catalog: Catalog
    gate: Gate
    seal: Seal
    instructions: Instructions
    clock: Clock
    forwarded_headers: Callable[[], frozenset[str]] = frozenset
    """The names, in lower case, of the callers' headers that some backend wants."""


class Calls:
    """The calls that can be made of one view."""

    def __init__(self, inside: Inside, group: str | None) -> None:
        self._inside = inside
        self._group = group

    async def relay(
        self,
        method: Method,
        raw: Mapping[str, Any],
        caller: Caller,
        channel: Channel,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Run `tools/call`, `prompts/get`, `resources/read` or `completion/complete` with the request's parameters.

        `headers` are those of the request, where it came with any; the call carries on what some backend wants of them.

        Raises:
            MCPError: What went wrong is no tool's failure.
        """
        arguments: Mapping[str, Any]
        match method:
            case Method.TOOL | Method.PROMPT:
                target, arguments = raw["name"], raw.get("arguments") or _NOTHING
            case Method.COMPLETE:
                ref: Mapping[str, Any] = raw["ref"]
                target = ref.get("name") or ref.get("uri") or ""
                arguments = {key: raw[key] for key in ("ref", "argument", "context") if key in raw}
            case _:
                target, arguments = raw["uri"], _NOTHING
        call = self.call(method, target, arguments, caller=caller, channel=channel)
        if headers is not None:
            call.forwarded = self.forwarded(headers)
        return await self.run(call, raw)

    def forwarded(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """What the configuration has some backend get of a request's headers."""
        wanted = self._inside.forwarded_headers()
        return forwarded_headers(headers, wanted) if wanted else _NOTHING

    async def call_tool(
        self, raw: Mapping[str, Any], caller: Caller, channel: Channel, forwarded: Mapping[str, str]
    ) -> dict[str, Any]:
        """Run `tools/call` with parameters of which `name`, `arguments` and `_meta` are all there is.

        Raises:
            MCPError: What went wrong is no tool's failure.
        """
        call = Call(
            CallId(new_id("call")),
            caller,
            Method.TOOL,
            raw["name"],
            raw.get("arguments") or {},
            channel,
            "mcp",
            self._group,
            raw.get("_meta") or {},
            forwarded=forwarded,
        )
        return await self.run(call, {})

    @property
    def forwards(self) -> bool:
        """Whether some backend wants any of the callers' headers."""
        return bool(self._inside.forwarded_headers())

    def call(
        self, method: Method, target: str, arguments: Mapping[str, Any], *, caller: Caller, channel: Channel
    ) -> Call:
        """A call of this view."""
        return Call(
            id=CallId(new_id("call")),
            caller=caller,
            method=method,
            target=target,
            arguments=arguments,
            channel=channel,
            surface="mcp",
            group=self._group,
        )

    async def run(self, call: Call, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Run a call; `raw` are the request's parameters, of which `_meta` and a further round's answers are taken.

        Raises:
            MCPError: What went wrong is no tool's failure.
        """
        try:
            if raw:
                call = self._with_request(call, raw)
            outcome = await self._inside.gate.run(call)
        except BridgeError as error:
            if is_for_the_model(error, call.method):
                return as_tool_result(error)
            raise as_rpc_error(error, call.channel.era, call.target) from error
        result = _without_connection_meta(outcome.result)
        if outcome.needs_input:
            # Sealed also where the backend gave none, so that a retry is always bound to what it answers.
            state = result.get("requestState")
            sealable = state if isinstance(state, str) else None
            result["requestState"] = self._inside.seal.close(sealable, self._binding(call))
        return result

    def _with_request(self, call: Call, raw: Mapping[str, Any]) -> Call:
        meta = raw.get("_meta")
        if meta:
            call = replace(call, meta=dict(as_mapping(meta)))
        if "inputResponses" in raw:
            call = replace(call, answers=dict(as_mapping(raw["inputResponses"])))
        sealed = raw.get("requestState")
        if isinstance(sealed, str):
            call = replace(call, state=self._inside.seal.open(sealed, self._binding(call)))
        return call

    def _binding(self, call: Call) -> Binding:
        backend = self._backend_of(call.method, call.target)
        return Binding(backend, call.method, call.target, call.caller.id, call.group, digest(call.arguments))

    def _backend_of(self, method: Method, target: str) -> str:
        view = self._inside.catalog.snapshot.view(self._group)
        if view is None:
            return ""
        entry = view.resource(target) if method is Method.RESOURCE else None
        entry = entry or view.tools.get(target) or view.prompts.get(target)
        return entry.backend if entry is not None else ""


def enveloped(result: dict[str, Any], method: str, era: Era) -> dict[str, Any]:
    """The result with what its generation requires around it, and without what only the other one knows."""
    if era is Era.LEGACY:
        if not any(key in result for key in _MODERN_KEYS):
            return result
        return {key: value for key, value in result.items() if key not in _MODERN_KEYS}
    result.setdefault("resultType", "complete")
    if method == "resources/read":
        result.setdefault("ttlMs", 0)
        result["cacheScope"] = "private"
    result["_meta"] = {**(result.get("_meta") or {}), types.SERVER_INFO_META_KEY: SERVER_IDENTITY}
    return result


def _without_connection_meta(result: Mapping[str, Any]) -> dict[str, Any]:
    """The result without the `_meta` keys that belong to the backend's own connection."""
    relayed = dict(result)
    if "_meta" in relayed:
        kept = {key: value for key, value in as_mapping(relayed["_meta"]).items() if key not in _CONNECTION_META}
        if kept:
            relayed["_meta"] = kept
        else:
            del relayed["_meta"]
    return relayed
