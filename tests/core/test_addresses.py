"""What this machine is called."""

import pytest

from bridgehead.core.addresses import is_loopback


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]", "::ffff:127.0.0.1"])
def test_these_are_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["127.example.com", "localhost.example", "example.com", "0.0.0.0", "::", "::ffff:10.0.0.1", "192.0.2.1", ""],  # noqa: S104
)
def test_these_are_others_or_all(host: str) -> None:
    assert not is_loopback(host)
