"""From an `Authorization` header to a caller."""

from __future__ import annotations

import hmac

from bridgehead.core import Caller, CallerId
from bridgehead.core.errors import Unauthenticated

LOCAL_OWNER = Caller(id=CallerId("local-owner"), name="local owner")


class Authenticator:
    """Knows the local token, and takes it from this machine only."""

    epoch = 0
    """The local token stays good for as long as the bridge runs."""

    def __init__(self, local_token: str) -> None:
        self._local_token = local_token.encode()

    def caller(self, authorization_header: str | None, *, peer_is_loopback: bool) -> Caller:
        """Who the credential belongs to (RFC 6750, section 2.1; the scheme is case-insensitive by RFC 9110, section 11.1).

        Raises:
            Unauthenticated: There is no credential, it is no bearer token, or nobody here issued it.
        """
        scheme, _, token = (authorization_header or "").strip().partition(" ")
        if not scheme:
            raise Unauthenticated(
                "This request carries no credential.",
                hint="Send `Authorization: Bearer TOKEN` with the token from the file `local-token` in the state directory.",
            )
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthenticated(
                "The Authorization header is not a bearer token.", hint="Send it as `Authorization: Bearer TOKEN`."
            )
        # Compared in constant time, and before the peer is looked at: how long the answer takes says nothing of the token.
        is_local_token = hmac.compare_digest(token.strip().encode(errors="surrogatepass"), self._local_token)
        if not peer_is_loopback:
            raise Unauthenticated(
                "The local token is good on this machine only.",
                hint="Call from the machine that the bridge runs on, over 127.0.0.1 or ::1.",
            )
        if not is_local_token:
            raise Unauthenticated(
                "Nobody here issued this token.",
                hint="Read the token again from the file `local-token` in the state directory of the running bridge.",
            )
        return LOCAL_OWNER
