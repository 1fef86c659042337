"""The short way to a server: bytes in, bytes out, beside the session that everything else goes over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol


class Lane(Protocol):
    """Sends a request without models of it, on the connection of a session that has begun.

    Attributes:
        heard: Takes progress and log messages as they come, and says whether that was all they need.
    """

    heard: Callable[[str, Mapping[str, Any]], bool] | None

    async def request(
        self, method: str, params: bytes, *, headers: Sequence[tuple[str, str]] = (), timeout_s: float | None
    ) -> bytes | None:
        """The JSON-RPC answer as the server wrote it, an error response included; None: nothing was sent, use the session.

        What else the server says before it answers goes to `heard` and the session.

        Args:
            method: The JSON-RPC method.
            params: Its parameters, a JSON object.
            headers: Headers of this request alone. `MCP-Protocol-Version` and `Mcp-Method` are set here; `Mcp-Name` and
                `Mcp-Param-*` of the 2026-07-28 generation come with the request, encoded as the specification has it.
            timeout_s: How long to wait; None: until whoever waits is cancelled.

        Raises:
            BridgeError: There is no answer; `details["sent"]` says whether the server may have read the request.
        """
        ...
