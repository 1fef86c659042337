"""From the name a caller wrote to the backend that answers, through the view that confines the caller.

Pure look-up in one snapshot. Knows nothing of rights; a name outside the view does not exist here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, cast

from bridgehead.catalog import Entry, Snapshot, View
from bridgehead.core import Call, Method, Route
from bridgehead.core.errors import GroupNotFound, PromptNotFound, RequestInvalid, ResourceNotFound, ToolNotFound

_SHOWN = 128
"""Characters of a name that are repeated in an error and compared with others; what is longer is no name."""
_LIST_HINT = 'Call `guidance` with topic "groups" to see which tools there are.'


def find_route(call: Call, snapshot: Snapshot) -> Route:
    """Where the call goes.

    Raises:
        GroupNotFound: The group does not exist or is off.
        ToolNotFound: No such tool in the view; nor, alike, `PromptNotFound` and `ResourceNotFound`.
        RequestInvalid: A completion request refers to neither a prompt nor a resource.
    """
    view = snapshot.view(call.group)
    if view is None:
        raise GroupNotFound(
            f"No group {_shown(call.group or '')!r} is switched on.",
            hint=f"Switched on: {', '.join(snapshot.by_group) or 'none'}.",
        )
    match call.method:
        case Method.TOOL:
            entry = view.tools.get(call.target)
            if entry is None:
                raise _tool_not_found(call.target, view)
            return Route(entry.backend, entry.name, entry.original, entry.risk)
        case Method.PROMPT:
            return _prompt(call.target, view)
        case Method.COMPLETE:
            return _completion(call, view)
        case Method.RESOURCE | Method.SUBSCRIBE | Method.UNSUBSCRIBE:
            return _resource(call.target, view, snapshot)


def _prompt(name: str, view: View) -> Route:
    entry = view.prompts.get(name)
    if entry is None:
        hint = _near(name, view.prompts.values()) or "Ask for prompts/list to see which prompts there are."
        raise PromptNotFound(f"There is no prompt {_shown(name)!r}.", hint=hint)
    return Route(entry.backend, entry.name, entry.original)


def _completion(call: Call, view: View) -> Route:
    """The prompt or template whose argument is to be completed.

    MCP 2025-11-25, `completion/complete`: `ref` is a `ref/prompt` with a name or a `ref/resource` with a URI or
    template.
    """
    ref = call.arguments.get("ref")
    if isinstance(ref, Mapping):
        match cast("Mapping[str, Any]", ref):
            case {"type": "ref/prompt", "name": str(name)}:
                return _prompt(name, view)
            case {"type": "ref/resource", "uri": str(uri)}:
                listed = (entry for entry in view.templates if entry.exposed == uri)
                entry = next(listed, None) or view.resource(uri)
                if entry is None:
                    raise _resource_not_found(uri)
                return Route(entry.backend, entry.name, entry.original)
            case _:
                pass
    raise RequestInvalid(
        "The completion request does not say what it is for.",
        hint='Send "ref" as {"type": "ref/prompt", "name": …} or {"type": "ref/resource", "uri": …}.',
    )


def _resource(uri: str, view: View, snapshot: Snapshot) -> Route:
    entry = view.resource(uri)
    if entry is None:
        backend = _backend_of_unlisted(uri, view, snapshot)
        if backend is None:
            raise _resource_not_found(uri)
        return Route(backend, uri, {"uri": uri})
    if view.resources.get(uri) is entry:
        return Route(entry.backend, entry.name, entry.original)
    # Made by a template: the URI is the caller's own, less what the catalog put before the template to tell it from
    # another.
    qualifier = len(entry.exposed) - len(entry.name)
    return Route(entry.backend, uri[qualifier:], entry.original)


def _backend_of_unlisted(uri: str, view: View, snapshot: Snapshot) -> str | None:
    """The one backend that could know a URI that nobody lists, or None where that would be a guess."""
    able = [name for name in view.backends if _has_resources(snapshot, name)]
    if len(able) > 1:
        scheme = _scheme(uri)
        listed = (*view.resources.values(), *view.templates)
        holders = {entry.backend for entry in listed if scheme and _scheme(entry.name) == scheme}
        able = [name for name in able if name in holders]
    return able[0] if len(able) == 1 else None


def _has_resources(snapshot: Snapshot, backend: str) -> bool:
    listing = snapshot.listings.get(backend)
    return listing is not None and listing.capabilities.get("resources") is not None


def _scheme(uri: str) -> str:
    scheme, colon, _ = uri.partition(":")
    return scheme.lower() if colon else ""


def _tool_not_found(name: str, view: View) -> ToolNotFound:
    near = _near(name, view.tools.values())
    return ToolNotFound(
        f"There is no tool {_shown(name)!r}.",
        hint=f"{near} {_LIST_HINT}" if near else _LIST_HINT,
    )


def _resource_not_found(uri: str) -> ResourceNotFound:
    return ResourceNotFound(
        f"There is no resource {_shown(uri)!r}.", hint="Ask for resources/list to see which resources there are."
    )


def _near(name: str, entries: Iterable[Entry]) -> str | None:
    """A question after the visible names nearest to `name`, at most three; they are suggested, never run."""
    wanted = _folded(name[:_SHOWN])
    exposed: list[str] = []
    same: list[str] = []
    for entry in entries:
        exposed.append(entry.exposed)
        if wanted in (_folded(entry.name), _folded(entry.exposed)):
            same.append(entry.exposed)
    near = (same or difflib.get_close_matches(name[:_SHOWN], exposed, n=3, cutoff=0.6))[:3]
    return f"Did you mean {' or '.join(near)}?" if near else None


def _folded(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_").replace("/", "_")


def _shown(name: str) -> str:
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
