"""Which addresses may be connected to, and under which name. Pure: it resolves nothing and connects to nothing.

What the owner wrote is the owner's choice, so a host that is plainly private (an address, `localhost`, a name without a dot)
may lead to a private address. What it may never lead to are the places that hand out credentials to whoever asks from inside
(cloud metadata, link-local), nor may a public name lead inside: whoever controls that name would choose the target. The check
is of the address that is then connected to; a check of the name alone could be told something else a moment later.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

_METADATA = frozenset(
    map(
        ip_address,
        (
            "100.100.100.200",  # Alibaba Cloud
            "168.63.129.16",  # Azure's host agent
            "192.0.0.192",  # Oracle Cloud
            "fd20:ce::254",  # Google Cloud
        ),
    )
)
_METADATA_NETWORKS = (IPv6Network("fd00:ec2::/32"),)  # Amazon: 254 is the metadata, its neighbours are credentials
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")  # RFC 8215
_NAT64 = (IPv6Network("64:ff9b::/96"), _LOCAL_NAT64)  # RFC 6052
_COMPATIBLE = IPv6Network("::/96")  # RFC 4291, section 2.5.5.1
_NUMERIC = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}\.?", re.IGNORECASE)
_PRIVATE_ENDINGS = (
    ".localhost",  # RFC 6761
    ".local",  # RFC 6762
    ".internal",  # reserved by ICANN for private use
    ".home.arpa",  # RFC 8375
    ".lan",
    ".intranet",
    ".corp",
    ".home",
    ".private",
    ".ts.net",  # names of a tailnet, which lie in the shared address space
)


class Policy(Enum):
    """Who chose the host."""

    OWNER = auto()
    """The owner, in the configuration: private places are fine where the host says that it is one."""
    STRANGER = auto()
    """Somebody from outside: only public addresses will do, however they are written."""


@dataclass(frozen=True, slots=True)
class Refusal(Exception):
    """A host that is not connected to.

    Attributes:
        host: The host, as it was asked for.
        reason: Why, to stand behind "it".
        hint: What to write instead.
    """

    host: str
    reason: str
    hint: str

    def __str__(self) -> str:
        return f"{self.host} is not connected to: it {self.reason}"


def check_host(host: str, policy: Policy = Policy.OWNER) -> None:
    """Refuse a host that is an address and may not be connected to; names are for `check_addresses`.

    Args:
        host: The host of a URL, without brackets.
        policy: Who chose it.

    Raises:
        Refusal: It may not.
    """
    address = literal(host)
    if address is None:
        return
    if ":" not in host and str(address) != host:
        # Parsers disagree on these; what one takes for a name another takes for 169.254.169.254.
        what = forbidden(address)
        raise Refusal(host, what or f"is an odd way to write {address}", f"write the address as {address}.")
    _check(host, address, policy, is_private_host=True)


def check_addresses(host: str, addresses: Iterable[str], policy: Policy = Policy.OWNER) -> list[str]:
    """The addresses of a name that may be connected to.

    A private name may have some that are passed over. A public name with a single one that leads inside is refused altogether.

    Args:
        host: The name, as in the URL.
        addresses: What it resolved to.
        policy: Who chose the name.

    Raises:
        Refusal: None may be connected to, or the name is not what it seems.
    """
    good: list[str] = []
    refusal: Refusal | None = None
    private = is_private_name(host)
    for text in addresses:
        try:
            _check(host, ip_address(text.partition("%")[0]), policy, is_private_host=private)
        except Refusal as error:
            if not private:
                raise
            refusal = error
        else:
            good.append(text)
    if not good and refusal is not None:
        raise refusal
    return good


def _check(host: str, address: Address, policy: Policy, *, is_private_host: bool) -> None:
    reason = forbidden(address)
    if reason is not None:
        raise Refusal(host, reason, "name the server itself; such addresses are never an MCP server's.")
    if policy is Policy.OWNER and is_private_host:
        return
    inside = next((part for part in unwrapped(address) if not part.is_global), None)
    if inside is not None:
        where = f"leads to {inside}, which is inside a private network"
        hint = "if that is meant, write the address itself, or a name that is plainly private such as one ending in .internal."
        raise Refusal(host, where, hint)


def literal(host: str) -> Address | None:
    """The address that `host` is, in any spelling that a C library takes, or None for a name."""
    text = host.strip("[]").partition("%")[0]
    try:
        return ip_address(text)
    except ValueError:
        pass
    if _NUMERIC.fullmatch(text) is None:
        return None
    try:
        return IPv4Address(socket.inet_aton(text.rstrip(".")))
    except (OSError, ValueError):
        return None


def is_private_name(host: str) -> bool:
    """Whether a name says of itself that it is a private one: `localhost`, one without a dot, or a private ending."""
    name = host.rstrip(".").lower()
    return "." not in name or name.endswith(_PRIVATE_ENDINGS)


def forbidden(address: Address) -> str | None:
    """Why nobody may connect there, whoever chose it, or None."""
    for part in unwrapped(address):
        if part in _METADATA or any(
            part in network for network in _METADATA_NETWORKS if part.version == network.version
        ):
            return "is a cloud's metadata address"
        if part.is_link_local:
            return "is a link-local address, where clouds keep their metadata"
        if part.is_unspecified:
            return "is the unspecified address"
        if part.is_multicast or str(part) == "255.255.255.255":
            return "is a multicast or broadcast address"
    return None


def unwrapped(address: Address) -> list[Address]:
    """The address, and any other that is packed inside it: mapped, compatible, 6to4, Teredo and NAT64 forms.

    The mapped form stands for the address in it, and is not itself in the answer.
    """
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    parts: list[Address] = [address]
    if address.sixtofour is not None:
        parts.append(address.sixtofour)
    if address.teredo is not None:
        parts.extend(address.teredo)
    packed = any(address in network for network in _NAT64) or (address in _COMPATIBLE and int(address) > 1)
    if packed:
        parts.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    if address in _LOCAL_NAT64:
        # Under a prefix of 48 bits the address lies around eight bits that are nothing (RFC 6052, section 2.2).
        parts.append(IPv4Address((int(address) >> 64 & 0xFFFF) << 16 | (int(address) >> 40 & 0xFFFF)))
    return parts
