"""Where connections may lead, by name and by address."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bridgehead.backends.mcp.connection import innermost
from bridgehead.backends.mcp.http import SharedPool
from bridgehead.backends.mcp.http.guard import Policy, Refusal, check_addresses, check_host
from bridgehead.core.errors import BackendUnavailable
from tests.hostile_http.client import connected
from tests.hostile_http.server import Server

METADATA = [
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "168.63.129.16",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "[fe80::1%eth0]",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1:a9fe:a9:fe00::",
    "64:ff9b:1::a9fe:a9fe",
    "0.0.0.0",  # noqa: S104 – refused
    "::",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "0xa9.254.0xa9fe",
    "169.254.169.254.",
]


@pytest.mark.parametrize("host", METADATA)
def test_places_that_hand_out_credentials_are_refused_in_every_spelling(host: str) -> None:
    with pytest.raises(Refusal):
        check_host(host)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.1.2.3", "192.168.0.7", "::1", "fd12::1", "93.184.216.34", "localhost", "a.b"]
)
def test_what_the_owner_wrote_is_the_owners_choice(host: str) -> None:
    check_host(host)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.1.2.3", "::1", "::ffff:10.0.0.1", "fd12::1", "100.64.0.1", "2002:a00:1::"]
)
def test_what_a_stranger_wrote_has_to_be_public(host: str) -> None:
    with pytest.raises(Refusal):
        check_host(host, Policy.STRANGER)
    check_host("93.184.216.34", Policy.STRANGER)


@pytest.mark.parametrize("host", ["0x7f000001", "2130706433", "127.1", "0177.0.0.1"])
def test_an_odd_spelling_of_a_private_address_is_named(host: str) -> None:
    with pytest.raises(Refusal, match=r"127\.0\.0\.1"):
        check_host(host)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "192.168.1.1", "::1", "fd12::1", "64:ff9b::a00:1", "100.64.0.1"]
)
def test_a_public_name_does_not_lead_inside(address: str) -> None:
    with pytest.raises(Refusal, match="inside a private network"):
        check_addresses("mcp.example.com", ["93.184.216.34", address])
    assert check_addresses("mcp.example.com", ["93.184.216.34"]) == ["93.184.216.34"]


@pytest.mark.parametrize(
    "name", ["localhost", "app.localhost", "nas", "nas.local", "mcp.internal", "box.lan", "x.ts.net", "LOCALHOST."]
)
def test_a_name_that_is_plainly_private_may_lead_inside(name: str) -> None:
    assert check_addresses(name, ["fe80::1%3", "10.0.0.1", "127.0.0.1"]) == ["10.0.0.1", "127.0.0.1"]
    with pytest.raises(Refusal):
        check_addresses(name, ["169.254.169.254"])
    with pytest.raises(Refusal):
        check_addresses(name, ["10.0.0.1"], Policy.STRANGER)


class Names:
    """A resolver that says what it is told, in turn."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[tuple[int, str]]:
        self.asked.append(host)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [(2, text) for text in answer]


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    names = Names(["127.0.0.1"])
    async with Server(modern=True).listening() as server:
        url = server.url.replace("127.0.0.1", "mcp.internal")
        async with connected(server, url=url, pool=SharedPool(names)) as client:
            assert "result" in await client.by_lane("ok")
    assert names.asked == ["mcp.internal"]
    assert server.requests[0].headers["host"] == f"mcp.internal:{server.port}"


@pytest.mark.parametrize(
    "url", ["http://mcp.example.com:{port}/mcp", "http://metadata.google.internal:{port}/", "http://0xa9fea9fe/"]
)
async def test_a_name_that_leads_where_it_may_not_is_never_connected_to(url: str) -> None:
    async with Server(modern=True).listening() as server:
        address = "127.0.0.1" if "example" in url else "169.254.169.254"
        with pytest.raises((BackendUnavailable, ExceptionGroup)) as caught:
            async with connected(server, url=url.format(port=server.port), pool=SharedPool(Names([address]))):
                pass
        assert not server.requests
    error = innermost(caught.value)
    assert isinstance(error, BackendUnavailable)
    assert error.details["sent"] is False
    assert error.hint


async def test_a_name_that_changes_its_mind_is_checked_again_for_each_connection() -> None:
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    async with Server(modern=True).listening() as server:

        async def last(request: object) -> None:
            await server.requests[-1].answer(server.requests[-1].result(), "200 OK", "Connection: close")
            server.requests[-1].writer.close()

        server.on["last"] = last
        url = server.url.replace("127.0.0.1", "mcp.internal")
        pool = SharedPool(names)
        async with connected(server, url=url, pool=pool) as client:
            await client.by_lane("last")
            pool.connections().connector.clear_dns_cache()
            with pytest.raises(BackendUnavailable, match="link-local"):
                await client.by_lane("ok")
    assert not server.seen("ok")
