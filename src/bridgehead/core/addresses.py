"""Which host names and addresses mean this machine and nothing else."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether the host is this machine and nothing else: `localhost`, or an address in 127.0.0.0/8 or ::1.

    An IPv4 address may be written as an IPv6 one (RFC 4291, section 2.5.5.2), as systems show callers of such sockets.
    """
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
