"""The command line's way to a running bridge: plain GETs, and MCP 2026-07-28 requests that need no session.

The standard library's client, because it takes a fraction of the time of anything else to import, and one command makes
one or two requests.
"""

from __future__ import annotations

import base64
import http.client
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote, urlsplit

import orjson

from bridgehead import __version__
from bridgehead.cli.shapes import mapping, mappings
from bridgehead.cli.state import Target
from bridgehead.core.errors import (
    BridgeError,
    ConfirmationRequired,
    Forbidden,
    GroupNotFound,
    Kind,
    ProtocolFailure,
    ToolNotFound,
    Unauthenticated,
)

PROTOCOL = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bridgehead-cli", "version": __version__},
}
_MAX_PAGES = 1_000
_SILENCE_S = 40.0
"""How long a stream may be silent: more than twice the 15 s after which the bridge sends a comment."""
_HEADER_MISMATCH = -32020
_HEADER_SAFE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")

Answer = Mapping[str, Any]


class BridgeUnreachable(BridgeError):
    """Nothing listens at the bridge's address, or it does not answer in time."""

    kind = Kind.UNAVAILABLE
    code = "bridge_unreachable"


class BridgeAnswerInvalid(BridgeError):
    """Something listens there, but it does not speak as a bridge does."""

    kind = Kind.INTERNAL
    code = "invalid_answer"


class BridgeRefused(BridgeError):
    """The bridge refused with a code that this version does not know."""

    kind = Kind.INTERNAL
    code = "refused"


class HeadersMissing(BridgeRefused):
    """The tool wants some of its arguments repeated as headers (MCP 2026-07-28, `x-mcp-header`)."""

    code = "headers_missing"


class BridgeClient:
    """Talks to one bridge; every request has a connection of its own."""

    def __init__(self, target: Target, *, timeout_s: float = 30.0) -> None:
        self._target = target
        self._timeout_s = timeout_s

    def get(self, path: str) -> Answer:
        """The JSON object at that path.

        Raises:
            BridgeUnreachable: No bridge answers.
            BridgeError: It refused, or what answers is not a bridge.
        """
        status, kind, body = self._exchange("GET", path, None, {})
        if status >= HTTPStatus.BAD_REQUEST:
            raise self._refusal(status, self._parsed(body) if "json" in kind else None)
        parsed = self._parsed(body)
        if not isinstance(parsed, dict):
            raise self._not_a_bridge()
        return cast("Answer", parsed)

    def tools(self, group: str | None = None) -> list[Answer]:
        """Every tool the caller may see, every page."""
        found: list[Answer] = []
        params: dict[str, Any] = {}
        for _ in range(_MAX_PAGES):
            page = self._rpc("tools/list", params, group)
            found.extend(mappings(page.get("tools")))
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                return found
            params = {"cursor": cursor}
        raise BridgeAnswerInvalid(f"The tool list did not end after {_MAX_PAGES} pages.")

    def events(self, path: str) -> Iterator[tuple[str, Answer]]:
        """The events of the stream at that path, as their type and their JSON object, until the bridge ends it.

        Raises:
            BridgeUnreachable: No bridge answers, or it has gone without a word.
            BridgeError: It refused, or what answers is not a bridge.
        """
        with self._answering("GET", path, None, {"Accept": "text/event-stream"}, timeout_s=_SILENCE_S) as response:
            kind = _media_type(response)
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise self._refusal(response.status, self._parsed(response.read()) if "json" in kind else None)
            if kind != "text/event-stream":
                raise self._not_a_bridge()
            block: list[bytes] = []
            while line := response.readline():
                if line.strip():
                    block.append(line)
                    continue
                name, data = _event(block)
                block = []
                if data:
                    yield name, mapping(self._parsed(data))

    def call(self, name: str, arguments: Mapping[str, Any], group: str | None = None) -> Answer:
        """Call a tool and return its result, a failure of the tool's own (`isError`) included.

        Raises:
            ConfirmationRequired: The tool asks for something that the command line cannot answer.
        """
        params = {"name": name, "arguments": dict(arguments)}
        try:
            result = self._rpc("tools/call", params, group)
        except HeadersMissing:
            # Few tools want this, so the list that says which is only fetched for them.
            named = [tool for tool in self.tools(group) if tool.get("name") == name]
            schema: Answer = mapping(named[0].get("inputSchema")) if named else {}
            result = self._rpc("tools/call", params, group, _mirrored(schema, arguments))
        if result.get("resultType", "complete") != "complete":
            raise ConfirmationRequired(
                f"{name} asks for input before it goes on, which the command line cannot give.",
                hint="call it from a client that can show questions.",
            )
        return result

    def _rpc(
        self, method: str, params: Mapping[str, Any], group: str | None, mirrored: Mapping[str, str] | None = None
    ) -> Answer:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": PROTOCOL,
            "Mcp-Method": method,
            **(mirrored or {}),
        }
        if method == "tools/call":
            headers["Mcp-Name"] = _header_value(str(params["name"]))
        path = "/mcp" if group is None else f"/mcp/{quote(group, safe='')}"
        status, kind, content = self._exchange("POST", path, orjson.dumps(body), headers)
        messages = _events(content) if kind == "text/event-stream" else iter((content,))
        for message in messages:
            answer = self._parsed(message) if kind == "text/event-stream" or "json" in kind else None
            if not isinstance(answer, dict):
                break
            fields = cast("dict[str, Any]", answer)
            if isinstance(fields.get("result"), dict):
                return cast("Answer", fields["result"])
            if "error" in fields:
                raise self._refusal(status, fields)
        if status >= HTTPStatus.BAD_REQUEST:
            raise self._refusal(status, None)
        raise self._not_a_bridge()

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, str, bytes]:
        """Send one request; returns status, media type and body."""
        with self._answering(method, path, body, headers, timeout_s=self._timeout_s) as response:
            return response.status, _media_type(response), response.read()

    @contextmanager
    def _answering(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], *, timeout_s: float
    ) -> Generator[http.client.HTTPResponse]:
        """The response to one request, to be read in the context; what fails on the way is one of our errors."""
        parts = urlsplit(self._target.url)
        make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = make(parts.hostname or "", parts.port, timeout=timeout_s)
        sent = {"Accept": "application/json", **headers}
        if self._target.token:
            sent["Authorization"] = f"Bearer {self._target.token}"
        try:
            connection.request(method, f"{parts.path}{path}", body, sent)
            yield connection.getresponse()
        except TimeoutError as error:
            raise BridgeUnreachable(
                f"The bridge at {self._target.url} did not answer within {timeout_s:g} s; a call may still be running.",
                hint="bridgehead backend list shows how the backends are.",
            ) from error
        except OSError as error:
            raise self._unreachable() from error
        except http.client.IncompleteRead as error:
            raise BridgeUnreachable(
                f"The bridge at {self._target.url} ended in the middle of its answer.",
                hint="start it again with bridgehead serve.",
            ) from error
        except http.client.HTTPException as error:
            raise self._not_a_bridge() from error
        finally:
            connection.close()

    def _unreachable(self) -> BridgeUnreachable:
        state_dir = self._target.nothing_in
        if state_dir is None:
            return BridgeUnreachable(
                f"No bridge answers at {self._target.url}.",
                hint="start one with bridgehead serve, or name another with --url.",
            )
        return BridgeUnreachable(
            f"No bridge serves from {state_dir}, and none answers at {self._target.url}.",
            hint="start one with bridgehead serve, or name another's address with --url or its state with --state-dir.",
        )

    def _parsed(self, content: bytes) -> Any:
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError as error:
            raise self._not_a_bridge() from error

    def _not_a_bridge(self) -> BridgeAnswerInvalid:
        return BridgeAnswerInvalid(
            f"What answers at {self._target.url} does not speak as a bridge does.",
            hint="name the bridge's address with --url.",
        )

    def _refusal(self, status: int, body: Any) -> BridgeError:
        """The bridge's error, as the class that carries its code here."""
        error = mapping(mapping(body).get("error"))
        told = {**error, **mapping(error.get("data"))}
        message = error.get("message")
        if error.get("code") == _HEADER_MISMATCH:
            return HeadersMissing(str(message))
        hint = told.get("hint")
        text = message if isinstance(message, str) and message else f"The bridge answered with HTTP status {status}."
        if isinstance(hint, str):
            # Over JSON-RPC the message ends with the hint, for clients that show nothing else.
            text = text.removesuffix(f" hint: {hint}")
        known = _by_code().get(str(told.get("code"))) or _BY_STATUS.get(status, BridgeRefused)
        here = self._hint(known, hint if isinstance(hint, str) else None)
        return error_of({**told, "code": known.code, "message": text, "hint": here})

    def _hint(self, known: type[BridgeError], told: str | None) -> str | None:
        """The bridge's next step, as one that can be taken from a command line."""
        if known is Unauthenticated:
            return f"{self._target.token_from}; --state-dir or BRIDGEHEAD_TOKEN gives another."
        if known is GroupNotFound:
            return "bridgehead groups list names them all."
        if known is ToolNotFound:
            # A near name stays; what follows it speaks to agents.
            near = re.match(r"Did you mean [^?]+\?", told or "")
            return f"{near[0] if near else ''} bridgehead tools list names them all.".strip()
        return told


_BY_STATUS: Mapping[int, type[BridgeError]] = {401: Unauthenticated, 403: Forbidden, 409: ConfirmationRequired}


def error_of(told: Answer) -> BridgeError:
    """The error that the bridge describes with `code`, `message`, `hint` and `call_id`."""
    known = _by_code().get(str(told.get("code")), BridgeRefused)
    hint, call_id = told.get("hint"), told.get("call_id")
    error = known(str(told.get("message")), hint=hint if isinstance(hint, str) else None)
    error.call_id = call_id if isinstance(call_id, str) else None
    return error


def _by_code() -> dict[str, type[BridgeError]]:
    """Every error class that a code names; a backend's JSON-RPC error has no class that could be made from one."""
    return {known.code: known for known in BridgeError.__subclasses__() if known is not ProtocolFailure}


def _header_value(name: str) -> str:
    """`Mcp-Name` as it may stand in a header: anything but plain ASCII in base64 (MCP 2026-07-28, custom headers)."""
    if _HEADER_SAFE.fullmatch(name) and not name.startswith("=?base64?"):
        return name
    return f"=?base64?{base64.b64encode(name.encode()).decode('ascii')}?="


def _mirrored(schema: Answer, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The `Mcp-Param-*` headers for these arguments, by the schema's annotations, nested objects included."""
    headers: dict[str, str] = {}
    for name, part in mapping(schema.get("properties")).items():
        wanted, value = mapping(part).get("x-mcp-header"), arguments.get(name)
        if isinstance(wanted, str) and isinstance(value, str | int):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            headers[f"Mcp-Param-{wanted}"] = _header_value(text)
        elif isinstance(value, Mapping):
            headers |= _mirrored(mapping(part), mapping(value))
    return headers


def _media_type(response: http.client.HTTPResponse) -> str:
    return (response.getheader("Content-Type") or "").partition(";")[0].strip().lower()


def _event(lines: list[bytes]) -> tuple[str, bytes]:
    """Type and data of one event (HTML Living Standard, section 9.2.6)."""
    name, data = "message", list[bytes]()
    for line in lines:
        field, _, value = line.rstrip(b"\r\n").partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value.decode(errors="replace")
        elif field == b"data":
            data.append(value)
    return name, b"\n".join(data)


def _events(content: bytes) -> Iterator[bytes]:
    """The data of each event of an SSE body (HTML Living Standard, section 9.2.6)."""
    for block in re.split(rb"\r\n\r\n|\n\n|\r\r", content):
        data = [line[5:].removeprefix(b" ") for line in re.split(rb"\r\n|\n|\r", block) if line.startswith(b"data:")]
        if any(data):
            yield b"\n".join(data)


def tool_named(tools: list[Answer], name: str) -> Answer:
    """The tool of that name.

    Raises:
        ToolNotFound: There is none.
    """
    for tool in tools:
        if tool.get("name") == name:
            return tool
    near = get_close_matches(name, [str(tool.get("name")) for tool in tools], n=1)
    more = f"Did you mean {near[0]}? " if near else ""
    raise ToolNotFound(f"There is no tool {name!r}.", hint=f"{more}bridgehead tools list names them all.")
