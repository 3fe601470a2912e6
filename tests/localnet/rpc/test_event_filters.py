"""Event filters and ids by themselves: what passes, compared with a second, plainer reading of the rules."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from stellar_sdk import StrKey, scval

from mycelium_localnet.rows import EventRow
from mycelium_localnet.rpc.event_filters import read_filters
from mycelium_localnet.rpc.faults import RpcFault
from mycelium_localnet.rpc.pages import event_id, parse_event_id, split_total_order_id, total_order_id
from mycelium_localnet.rpc.params import Params

CONTRACTS = [StrKey.encode_contract(bytes([number]) * 32) for number in range(3)]
TOPICS = [scval.to_uint32(number).to_xdr_bytes() for number in range(3)]
TOPIC_TEXTS = [scval.to_uint32(number).to_xdr() for number in range(3)]


def event(topics: list[int], contract: int | None = 0, kind: Any = "contract") -> EventRow:
    return EventRow(
        ledger=7,
        tx_index=1,
        op_index=0,
        event_index=0,
        close_time=0,
        tx_hash=bytes(32),
        type=kind,
        contract_id=None if contract is None else CONTRACTS[contract],
        topics=tuple(TOPICS[number] for number in topics),
        value=b"",
        in_successful_call=True,
        transaction_order=1,
    )


def passes(filters: list[dict[str, Any]], row: EventRow) -> bool:
    return read_filters(Params({"filters": filters})).matches(row)


def topics(*segments: int | str) -> dict[str, Any]:
    return {"topics": [[TOPIC_TEXTS[one] if isinstance(one, int) else one for one in segments]]}


@pytest.mark.parametrize(
    ("segments", "wanted", "expected"),
    [
        ((0,), [0], True),
        ((0,), [1], False),
        ((0,), [], False),
        ((0,), [0, 1], False),
        (("*",), [2], True),
        (("*",), [], False),
        (("*",), [0, 1], False),
        (("**",), [], True),
        (("**",), [0, 1, 2, 0], True),
        ((0, "**"), [0], True),
        ((0, "**"), [0, 1, 2], True),
        ((0, "**"), [1, 0], False),
        ((0, "**"), [], False),
        (("*", 1), [0, 1], True),
        (("*", 1), [0, 2], False),
        (("*", "*", "**"), [0], False),
        (("*", "*", "**"), [0, 1], True),
        (("*", "*", "*", "*"), [0, 1, 2, 0], True),
        (("*", "*", "*", "*", "**"), [0, 1, 2, 0], True),
        (("*", "*", "*", "*", "**"), [0, 1, 2], False),
    ],
)
def test_topics(segments: tuple[int | str, ...], wanted: list[int], expected: bool) -> None:
    assert passes([topics(*segments)], event(wanted)) is expected


def test_filters_or_fields_and() -> None:
    row = event([0], contract=1, kind="contract")
    assert passes([], row)
    assert passes([{}], row)
    assert passes([{"contractIds": [CONTRACTS[0], CONTRACTS[1]]}], row)
    assert not passes([{"contractIds": [CONTRACTS[0]]}], row)
    assert not passes([{"contractIds": [CONTRACTS[1]]} | topics(1)], row)
    assert not passes([{"contractIds": [CONTRACTS[1]], "type": "system"}], row)
    assert passes([{"contractIds": [CONTRACTS[0]]}, topics(0)], row)
    assert passes([{"type": "system"}, {"type": "contract"}], row)
    assert passes([{"type": "system,contract"}], row)
    assert passes([{"topics": [[TOPIC_TEXTS[2]], [TOPIC_TEXTS[0]]]}], row)


def test_an_event_of_no_contract_passes_no_contract_filter() -> None:
    assert not passes([{"contractIds": CONTRACTS}], event([0], contract=None, kind="system"))
    assert passes([topics(0)], event([0], contract=None, kind="system"))


def test_the_contracts_to_look_for() -> None:
    def wanted(*filters: dict[str, Any]) -> list[str]:
        return read_filters(Params({"filters": list(filters)})).contract_ids()

    first, second = {"contractIds": [CONTRACTS[0]]}, {"contractIds": [CONTRACTS[1], CONTRACTS[0]]}
    assert wanted() == []
    assert wanted({}) == []
    assert wanted(first) == [CONTRACTS[0]]
    assert wanted(first, second) == sorted(CONTRACTS[:2])
    assert wanted(first, {}) == []


def oracle(filters: list[dict[str, Any]], row: EventRow) -> bool:
    """The rules read a second time, topic by topic, without any preparation."""

    def topic_passes(segments: list[str], found: list[str]) -> bool:
        if not segments:
            return not found
        if segments == ["**"]:
            return True
        if not found:
            return False
        return segments[0] in ("*", found[0]) and topic_passes(segments[1:], found[1:])

    texts = [TOPIC_TEXTS[TOPICS.index(topic)] for topic in row.topics]
    for one in filters:
        ok = not one.get("type") or row.type in one["type"].split(",")
        ok = ok and (not one.get("contractIds") or row.contract_id in one["contractIds"])
        if ok and (not one.get("topics") or any(topic_passes(topic, texts) for topic in one["topics"])):
            return True
    return not filters


SEGMENTS = st.lists(st.sampled_from(["*", *TOPIC_TEXTS]), max_size=4)
TOPIC_FILTERS = (
    st.tuples(SEGMENTS, st.sampled_from([[], ["**"]])).map(lambda pair: pair[0] + pair[1]).filter(bool)
)
FILTERS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from([None, "", "contract", "system", "system,contract"]),
            "contractIds": st.none() | st.lists(st.sampled_from(CONTRACTS), max_size=3),
            "topics": st.none() | st.lists(TOPIC_FILTERS, max_size=5),
        },
    ),
    max_size=5,
)
EVENTS = st.builds(
    event,
    st.lists(st.integers(0, 2), max_size=4),
    st.none() | st.integers(0, 2),
    st.sampled_from(["contract", "system"]),
)


@given(filters=FILTERS, row=EVENTS)
def test_any_filters_agree_with_the_plain_reading(filters: list[dict[str, Any]], row: EventRow) -> None:
    assert passes(filters, row) == oracle(filters, row)
    wanted = read_filters(Params({"filters": filters})).contract_ids()
    if wanted and row.contract_id not in wanted:
        assert not passes(filters, row)


POSITIONS = st.tuples(
    st.integers(0, 2**31 - 1), st.integers(0, 0xFFFFF), st.integers(0, 0xFFF), st.integers(0, 2**32 - 1)
)


@given(one=POSITIONS, other=POSITIONS)
def test_ids_sort_as_positions_do_and_come_back(
    one: tuple[int, int, int, int], other: tuple[int, int, int, int]
) -> None:
    assert parse_event_id(event_id(one)) == one
    assert (event_id(one) < event_id(other)) == (one < other)
    assert split_total_order_id(total_order_id(*one[:3])) == one[:3]


@given(text=st.text(max_size=35))
def test_anything_else_is_no_id(text: str) -> None:
    assume(re.fullmatch(r"[0-9]+-[0-9]+", text, re.ASCII) is None)
    with pytest.raises(RpcFault) as caught:
        parse_event_id(text)
    assert caught.value.code == -32602


def test_the_documented_ids() -> None:
    assert event_id((2, 1, 0, 0)) == "0000000008589938688-0000000000"
    assert event_id((1, 0xFFFFF, 0xFFF, 2**32 - 1)) == "0000000008589934591-4294967295"
