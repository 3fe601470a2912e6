"""One strict reading of every address, and no other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_sdk.errors import UntrustedSource
from mycelium_sdk.fetching import FetchPolicy
from mycelium_sdk.fetching.urls import follow, parse_https
from mycelium_sdk.verdicts import Verdict

ANY_PORT = FetchPolicy(ports=None)


@pytest.mark.parametrize(
    ("url", "host", "port", "request_", "authority"),
    [
        ("https://example.org/a.json", "example.org", 443, "/a.json", "example.org"),
        ("HTTPS://Example.ORG", "example.org", 443, "/", "Example.ORG"),
        ("https://example.org.:443/a?b=c#d", "example.org", 443, "/a?b=c", "example.org."),
        ("https://[2606:4700::1]:8443/x", "2606:4700::1", 8443, "/x", "[2606:4700::1]:8443"),
        ("https://example.org:/x", "example.org", 443, "/x", "example.org"),
        ("https://1.2.3.4?q", "1.2.3.4", 443, "/?q", "1.2.3.4"),
    ],
)
def test_what_an_address_names(url: str, host: str, port: int, request_: str, authority: str) -> None:
    target = parse_https(url, ANY_PORT)
    assert (target.host, target.port, target.request, target.authority) == (host, port, request_, authority)


@pytest.mark.parametrize(
    "url",
    [
        "", "/etc/passwd", "example.org/a", "//example.org/a", "http://example.org/a", "file:///etc/passwd",
        "FILE:///etc/passwd", "data:,x", "ftp://example.org", "gopher://example.org", "jar:https://example.org",
        "https:", "https://", "https:///a", "https:example.org", "https://user@example.org",
        "https://user:pw@example.org", "https://example.org@evil.example", "https://example.org\\@evil.example",
        "https://exa mple.org", "https://example.org/\r\nX: y", "https://example.org/\x00", "https://exämple.org",
        "https://[::1", "https://::1/", "https://[fe80::1%25eth0]/", "https://[v1.x]/", "https://example.org:99999",
        "https://example.org:-1", "https://example.org:x", "https://%31%32%37.0.0.1/", "https://-a.example",
        "https://example.org/" + "a" * 9000, "x" * 100 + "://example.org",
    ],
)  # fmt: skip
def test_everything_else_is_refused(url: str) -> None:
    with pytest.raises(UntrustedSource) as caught:
        parse_https(url, ANY_PORT)
    assert caught.value.verdict is Verdict.UNTRUSTED_SOURCE
    assert len(caught.value.message) < 200


@given(st.text(max_size=60))
def test_no_text_at_all_does_more_than_be_refused(text: str) -> None:
    for url in (text, f"https://{text}", f"https://example.org/{text}"):
        try:
            target = parse_https(url, ANY_PORT)
        except UntrustedSource:
            continue
        assert target.host.isascii()
        assert not set(target.request + target.authority) & set(" \r\n\t\0")


def test_strangers_are_fetched_from_the_usual_port_only() -> None:
    assert parse_https("https://example.org/", FetchPolicy()).port == 443
    with pytest.raises(UntrustedSource, match="port 8443"):
        parse_https("https://example.org:8443/", FetchPolicy())
    assert parse_https("https://example.org:8443/", FetchPolicy(ports=(8443,))).port == 8443
    assert parse_https("https://example.org:8443/", FetchPolicy.for_own()).port == 8443


def test_a_redirect_is_read_as_strictly() -> None:
    start = parse_https("https://example.org/a/b", FetchPolicy())
    assert follow(start, "../c?d", FetchPolicy()).url == "https://example.org/c?d"
    assert follow(start, "//other.example/x", FetchPolicy()).host == "other.example"
    for location in (
        "http://example.org/",
        "file:///etc/passwd",
        "https://u@example.org/",
        "https://e.org:1/",
    ):
        with pytest.raises(UntrustedSource):
            follow(start, location, FetchPolicy())
