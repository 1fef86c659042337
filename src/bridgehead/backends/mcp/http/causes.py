"""What can go wrong between the bridge and a server over HTTP, in sentences for whoever reads the status or the error.

A cause is shown to anyone. So it holds no address beyond an origin, none of the configured header values, and of a page that a
server sent only the first words, with what looks like a secret masked.

Every error has in its `details`:
    sent: Whether the server may have read the request, so that repeating it could run it twice.
    status: The HTTP status, where there was one.
    retry_after_s: How long the server wants to be left alone, where it said so.
    refused: Whether another way of beginning a session may still work.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from time import time
from typing import Any
from urllib.parse import urljoin, urlsplit

from bridgehead.core.errors import BackendFaulty, BackendTimeout, BackendUnavailable, BridgeError
from bridgehead.gate import redact_text

MAY_HAVE_RUN = "The call may or may not have run."
_LOOK_FIRST = "look at its effect before you repeat it."
_WORDS = 120
_SHORTEST_SECRET = 4
_LONGEST_WAIT_S = 600.0
_UNSPOKEN = re.compile(
    r"<(script|style|head)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)|<[^>]*>?", re.IGNORECASE | re.DOTALL
)
_TITLE = re.compile(r"<title[^>]*>(.*?)(?:</title|\Z)", re.IGNORECASE | re.DOTALL)
_KEY_LIKE = re.compile(r"(?=[^\s]*[0-9])(?=[^\s]*[A-Za-z])[A-Za-z0-9_+/=.-]{20,}")
_URL = re.compile(r"https?://[^\s'\"<>]+")
_UNRUN = frozenset({401, 403, 404, 405, 406, 413, 415, 429})
"""Statuses that say that the request went no further than the door."""
_REDIRECTS = range(300, 400)
_PASSING = frozenset({429, 502, 503, 504})
"""Statuses that say that the same request may work later."""


class Causes:
    """Words the failures of one backend."""

    def __init__(self, backend: str, url: str, secrets: Sequence[str] = ()) -> None:
        """Speak for `backend`.

        Args:
            backend: Its name.
            url: Its URL, which is never shown.
            secrets: Texts that are never shown, such as the values of its headers.
        """
        self._backend = backend
        self._url = url
        self._secrets = sorted((text for text in secrets if len(text) >= _SHORTEST_SECRET), key=len, reverse=True)

    def unreachable(self, reason: str, hint: str | None = None) -> BackendUnavailable:
        """No connection came about."""
        return BackendUnavailable(
            f"Backend {self._backend} cannot be reached: {self._cleaned(reason)}.",
            hint=hint or "check that the server runs, and its `url`.",
            details={"sent": False, "reached": False},
        )

    def broke_off(self, how: str) -> BackendUnavailable:
        """The connection ended before the answer was complete."""
        return BackendUnavailable(
            f"The connection to backend {self._backend} was lost: {how}. {MAY_HAVE_RUN}",
            hint=_LOOK_FIRST,
            details={"sent": True, "refused": True},
        )

    def lost_session(self) -> BackendUnavailable:
        """The server forgets its sessions as fast as they are opened."""
        return BackendUnavailable(
            f"Backend {self._backend} says that the session is over, and again after a new one was begun.",
            hint="the backend is being started again; if that goes on, the server does not keep its sessions.",
            details={"sent": False, "status": 404},
        )

    def timed_out(self, method: str, timeout_s: float) -> BackendTimeout:
        """No answer came in time."""
        return BackendTimeout(
            f"Backend {self._backend} did not answer {method} within {timeout_s:g} s and was told to stop.",
            hint="raise `timeout_s` of the backend, or `tool_timeouts_s` for this tool, if it needs longer.",
            details={"sent": True},
        )

    def too_large(self, limit: int) -> BackendFaulty:
        """The answer is larger than is let in."""
        return BackendFaulty(
            f"Backend {self._backend} answered with more than {limit} bytes, so its answer was dropped. {MAY_HAVE_RUN}",
            hint="ask for less, or raise `max_message_bytes` of the backend.",
            details={"sent": True, "limit": limit},
        )

    def no_answer(self, what: str) -> BackendFaulty:
        """What came is no answer to the request."""
        return BackendFaulty(
            f"Backend {self._backend} {what}. {MAY_HAVE_RUN}",
            hint="check that `url` names its MCP endpoint; otherwise this is a mistake in that server.",
            details={"sent": True, "refused": True},
        )

    def wrong_type(self, content_type: str, body: bytes) -> BackendFaulty:
        """The answer is neither JSON nor an event stream."""
        shown = content_type.partition(";")[0].strip()[:60] or "no content type"
        return self.no_answer(f"answered with {self._cleaned(shown)} where MCP has JSON or events{self._words(body)}")

    def status(self, status: int, headers: Mapping[str, str], body: bytes) -> BridgeError:
        """The server answered with a status that is no success, and with no JSON-RPC error."""
        if status in _REDIRECTS:
            return self._redirect(status, headers.get("location", ""))
        details: dict[str, Any] = {"sent": status not in _UNRUN, "status": status}
        words = self._words(body)
        if status == HTTPStatus.UNAUTHORIZED:
            return BackendUnavailable(
                f"Backend {self._backend} wants a sign-in, or does not take the token in `headers` (HTTP 401).",
                hint=f"put a valid token into `headers` of [backends.{self._backend}], such as "
                'Authorization = "Bearer ${TOKEN}".',
                details=details,
            )
        if status == HTTPStatus.FORBIDDEN:
            return BackendUnavailable(
                f"Backend {self._backend} refuses the token in `headers`, or this machine (HTTP 403){words}.",
                hint=f"check what the token in `headers` of [backends.{self._backend}] may do.",
                details=details,
            )
        if status in _PASSING:
            return self._passing(status, headers, details)
        if status == HTTPStatus.NOT_FOUND:
            what, hint = "has nothing at its address (HTTP 404)", "check the path in `url`; it is often /mcp or /sse."
        elif status == HTTPStatus.BAD_REQUEST:
            what, hint = (
                "cannot make sense of the request (HTTP 400)",
                "this is a mistake in that server, or not an MCP server.",
            )
        else:
            what, hint = f"answered with HTTP status {status}", "the log of that server has the reason."
        return BackendUnavailable(
            f"Backend {self._backend} {what}{words}.", hint=hint, details={**details, "refused": True}
        )

    def _passing(self, status: int, headers: Mapping[str, str], details: dict[str, Any]) -> BackendUnavailable:
        wait_s = retry_after_s(headers.get("retry-after"))
        what = {429: "is asked too often", 503: "is overloaded or being serviced"}.get(
            status, "is behind a gateway that fails"
        )
        again = f", and wants to be left alone for {wait_s:g} s" if wait_s else ""
        if wait_s is not None:
            details["retry_after_s"] = wait_s
        return BackendUnavailable(
            f"Backend {self._backend} {what} (HTTP {status}){again}.",
            hint=f"try again {f'after {wait_s:g} s' if wait_s else 'later'}.",
            details=details,
        )

    def _redirect(self, status: int, location: str) -> BackendUnavailable:
        """Redirects are never followed: they would carry the configured headers to wherever the server says."""
        details = {"sent": False, "status": status}
        here = urlsplit(self._url)
        try:
            there = urlsplit(urljoin(self._url, location))
            origin = f"{there.scheme}://{there.hostname}{f':{there.port}' if there.port else ''}"
        except ValueError:
            there, origin = None, ""
        if not location or there is None or not there.hostname:
            where, write = "without saying where to", "the server's own address"
        elif (there.scheme, there.netloc) == (here.scheme, here.netloc):
            slash = there.path.rstrip("/") == here.path.rstrip("/")
            added = "with" if there.path.endswith("/") else "without"
            where = f"to {f'the same path {added} a slash at its end' if slash else 'another path'} on {origin}"
            write = f"the path {added} a slash at its end" if slash else "the path that it points to"
        else:
            where, write = f"to {origin}", f"the address on {origin}, if it is that server that you mean,"
        return BackendUnavailable(
            f"Backend {self._backend} answered with a redirect {where} (HTTP {status}), and redirects are not followed.",
            hint=f"write {write} as `url` of [backends.{self._backend}].",
            details=details,
        )

    def _words(self, body: bytes) -> str:
        """The first words of a body that is for people, to stand behind a sentence."""
        text = body[:8_192].decode("utf-8", "replace")
        title = _TITLE.search(text)
        spoken = " ".join(html.unescape(_UNSPOKEN.sub(" ", text)).split())
        if not spoken and title is not None:
            spoken = " ".join(html.unescape(title[1]).split())
        shown = self._cleaned(spoken[: _WORDS * 4])
        shown = shown if len(shown) <= _WORDS else shown[:_WORDS].rsplit(" ", 1)[0] + "…"
        return f': "{shown}"' if shown else ""

    def _cleaned(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return _KEY_LIKE.sub("***", redact_text(_URL.sub("its address", text)))


def retry_after_s(value: str | None) -> float | None:
    """The seconds of a `Retry-After` header (RFC 9110, section 10.2.3), at most ten minutes; None where it says nothing."""
    if not value:
        return None
    if value.strip().isdigit():
        return min(float(value.strip()[:9]), _LONGEST_WAIT_S)
    try:
        return min(max(0.0, parsedate_to_datetime(value).timestamp() - time()), _LONGEST_WAIT_S)
    except (ValueError, OverflowError):
        return None
