"""The contract on the network's own host: versions, limits, errors, events, storage and its time to live."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import StrKey, scval, xdr

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.anchors import anchor_from_event, previous_of, previous_of_first, verify_history
from mycelium_sdk.chain.base import EntryStatus, TransactionStatus
from mycelium_sdk.errors import ChainError, ContractFailed, InputError, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_localnet.profiles import ProfileName
    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.chain.base import EntryState, SignedTransaction
    from tests.contract.conftest import Host

ROOTS = [hashlib.sha256(bytes([number])).digest() for number in range(5)]
DAY = 17_280  # ledgers of 5 seconds


def test_before_the_first_anchor(host: Host) -> None:
    owner = host.owner.public_key
    assert host.client.get_anchor(owner) is None
    assert host.client.get_version(owner) == 0
    assert host.client.is_anchored(owner) is False
    assert host.client.entry_state(owner).status is EntryStatus.ABSENT


def test_versions_go_one_two_three(host: Host) -> None:
    owner = host.owner.public_key
    for version, root in enumerate(ROOTS[:3], start=1):
        receipt = host.client.set_anchor(host.owner, root, f"https://example.org/{version}".encode(), b"acl")
        assert receipt.version == version == host.client.get_version(owner)
        anchor = host.client.get_anchor(owner)
        assert anchor is not None
        assert (anchor.version, anchor.root, anchor.acl) == (version, root, b"acl")
        assert anchor.uri_text == f"https://example.org/{version}"
        assert anchor.timestamp == receipt.close_time
    assert host.client.is_anchored(owner)
    assert host.client.get_anchor(host.other.public_key) is None


def test_owners_do_not_touch_each_other(host: Host) -> None:
    host.client.set_anchor(host.owner, ROOTS[0])
    host.client.set_anchor(host.other, ROOTS[1])
    receipt = host.client.set_anchor(host.other, ROOTS[2])
    assert receipt.version == 2
    mine = host.client.get_anchor(host.owner.public_key)
    assert mine is not None
    assert (mine.version, mine.root) == (1, ROOTS[0])


def test_an_equal_anchor_is_a_new_version(host: Host) -> None:
    assert [host.client.set_anchor(host.owner, ROOTS[0]).version for _ in range(3)] == [1, 2, 3]


def test_compare_and_set(host: Host) -> None:
    for expected, root in enumerate(ROOTS[:3]):
        receipt = host.client.set_anchor_if(host.owner, expected, root)
        assert (receipt.version, receipt.compared) == (expected + 1, True)


@pytest.mark.parametrize("expected", [0, 1, 3, 2**64 - 1])
def test_a_stale_compare_and_set_changes_nothing(host: Host, expected: int) -> None:
    host.client.set_anchor(host.owner, ROOTS[0])
    host.client.set_anchor(host.owner, ROOTS[1])
    before = host.client.get_anchor(host.owner.public_key)
    with pytest.raises(VersionConflict) as caught:
        host.client.set_anchor_if(host.owner, expected, ROOTS[2])
    assert (caught.value.expected, caught.value.actual) == (expected, 2)
    assert isinstance(caught.value.__cause__, ContractFailed)
    assert (caught.value.__cause__.code, caught.value.__cause__.name) == (2, "VERSION_CONFLICT")
    assert host.client.get_anchor(host.owner.public_key) == before


def test_another_machine_between_simulation_and_sending(host: Host) -> None:
    """The sequence number is refused, the transaction rebuilt, and then the version is another."""
    announced: list[str] = []

    def overtake(signed: SignedTransaction) -> None:
        announced.append(signed.hash)
        envelope = host.prepared("set_anchor", host.arguments(ROOTS[3]), host.owner)
        envelope.sign(host.owner)
        assert host.send(envelope) == "PENDING"

    with pytest.raises(VersionConflict) as caught:
        host.client.set_anchor_if(host.owner, 0, ROOTS[0], before_send=overtake)
    assert (caught.value.expected, caught.value.actual) == (0, 1)
    assert len(announced) == 1
    assert host.chain.transaction(announced[0]).status is TransactionStatus.NOT_FOUND
    anchor = host.client.get_anchor(host.owner.public_key)
    assert anchor is not None
    assert (anchor.version, anchor.root) == (1, ROOTS[3])


def test_the_first_compare_and_set_expects_zero(host: Host) -> None:
    with pytest.raises(VersionConflict) as caught:
        host.client.set_anchor_if(host.owner, 1, ROOTS[0])
    assert (caught.value.expected, caught.value.actual) == (1, 0)
    assert host.client.get_anchor(host.owner.public_key) is None


@pytest.mark.parametrize(
    ("root", "uri", "acl", "code"),
    [
        pytest.param(b"", b"", b"", 3, id="no root"),
        pytest.param(bytes([1]) * 31, b"", b"", 3, id="root of 31 bytes"),
        pytest.param(bytes([1]) * 33, b"", b"", 3, id="root of 33 bytes"),
        pytest.param(bytes(32), b"", b"", 3, id="root all zero"),
        pytest.param(ROOTS[0], b"u" * 1025, b"", 4, id="uri of 1,025 bytes"),
        pytest.param(ROOTS[0], b"", b"a" * 2049, 5, id="acl of 2,049 bytes"),
        pytest.param(bytes(32), b"u" * 1025, b"a" * 2049, 3, id="everything wrong"),
    ],
)
@pytest.mark.parametrize("function", ["set_anchor", "set_anchor_if"])
def test_limits(host: Host, *, function: str, root: bytes, uri: bytes, acl: bytes, code: int) -> None:
    host.client.set_anchor(host.owner, ROOTS[1])
    arguments = host.arguments(root, uri, acl)
    if function == "set_anchor_if":
        arguments.insert(1, scval.to_uint64(1))
    with pytest.raises(ContractFailed) as caught:
        host.call(function, *arguments)
    assert caught.value.code == code
    assert host.client.get_version(host.owner.public_key) == 1


def test_the_largest_values_fit(host: Host) -> None:
    root, uri, acl = bytes(31) + b"\x01", b"u" * 1024, b"a" * 2048
    host.client.set_anchor_if(host.owner, 0, root, uri, acl)
    anchor = host.client.get_anchor(host.owner.public_key)
    assert anchor is not None
    assert (anchor.root, anchor.uri, anchor.acl) == (root, uri, acl)


@pytest.mark.parametrize(
    ("root", "uri", "acl", "words"),
    [
        (bytes(32), b"", b"", "32 bytes that are not all zero"),
        (bytes([1]) * 31, b"", b"", "32 bytes"),
        (ROOTS[0], b"u" * 1025, b"", "1,025 bytes, and the contract takes 1,024"),
        (ROOTS[0], b"", b"a" * 2049, "2,049 bytes, and the contract takes 2,048"),
    ],
)
def test_the_client_refuses_before_anything_is_sent(
    host: Host, *, root: bytes, uri: bytes, acl: bytes, words: str
) -> None:
    before = host.chain.identity().latest_ledger
    with pytest.raises(InputError, match=words):
        host.client.set_anchor(host.owner, root, uri, acl)
    with pytest.raises(InputError, match=words):
        host.client.set_anchor_if(host.owner, 0, root, uri, acl)
    assert host.chain.identity().latest_ledger == before


@pytest.mark.parametrize("expected", [-1, True])
def test_an_expected_version_is_a_number(host: Host, expected: int) -> None:
    with pytest.raises(InputError, match="number from 0"):
        host.client.set_anchor_if(host.owner, expected, ROOTS[0])


@pytest.mark.parametrize("owner", ["", "nobody", "S" * 56, StrKey.encode_med25519_public_key(bytes(40))])
def test_an_owner_is_an_account_or_a_contract(host: Host, owner: str) -> None:
    with pytest.raises(InputError, match="account or contract address"):
        host.client.get_anchor(owner)


def test_a_contract_may_be_an_owner(host: Host) -> None:
    assert host.client.get_version(host.client.contract_id) == 0
    assert host.client.get_anchor(host.client.contract_id) is None


@pytest.mark.parametrize("position", [1, 2, 3])
@pytest.mark.parametrize(
    "wrong",
    [scval.to_string("x" * 32), scval.to_symbol("x" * 32), scval.to_uint64(7), scval.to_void()],
    ids=["string", "symbol", "number", "nothing"],
)
def test_arguments_of_another_type_are_refused_by_the_host(
    host: Host, position: int, wrong: xdr.SCVal
) -> None:
    arguments = host.arguments(ROOTS[0])
    arguments[position] = wrong
    with pytest.raises(ChainError, match="host refused") as caught:
        host.call("set_anchor", *arguments)
    assert "check the arguments and their types" in (caught.value.hint or "")
    assert host.client.get_version(host.owner.public_key) == 0


@pytest.mark.parametrize("function", ["set_anchor", "no_such_function"])
def test_a_wrong_name_or_number_of_arguments_is_not_put_on_the_server(host: Host, function: str) -> None:
    with pytest.raises(ChainError, match="host refused") as caught:
        host.call(function)
    assert "check the function's name and the number of its arguments" in (caught.value.hint or "")
    assert "lag" not in (caught.value.hint or "")


def test_not_anchored_has_its_code(host: Host) -> None:
    with pytest.raises(ContractFailed) as caught:
        host.call("get_anchor", scval.to_address(host.owner.public_key))
    assert caught.value.code == 1


def test_events_carry_the_whole_anchor(host: Host) -> None:
    receipts = [host.client.set_anchor(host.owner, root, b"uri", b"acl") for root in ROOTS[:2]]
    receipts.append(host.client.set_anchor_if(host.owner, 2, ROOTS[2]))
    host.client.set_anchor(host.other, ROOTS[3])
    topics = [scval.to_symbol("memory_anchored"), scval.to_address(host.owner.public_key)]
    page = host.chain.events(host.client.contract_id, start_ledger=1, topics=topics)
    assert [event.transaction for event in page.events] == [receipt.hash for receipt in receipts]
    assert [event.ledger for event in page.events] == [receipt.ledger for receipt in receipts]
    anchors = [anchor_from_event(event.topics, event.value) for event in page.events]
    assert [anchor.version for anchor in anchors] == [1, 2, 3]
    assert [anchor.timestamp for anchor in anchors] == [event.close_time for event in page.events]
    assert anchors[-1] == host.client.get_anchor(host.owner.public_key)
    assert len(host.chain.events(host.client.contract_id, start_ledger=1).events) == 4


def test_events_are_paged(host: Host) -> None:
    for root in ROOTS:
        host.client.set_anchor(host.owner, root)
    seen = []
    page = host.chain.events(host.client.contract_id, start_ledger=1, limit=2)
    while page.events:
        seen += [event.id for event in page.events]
        page = host.chain.events(host.client.contract_id, cursor=page.cursor, limit=2)
    assert len(seen) == len(set(seen)) == 5
    assert seen == sorted(seen)


def test_a_failed_call_emits_nothing(host: Host) -> None:
    with pytest.raises(VersionConflict):
        host.client.set_anchor_if(host.owner, 7, ROOTS[0])
    assert host.chain.events(host.client.contract_id, start_ledger=1).events == ()


def test_the_hash_chain_is_as_documented(host: Host) -> None:
    owner = host.owner.public_key
    history: list[Anchor] = []
    for root in ROOTS:
        host.client.set_anchor(host.owner, root, b"uri of " + root[:4])
        anchor = host.client.get_anchor(owner)
        assert anchor is not None
        assert anchor.previous == (previous_of(history[0]) if history else previous_of_first(owner))
        history.insert(0, anchor)
    assert verify_history(history[0], history).complete


def test_storage_is_one_entry_that_is_the_anchor(host: Host) -> None:
    host.client.set_anchor(host.owner, ROOTS[0], b"https://example.org/memory.jso")
    (state,) = host.chain.entries([host.entry_key(host.owner.public_key)])
    assert state.data is not None
    assert state.data.contract_data is not None
    anchor = host.client.get_anchor(host.owner.public_key)
    assert anchor is not None
    entry = state.data.contract_data
    assert hashlib.sha256(entry.val.to_xdr_bytes()).digest() == previous_of(anchor)
    assert entry.durability is xdr.ContractDataDurability.PERSISTENT
    work = operations.invoke(host.client.contract_id, "set_anchor", host.arguments(ROOTS[1]))
    resources = host.chain.simulate(work, source=host.owner.public_key).resources
    assert resources.write_entries == 1
    assert resources.read_entries == 2, "instance and code"


def life(host: Host) -> tuple[EntryState, EntryState, EntryState]:
    """The owner's entry, the contract's instance and its code."""
    instance = operations.instance_key(host.client.contract_id)
    (state,) = host.chain.entries([instance])
    assert state.data is not None
    assert state.data.contract_data is not None
    assert state.data.contract_data.val.instance is not None
    wasm_hash = state.data.contract_data.val.instance.executable.wasm_hash
    assert wasm_hash is not None
    entry, instance_state, code = host.chain.entries(
        [host.entry_key(host.owner.public_key), instance, operations.code_key(wasm_hash.hash)]
    )
    return entry, instance_state, code


def test_only_the_owners_entry_lives_longer(host: Host) -> None:
    before = life(host)
    receipt = host.client.set_anchor(host.owner, ROOTS[0])
    entry, instance, code = life(host)
    assert entry.live_until == receipt.ledger + 120 * DAY
    assert (instance.live_until, code.live_until) == (before[1].live_until, before[2].live_until)


def test_a_young_entry_is_not_extended_and_an_old_one_is(host: Host) -> None:
    first = host.client.set_anchor(host.owner, ROOTS[0])
    host.skip(89 * DAY)
    host.client.set_anchor(host.owner, ROOTS[1])
    assert life(host)[0].live_until == first.ledger + 120 * DAY
    host.skip(2 * DAY)
    last = host.client.set_anchor_if(host.owner, 2, ROOTS[2])
    assert life(host)[0].live_until == last.ledger + 120 * DAY


def test_an_archived_anchor_is_not_an_absent_one_and_comes_back(
    make_host: Callable[[ProfileName], Host],
) -> None:
    host = make_host("short-ttl")
    owner = host.owner.public_key
    host.client.set_anchor(host.owner, ROOTS[0], b"uri", b"acl")
    anchor = host.client.get_anchor(owner)
    assert host.client.entry_state(owner, expiring_within=5).status is EntryStatus.LIVE
    host.skip(38)
    assert host.client.entry_state(owner, expiring_within=5).status is EntryStatus.EXPIRING
    host.skip(10)
    archived = host.client.entry_state(owner)
    assert archived.status is EntryStatus.ARCHIVED
    assert archived.live_until is None
    assert archived.data is not None
    assert host.client.entry_state(host.other.public_key).status is EntryStatus.ABSENT
    # Reading by simulation sees it all the same, and never says "never anchored".
    assert host.client.get_anchor(owner) == anchor
    assert host.client.get_version(owner) == 1
    assert host.client.is_anchored(owner)
    assert host.client.get_anchor(host.other.public_key) is None

    receipt = host.client.restore(owner, host.other)
    assert receipt is not None
    assert host.client.entry_state(owner, expiring_within=5).status is EntryStatus.LIVE
    assert host.client.get_anchor(owner) == anchor
    assert host.client.restore(owner, host.other) is None, "nothing to restore, nothing sent"


def test_anchoring_again_restores_and_goes_on_counting(make_host: Callable[[ProfileName], Host]) -> None:
    host = make_host("short-ttl")
    owner = host.owner.public_key
    host.client.set_anchor(host.owner, ROOTS[0])
    first = host.client.get_anchor(owner)
    assert first is not None
    host.skip(100)
    assert [state.status for state in life(host)] == [EntryStatus.ARCHIVED] * 3
    receipt = host.client.set_anchor_if(host.owner, 1, ROOTS[1])
    assert receipt.version == 2
    second = host.client.get_anchor(owner)
    assert second is not None
    assert verify_history(second, [second, first]).complete
    assert host.client.entry_state(owner, expiring_within=1).status is EntryStatus.LIVE
