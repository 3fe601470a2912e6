"""Answers of every wrong shape: an error of this package's tree, and never a final one for what was taken."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import StrKey

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.errors import MyceliumError, Unsettled
from mycelium_sdk.retry import RetryPolicy
from tests.chain.conftest import PASSPHRASE, SIGNER, URL, FakeClock, FakeServer, result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stellar_sdk.client.response import Response

    from tests.chain.conftest import Reply

WORK = operations.invoke(StrKey.encode_contract(bytes(range(32))), "set_anchor", [])
GONE = object()
VALUES: tuple[object, ...] = (
    GONE, None, [], {}, [None], [{}], "", "AAAA", "x", "\ud800", -1, 0, 2**63, 10**30, True, 1.5,
)  # fmt: skip
METHODS = [
    "getNetwork", "getLatestLedger", "getLedgerEntries", "simulateTransaction", "sendTransaction",
    "getTransaction",
]  # fmt: skip


def paths(value: object, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each part of an answer."""
    yield before
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from paths(part, (*before, key))


def changed(answer: object, path: tuple[Any, ...], value: object) -> object:
    if not path:
        return None if value is GONE else value
    made = copy.deepcopy(answer)
    part: Any = made
    for key in path[:-1]:
        part = part[key]
    if value is GONE:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return made


def altered(method: str, path: tuple[Any, ...], value: object) -> Reply:
    def answer(server: FakeServer, params: dict[str, Any]) -> Response:
        honest = json.loads(server.honest(method, params).text)["result"]
        return result(changed(honest, path, value))

    return answer


def submit(method: str, alter: list[Reply]) -> tuple[FakeServer, str]:
    """Submit past a server that alters some answers; the server, and how it came out."""
    clock = FakeClock()
    server = FakeServer(clock)
    server.script[method] = list(alter)
    chain = RpcChain(URL, PASSPHRASE, client=server, policy=RetryPolicy(pace=clock.pace()))
    try:
        receipt = chain.submit(WORK, SIGNER)
    except Unsettled as error:
        return server, f"unsettled {error.hash in server.sent}"
    except MyceliumError:
        return server, "failed"
    assert list(server.taken) == [receipt.hash]
    return server, "done"


def shapes_of(method: str) -> list[tuple[Any, ...]]:
    """The parts of an honest answer to the method."""
    server = FakeServer(FakeClock())
    seen: list[Any] = []

    def watch(answering: FakeServer, params: dict[str, Any]) -> Response:
        honest = answering.honest(method, params)
        seen.append(json.loads(honest.text)["result"])
        return honest

    server.script[method] = [watch]
    clock = server.clock
    RpcChain(URL, PASSPHRASE, client=server, policy=RetryPolicy(pace=clock.pace())).submit(WORK, SIGNER)
    return list(paths(seen[0]))


@pytest.mark.parametrize("repeated", [1, 1_000], ids=["once", "always"])
@pytest.mark.parametrize("method", METHODS)
def test_no_shape_of_an_answer_makes_a_false_end(method: str, repeated: int) -> None:
    outcomes = set()
    for path in shapes_of(method):
        for value in VALUES:
            server, outcome = submit(method, [altered(method, path, value)] * repeated)
            outcomes.add(outcome)
            where = (method, path, value)
            assert len(server.taken) <= 1, where
            assert len(set(server.sent)) <= 1, where
            assert not (outcome == "failed" and server.taken), where
            assert outcome != "unsettled False", where
    assert "done" in outcomes, "some parts of an answer do not matter"
    if method != "sendTransaction":  # whatever that one says, the ledger tells
        assert len(outcomes) > 1, "and some do"
