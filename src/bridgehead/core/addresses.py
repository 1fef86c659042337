"""Which host names and addresses mean this machine and nothing else."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether the host is this machine and nothing else: `localhost`, or an address in 127.0.0.0/8 or ::1."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
