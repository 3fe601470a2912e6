"""Which network and contract an answer is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

import pytest

from mycelium_sdk.networks import TESTNET_PASSPHRASE

from .ground import CONTRACT, NETWORK, OTHER_CONTRACT, anchors_of, fill, owner_number

if TYPE_CHECKING:
    from mycelium_indexer.store.base import IndexStore

    from .ground import Api

OWNER = owner_number(1)
NOTHING = {"contract": None, "network": None, "as_of_ledger": None, "lag": None}


def about(answer: Any) -> tuple[Any, Any]:
    """The network and contract that an answer names."""
    return answer.json["network"], answer.json["contract"]


@pytest.fixture
def several(store: IndexStore) -> None:
    """Versions 1, 2 and 3 under three sources."""
    made = anchors_of(OWNER, [b"", b"", b""])
    fill(store, made[:1])
    fill(store, made[:2], contract=OTHER_CONTRACT)
    fill(store, made, network=TESTNET_PASSPHRASE)


def test_what_a_chain_was_before_does_not_count(store: IndexStore, serve: Any) -> None:
    source = fill(store, anchors_of(OWNER, [b"", b""]))
    store.start_anew(source)
    fill(store, anchors_of(OWNER, [b""]))
    assert serve(store, network=None, contract=None).get(f"/memory/{OWNER}").json["version"] == 1


NAMED = [
    ("", 1, (NETWORK, CONTRACT)),
    (f"?contract={OTHER_CONTRACT}", 2, (NETWORK, OTHER_CONTRACT)),
    ("?network=testnet", 3, (TESTNET_PASSPHRASE, CONTRACT)),
    (f"?network={quote(TESTNET_PASSPHRASE)}&contract={CONTRACT}", 3, (TESTNET_PASSPHRASE, CONTRACT)),
    (f"?network={quote_plus(TESTNET_PASSPHRASE)}", 3, (TESTNET_PASSPHRASE, CONTRACT)),
]


@pytest.mark.usefixtures("several")
def test_a_request_may_name_its_source(api: Api) -> None:
    for path in (f"/memory/{OWNER}", f"/memory/{OWNER}/history", "/memory"):
        for query, version, source in NAMED:
            answer = api.get(path + query)
            item = answer.json["items"][0] if "items" in answer.json else answer.json
            assert (item["version"], about(answer)) == (version, source)


@pytest.mark.usefixtures("several")
@pytest.mark.parametrize("query", [f"network=testnet&contract={OTHER_CONTRACT}", "network=mainnet"])
def test_a_source_that_is_not_followed(api: Api, query: str) -> None:
    answer = api.get(f"/memory/{OWNER}?{query}")
    assert (answer.status, answer.problem) == (404, "unknown-source")
    assert about(answer) == (None, None)


def test_without_a_default_the_only_source_is_meant(store: IndexStore, serve: Any) -> None:
    made = anchors_of(OWNER, [b"", b""])
    api = serve(store, network=None, contract=None)
    assert api.get(f"/memory/{OWNER}").problem == "nothing-ingested"
    fill(store, made)
    assert about(api.get(f"/memory/{OWNER}")) == (NETWORK, CONTRACT)
    fill(store, made[:1], contract=OTHER_CONTRACT)
    ambiguous = api.get(f"/memory/{OWNER}")
    assert (ambiguous.status, ambiguous.problem) == (422, "ambiguous-source")
    assert about(api.get(f"/memory/{OWNER}?contract={CONTRACT}")) == (NETWORK, CONTRACT)


def test_before_the_first_page_nobody_is_unknown(store: IndexStore, api: Api) -> None:
    """An index that has not looked cannot say that somebody never anchored."""
    for prepare in (lambda: None, lambda: store.source(NETWORK, CONTRACT, "")):
        prepare()
        for path in (f"/memory/{OWNER}", f"/memory/{OWNER}/history", "/memory", "/readyz"):
            answer = api.get(path)
            assert (answer.status, answer.problem) == (503, "nothing-ingested")
            assert int(answer.headers["Retry-After"]) > 0
            assert {key: answer.json[key] for key in NOTHING} == NOTHING
    assert api.get("/healthz").json == {"status": "ok", **NOTHING}
    fill(store, [])
    assert api.get("/readyz").status == 200


def test_a_chain_that_started_anew_is_kept_apart(store: IndexStore, api: Api) -> None:
    source = fill(store, anchors_of(OWNER, [b"", b""]))
    cursor = api.get(f"/memory/{OWNER}/history?limit=1").json["next"]
    store.start_anew(source)
    assert api.get(f"/memory/{OWNER}").problem == "nothing-ingested"
    fill(store, [])
    assert api.get(f"/memory/{OWNER}").problem == "unknown-owner"
    assert api.get(f"/memory/{OWNER}/history?cursor={cursor}").problem == "malformed-cursor"


MALFORMED = [
    "contract=",
    f"contract={owner_number(1)}",
    f"contract={CONTRACT.lower()}",
    "contract=%27%20OR%201%3D1",
    "network=",
    f"network={'n' * 201}",
    "network=a%00b",
    "network=%ff",
    f"contarct={CONTRACT}",
    f"contract={CONTRACT}&contract={CONTRACT}",
    "limit=0",
    "limit=201",
    "limit=-1",
    "limit=1.5",
    "limit=",
    "limit=%D9%A3",
    "limit=10&limit=20",
    "cursor=&limit=1",
    "=1",
    "limit",
    "&".join(f"a{number}=1" for number in range(40)),
]


def test_malformed_parameters(store: IndexStore, api: Api) -> None:
    fill(store, [])
    for query in MALFORMED:
        answer = api.get(f"/memory?{query}")
        assert (query, answer.status) == (query, 422)
        assert answer.problem in {"malformed-parameter", "malformed-cursor"}
        assert set(NOTHING) <= set(answer.json)
    assert api.get("/memory?limit=200&network=standalone").status == 200


def test_parameters_that_a_resource_has_not(store: IndexStore, api: Api) -> None:
    fill(store, anchors_of(OWNER, [b""]))
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", f"/memory/{OWNER}"):
        assert api.get(f"{path}?limit=1").problem == "malformed-parameter"
