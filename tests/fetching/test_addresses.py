"""No form of an address that is not public is connected to, and public ones are."""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_sdk.fetching.addresses import Network, is_allowed, parse_address

IPV4 = st.integers(0, 2**32 - 1).map(IPv4Address)
IPV6 = st.integers(0, 2**128 - 1).map(IPv6Address)
PRIVATE_4 = st.one_of(
    *(
        st.integers(int(network[0]), int(network[-1])).map(IPv4Address)
        for network in map(
            IPv4Network,
            ("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
             "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"),
        )
    )
)  # fmt: skip


def _carrying(address: IPv4Address) -> list[IPv6Address]:
    """The IPv6 addresses whose packets go to this one."""
    number = int(address)
    return [
        IPv6Address((0xFFFF << 32) | number),
        IPv6Address(int(IPv6Address("64:ff9b::")) | number),
        IPv6Address((0x2002 << 112) | (number << 80) | 1),
        IPv6Address((0x2001_0000 << 96) | (int(IPv4Address("8.8.8.8")) << 64) | (number ^ 0xFFFF_FFFF)),
        IPv6Address((0x2001_0000 << 96) | (number << 64) | (int(IPv4Address("8.8.8.8")) ^ 0xFFFF_FFFF)),
        IPv6Address((0x2A00_1450 << 96) | (0x5EFE << 32) | number),
        IPv6Address((0x2A00_1450 << 96) | (0x0200_5EFE << 32) | number),
    ]


@given(PRIVATE_4)
def test_what_is_not_public_stays_so_in_every_disguise(address: IPv4Address) -> None:
    assert not is_allowed(address)
    assert not any(map(is_allowed, _carrying(address)))


@given(IPV4)
def test_public_ones_are_those_that_the_registries_say(address: IPv4Address) -> None:
    # Where the standard library is too generous.
    generous = any(address in IPv4Network(one) for one in ("192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/4"))
    assert is_allowed(address) is (address.is_global and not generous)
    if is_allowed(address):
        assert all(map(is_allowed, _carrying(address)))


@given(IPV6)
def test_no_other_ipv6_address_is_public(address: IPv6Address) -> None:
    if is_allowed(address) and address not in IPv6Network("2002::/16"):
        assert address.is_global
        assert address in IPv6Network("2000::/3")


@pytest.mark.parametrize(
    "text",
    [
        "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::808:808",
        "100::1", "2001:db8::1", "2001:2::1", "2001:10::1", "3fff::1", "5f00::1", "fc00::1", "fd12::1",
        "fe80::1", "fec0::1", "ff02::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "192.0.0.192", "192.0.0.9",
        "169.254.169.254", "255.255.255.255", "0.0.0.0",  # noqa: S104
    ],
)  # fmt: skip
def test_known_ones_are_refused(text: str) -> None:
    assert not is_allowed(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "text", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101", "2a00:1450:4001::200e"]
)
def test_known_ones_are_let_through(text: str) -> None:
    assert is_allowed(ipaddress.ip_address(text))


def test_a_network_that_was_allowed_is_let_through_in_every_form() -> None:
    allowed: list[Network] = [IPv4Network("10.1.0.0/16"), IPv6Network("fd00::/8")]
    assert is_allowed(IPv4Address("10.1.2.3"), allowed)
    assert is_allowed(IPv6Address("::ffff:10.1.2.3"), allowed)
    assert is_allowed(IPv6Address("fd00::1"), allowed)
    assert not is_allowed(IPv4Address("10.2.0.1"), allowed)


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "0x7f.0.0.1", "2130706433", "fe80::1%eth0", "1.2.3.4 "]
)
def test_only_whole_addresses_are_addresses(text: str) -> None:
    assert parse_address(text) is None
