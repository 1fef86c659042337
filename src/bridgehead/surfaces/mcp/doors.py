"""Which hosts and origins may come in: the defence against DNS rebinding (MCP, transports, security warning)."""

from __future__ import annotations

from urllib.parse import urlsplit

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Doors:
    """Host names that mean this bridge, and web origins that may talk to it."""

    def __init__(self, *, hosts: tuple[str, ...], origins: tuple[str, ...]) -> None:
        """Allow the loopback names always, and these hosts (with any port unless they name one) and origins besides."""
        self.change(hosts=hosts, origins=origins)

    def change(self, *, hosts: tuple[str, ...], origins: tuple[str, ...]) -> None:
        """Allow these from now on, in place of those before."""
        self._hosts = frozenset(host.lower() for host in (*_LOOPBACK, *hosts))
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def problem(self, host: str | None, origin: str | None) -> tuple[int, str] | None:
        """The HTTP status and a sentence for a request that may not come in, else None."""
        if host is None or not self._is_ours(host.lower()):
            return 421, "This bridge does not answer for that Host. hint: add it to `allowed_hosts` under [server]."
        if origin is not None and not self._is_welcome(origin.lower().rstrip("/")):
            return (
                403,
                "Pages of that Origin may not call this bridge. hint: add it to `allowed_origins` under [server].",
            )
        return None

    def _is_ours(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        return host in self._hosts or (port.isascii() and port.isdigit() and name in self._hosts)

    def _is_welcome(self, origin: str) -> bool:
        if origin in self._origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and self._is_ours(parts.netloc)
