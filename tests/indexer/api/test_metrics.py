"""What Prometheus is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from mycelium_indexer.values import LedgerRange
from mycelium_sdk.errors import StoreUnavailable

from .ground import CONTRACT, NETWORK, OTHER_CONTRACT, anchors_of, fill, owner_number, progress

if TYPE_CHECKING:
    from mycelium_indexer.store.base import IndexStore

    from .ground import Api

OWNER = owner_number(1)
PREFIX = "mycelium_indexer_"


def samples(api: Api) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Everything in the answer, parsed by Prometheus' own parser."""
    answer = api.get("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


def labels(contract: str = CONTRACT) -> frozenset[tuple[str, str]]:
    return frozenset({("network", NETWORK), ("contract", contract)})


def test_what_is_held_and_how_far_the_chain_was_followed(store: IndexStore, api: Api) -> None:
    made = anchors_of(OWNER, [b""] * 6)
    source = fill(store, [*made[:2], *made[4:]])
    fill(store, anchors_of(owner_number(2), [b""]))
    fill(store, [], contract=OTHER_CONTRACT)
    store.advance(source, progress(5100), after="at 5001", missed=LedgerRange(5002, 5090))
    found = samples(api)
    values = {name.removeprefix(PREFIX): value for (name, of), value in found.items() if of == labels()}
    assert values == {
        "owners": 2, "anchors": 5, "gaps": 1, "missed": 1, "set_aside": 0, "ledger": 5100,
        "latest_ledger": 5101, "lag_seconds": 7.5, "asked_seconds": 2.5,
    }  # fmt: skip
    assert found[PREFIX + "anchors", labels(OTHER_CONTRACT)] == 0
    assert found[PREFIX + "database_up", frozenset()] == 1


def test_requests_are_counted_by_route_and_not_by_path(store: IndexStore, api: Api) -> None:
    fill(store, anchors_of(OWNER, [b""]))
    for number in range(5):
        api.get(f"/memory/{owner_number(number)}")
        api.get(f"/nothing/{number}")
        api.get("/memory", method=f"METHOD{number}")
    name = PREFIX + "request_duration_seconds_count"
    counts = {
        (found["method"], found["route"], found["status"]): value
        for (what, of), value in samples(api).items()
        if what == name and (found := dict(of))
    }
    assert counts == {
        ("GET", "/memory/{owner}", "200"): 1,
        ("GET", "/memory/{owner}", "404"): 4,
        ("GET", "unmatched", "404"): 5,
        ("other", "/memory", "405"): 5,
    }


class Away:
    """A store that does not answer."""

    def __getattr__(self, name: str) -> Any:
        raise StoreUnavailable("away")


def test_a_database_that_does_not_answer_is_a_metric(serve: Any) -> None:
    found = samples(serve(Away()))
    assert found[PREFIX + "database_up", frozenset()] == 0
    assert not any(name == PREFIX + "owners" for name, _ in found)
