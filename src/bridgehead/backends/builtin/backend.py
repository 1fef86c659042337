"""The built-in tools: `guidance` explains the others, `read_result` reads a long result on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bridgehead.backends.builtin.ports import ResultReader
from bridgehead.catalog import BUILTIN, BackendStatus, Definition, Listing, Snapshot
from bridgehead.core import BridgeError, Call, Outcome
from bridgehead.core.errors import GroupNotFound, ToolNotFound
from bridgehead.guidance import GUIDANCE_TOOL, READ_TOOL, render

DEFAULT_LENGTH = 50_000
MAX_LENGTH = 100_000

_READ_ONLY = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}

_TOOLS: tuple[Definition, ...] = (
    {
        "name": GUIDANCE_TOOL,
        "title": "Guidance on the tools here",
        "description": (
            "Explains what can be called through this bridge and how; changes nothing. Call it first when you are"
            " unsure which tool fits. Topics: 'overview' (what there is, how names are built, what is off or not well),"
            " 'groups' (every group with its tools), a group's name (its tools, a line each), 'tool' together with"
            " tool_name (one tool's parameters and a call to fill in), 'backends' (what each server says of itself)."
            " Answers in Markdown."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "topic": {
                    "type": "string",
                    "default": "overview",
                    "maxLength": 200,
                    "description": "'overview', 'groups', 'tool', 'backends' or the name of a group.",
                },
                "tool_name": {
                    "type": "string",
                    "maxLength": 200,
                    "description": "With topic 'tool': the tool's name exactly as it is listed.",
                },
            },
            "additionalProperties": False,
        },
        "annotations": {"title": "Guidance on the tools here", **_READ_ONLY},
    },
    {
        "name": READ_TOOL,
        "title": "Read a stored result on",
        "description": (
            "Reads the rest of a tool result that was too long to send at once. Such a result ends with a handle; give"
            " that handle here, with the offset named there. Each answer says how much is left and the next offset."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "handle": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 200,
                    "description": "The handle at the end of the shortened result.",
                },
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "default": 0,
                    "description": "The character to start at; 0 is the beginning of the whole result.",
                },
                "length": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_LENGTH,
                    "default": DEFAULT_LENGTH,
                    "description": "How many characters to read at most.",
                },
            },
            "required": ["handle"],
            "additionalProperties": False,
        },
        "annotations": {"title": "Read a stored result on", **_READ_ONLY},
    },
)


class BuiltinBackend:
    """Runs the bridge's own tools.

    Arguments have passed the tools' schemas in the gate; what is absent has its default.
    """

    name = BUILTIN

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        statuses: Callable[[], Mapping[str, BackendStatus]],
        results: ResultReader,
    ) -> None:
        self._snapshot = snapshot
        self._statuses = statuses
        self._results = results

    def listing(self) -> Listing:
        """What this backend offers; the same for as long as the process lives."""
        return Listing(tools=_TOOLS, capabilities={"tools": {}})

    async def run(self, call: Call) -> Outcome:
        """Run one of the built-in tools.

        Raises:
            ToolNotFound: The route names no built-in tool.
        """
        match call.route.name if call.route is not None else call.target:
            case "guidance":
                return self._guidance(call)
            case "read_result":
                return await self._read_result(call)
            case _:
                raise ToolNotFound(
                    f"The bridge has no tool {call.target!r} of its own.",
                    hint=f"{GUIDANCE_TOOL} names what can be called.",
                )

    def _guidance(self, call: Call) -> Outcome:
        snapshot = self._snapshot()
        view = snapshot.view(call.group)
        if view is None:
            raise GroupNotFound(f"The group {call.group!r} is not switched on.", hint="GET /groups names the groups.")
        tool_name = call.arguments.get("tool_name")
        try:
            page = render(
                str(call.arguments.get("topic", "overview")),
                view,
                snapshot,
                None if tool_name is None else str(tool_name),
                statuses=self._statuses(),
            )
        except BridgeError as error:
            # A topic or name that is not there is this tool's own failure, for the model to mend.
            return _failed(error.sentence())
        return _answered(page)

    async def _read_result(self, call: Call) -> Outcome:
        handle = str(call.arguments["handle"])
        offset = int(call.arguments.get("offset", 0))
        length = int(call.arguments.get("length", DEFAULT_LENGTH))
        found = await self._results.read(call.caller.id, handle, offset, length)
        if found is None:
            return _failed(
                "No stored result has that handle: it was mistyped, has expired or belongs to another caller."
                " hint: copy the handle exactly, or call the tool again that gave it."
            )
        text, total = found
        end = offset + len(text)
        if not text and total:
            return _failed(
                f"The offset {offset} is past the end: the result has {total} characters."
                " hint: read from a smaller offset."
            )
        left = total - end
        where = f"Characters {offset} to {end} of {total}."
        if left > 0:
            where += f" {left} are left; read on with {READ_TOOL}, the same handle and offset {end}."
        else:
            where += " This is the end."
        return _answered(text, where)


def _answered(*texts: str) -> Outcome:
    return Outcome(_result(texts))


def _failed(text: str) -> Outcome:
    return Outcome({**_result((text,)), "isError": True}, is_error=True)


def _result(texts: tuple[str, ...]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in texts]}
