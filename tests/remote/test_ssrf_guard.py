"""Which addresses lie inside, however they are written."""

from __future__ import annotations

import pytest

from skillruntime.remote.ssrf_guard import is_inside

CARRIERS = {
    "IPv4-compatible (RFC 4291, 2.5.5.1)": "::{}",
    "IPv4-mapped (RFC 4291, 2.5.5.2)": "::ffff:{}",
    "IPv4-translated (RFC 2765, 2.1)": "::ffff:0:{}",
    "NAT64 (RFC 6052)": "64:ff9b::{}",
}


@pytest.mark.parametrize("form", CARRIERS.values(), ids=CARRIERS)
@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.0.1"]
)
def test_an_ipv6_address_is_where_the_ipv4_address_is_that_it_carries(
    form: str, address: str
) -> None:
    """A resolver or a router may take any of these forms to the IPv4 address in it."""
    assert is_inside(form.format(address))
    assert not is_inside(form.format("8.8.8.8"))


def test_a_6to4_address_is_where_its_network_is() -> None:
    """RFC 3056: the 32 bits after the prefix are the IPv4 address of the router."""
    assert is_inside("2002:7f00:1::")
    assert is_inside("2002:0a01:0203::1")
    assert not is_inside("2002:808:808::1")


@pytest.mark.parametrize(
    "address", ["::", "::1", "fe80::1%eth0", "2001:0:1:2::3", "fc00::1"]
)
def test_special_addresses_of_ipv6_are_inside(address: str) -> None:
    """The unspecified address, loopback, link-local, Teredo and unique local
    addresses.
    """
    assert is_inside(address)
