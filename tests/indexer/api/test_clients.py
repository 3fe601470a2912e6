"""Who a client is, and what happens to one that asks too often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mycelium_indexer.api.clients import RateLimit, client_of
from mycelium_indexer.api.settings import is_loopback, parse_networks

from .ground import CONTRACT, NETWORK, anchors_of, fill, owner_number

if TYPE_CHECKING:
    from mycelium_indexer.store.base import IndexStore

OWNER = owner_number(1)
PROXIES = parse_networks(["10.0.0.0/8", "fd00::/8", "127.0.0.1"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.7", [], "203.0.113.7"),
        ("203.0.113.7", ["198.51.100.1"], "203.0.113.7"),  # says so itself: not believed
        ("10.1.2.3", [], "10.1.2.3"),
        ("10.1.2.3", ["198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["198.51.100.1, 203.0.113.7"], "203.0.113.7"),
        ("10.1.2.3", ["198.51.100.1", "203.0.113.7"], "203.0.113.7"),
        ("10.1.2.3", ["198.51.100.1, 10.9.9.9"], "198.51.100.1"),
        ("10.1.2.3", ["10.8.8.8, 10.9.9.9"], "10.8.8.8"),
        ("10.1.2.3", ["198.51.100.1, nonsense"], "10.1.2.3"),
        ("10.1.2.3", ["198.51.100.1, nonsense, 10.9.9.9"], "10.9.9.9"),
        ("10.1.2.3", [""], "10.1.2.3"),
        ("10.1.2.3", ["198.51.100.1,"], "10.1.2.3"),
        ("::ffff:10.1.2.3", ["::ffff:198.51.100.1"], "198.51.100.1"),
        ("fd00::1%eth0", ["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", [], "2001:db8:1:2::/64"),
        ("10.1.2.3", ["1.1.1.1," * 5000 + "198.51.100.1"], "198.51.100.1"),
        (None, ["198.51.100.1"], ""),
        ("/run/socket", [], ""),
    ],
)
def test_only_what_a_trusted_proxy_says_counts(peer: str | None, forwarded: list[str], client: str) -> None:
    assert client_of(peer, forwarded, PROXIES) == client


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104
        ("::", False),
        ("192.168.1.1", False),
        ("indexer.example", False),
        ("", False),
    ],
)
def test_who_can_connect(host: str, *, answer: bool) -> None:
    assert is_loopback(host) is answer


def test_a_minute_of_requests_at_once_and_then_one_after_the_other() -> None:
    now = [1000.0]
    limit = RateLimit(30, clock=lambda: now[0])
    assert [limit.take("a") for _ in range(30)] == [None] * 30
    assert limit.take("a") == 2
    assert limit.take("b") is None
    now[0] += 1.0
    assert limit.take("a") == 1
    now[0] += 1.0
    assert limit.take("a") is None
    assert limit.take("a") == 2
    now[0] += 60.0
    assert [limit.take("a") for _ in range(31)].count(None) == 30


def test_a_refusal_costs_nothing() -> None:
    now = [0.0]
    limit = RateLimit(1, clock=lambda: now[0])
    assert limit.take("a") is None
    assert {limit.take("a") for _ in range(100)} == {60}
    now[0] = 60.0
    assert limit.take("a") is None


def test_only_so_many_clients_are_remembered() -> None:
    limit = RateLimit(1, clock=lambda: 0.0, most_clients=3)
    assert [limit.take(client) for client in ("a", "b", "c", "a")] == [None, None, None, 60]
    assert limit.take("d") is None
    assert len(limit._due) == 3
    assert [limit.take(client) for client in ("c", "b", "d")] == [60, 60, 60]
    assert limit.take("a") is None  # the one that asked longest ago was forgotten


def test_a_client_that_asks_too_often(store: IndexStore, serve: Any) -> None:
    fill(store, anchors_of(OWNER, [b""]))
    api = serve(store, rate_limit=3)
    assert [api.get(f"/memory/{OWNER}").status for _ in range(3)] == [200] * 3
    refused = api.get(f"/memory/{OWNER}", Origin="https://elsewhere.example", X_Forwarded_For="198.51.100.1")
    assert (refused.status, refused.problem) == (429, "too-many-requests")
    assert 1 <= int(refused.headers["Retry-After"]) <= 20
    assert (refused.json["network"], refused.json["contract"]) == (NETWORK, CONTRACT)
    assert refused.headers["Access-Control-Allow-Origin"] == "*"
    assert {api.get(path).status for path in ("/nothing", "/metrics", "/openapi.json")} == {429}
    assert {api.get(path).status for path in ("/healthz", "/readyz")} == {200}


def test_clients_behind_a_trusted_proxy_are_told_apart(store: IndexStore, serve: Any) -> None:
    fill(store, anchors_of(OWNER, [b""]))
    api = serve(store, rate_limit=1, trusted_proxies=PROXIES)
    for client in ("198.51.100.1", "198.51.100.2"):
        answers = [api.get(f"/memory/{OWNER}", X_Forwarded_For=f"8.8.8.8, {client}").status for _ in range(2)]
        assert answers == [200, 429]
