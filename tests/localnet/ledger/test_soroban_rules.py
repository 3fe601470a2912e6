"""The Soroban part of a transaction against the network's limits and rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import MuxedAccount, scval, xdr

from mycelium_localnet.context import LedgerContext
from mycelium_localnet.envelopes import decode_transaction
from mycelium_localnet.headers import Header
from mycelium_localnet.state import stored_state
from mycelium_localnet.validation import validate
from tests.localnet.ledger.lab import CODES, create, keypair, operation_result, result_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from stellar_sdk import Keypair, TransactionBuilder, TransactionEnvelope

    from tests.localnet.ledger.lab import Lab


def test_one_soroban_operation_only(lab: Lab, alice: Keypair) -> None:
    envelope = lab.prepare(alice, lab.put_call(), signers=[])
    envelope.transaction.operations.append(create())
    envelope.sign(alice)
    assert lab.refused(envelope) == CODES.txMALFORMED
    envelope.transaction.operations.reverse()
    envelope.signatures.clear()
    envelope.sign(alice)
    assert lab.refused(envelope) == CODES.txMALFORMED


def test_soroban_data_where_it_does_not_belong(lab: Lab, alice: Keypair) -> None:
    data = lab.prepare(alice, lab.put_call()).transaction.soroban_data
    assert lab.refused(lab.build(alice, create(), soroban=data, fee=10**7)) == CODES.txMALFORMED


@pytest.mark.parametrize("resource_fee", [None, -1, (1 << 50) + 1])
def test_a_soroban_operation_without_sound_data(lab: Lab, alice: Keypair, resource_fee: int | None) -> None:
    def change(data: xdr.SorobanTransactionData) -> None:
        data.resource_fee = xdr.Int64(resource_fee or 0)

    envelope = lab.prepare(alice, lab.put_call(), change_data=change, fee=10**7, signers=[])
    if resource_fee is None:
        envelope.transaction.soroban_data = None
    envelope.sign(alice)
    result = lab.refuse(envelope)
    assert result.result.code == CODES.txMALFORMED
    assert result.fee_charged.int64 == 0


def _soroban_invalid(lab: Lab, envelope: TransactionEnvelope) -> str:
    """The words that explain a txSOROBAN_INVALID."""
    answer = lab.submit(envelope)
    assert answer.result is not None
    assert result_of(answer.result).result.code == CODES.txSOROBAN_INVALID
    assert len(answer.diagnostic_events) == 1
    event = xdr.DiagnosticEvent.from_xdr_bytes(answer.diagnostic_events[0])
    assert event.to_xdr_bytes() == answer.diagnostic_events[0]
    assert not event.in_successful_contract_call
    body = event.event.body.v0
    assert body is not None
    assert scval.from_symbol(body.topics[0]) == "error"
    words = scval.from_vec(body.data)[0] if body.data.vec else body.data
    return scval.from_string(words).decode()


def _more_instructions(lab: Lab, data: xdr.SorobanTransactionData) -> None:
    data.resources.instructions = xdr.Uint32(lab.chain.settings.tx_max_instructions + 1)


def _more_reads(lab: Lab, data: xdr.SorobanTransactionData) -> None:
    data.resources.disk_read_bytes = xdr.Uint32(lab.chain.settings.tx_max_disk_read_bytes + 1)


def _more_writes(lab: Lab, data: xdr.SorobanTransactionData) -> None:
    data.resources.write_bytes = xdr.Uint32(lab.chain.settings.tx_max_write_bytes + 1)


def _more_keys(lab: Lab, data: xdr.SorobanTransactionData) -> None:
    data.resources.footprint.read_only += [
        lab.data_key(number) for number in range(lab.chain.settings.tx_max_footprint_entries)
    ]


def _more_written_keys(lab: Lab, data: xdr.SorobanTransactionData) -> None:
    data.resources.footprint.read_write += [
        lab.data_key(100 + number) for number in range(lab.chain.settings.tx_max_write_entries)
    ]


def _twice_the_same_key(lab: Lab, data: xdr.SorobanTransactionData) -> None:
    data.resources.footprint.read_only.append(data.resources.footprint.read_write[0])


def _a_ttl_key(lab: Lab, data: xdr.SorobanTransactionData) -> None:
    ttl = xdr.LedgerKeyTtl(xdr.Hash(bytes(32)))
    data.resources.footprint.read_only.append(xdr.LedgerKey(xdr.LedgerEntryType.TTL, ttl=ttl))


def _a_long_key(lab: Lab, data: xdr.SorobanTransactionData) -> None:
    durability = xdr.ContractDataDurability.PERSISTENT
    data.resources.footprint.read_only.append(lab._data_key(scval.to_bytes(bytes(250)), durability))


def _archived(*indices: int) -> Callable[[Lab, xdr.SorobanTransactionData], None]:
    def change(lab: Lab, data: xdr.SorobanTransactionData) -> None:
        extension = xdr.SorobanResourcesExtV0([xdr.Uint32(index) for index in indices])
        data.ext = xdr.SorobanTransactionDataExt(1, extension)

    return change


def _archived_temporary(lab: Lab, data: xdr.SorobanTransactionData) -> None:
    data.resources.footprint.read_write.append(lab.data_key(1, xdr.ContractDataDurability.TEMPORARY))
    _archived(len(data.resources.footprint.read_write) - 1)(lab, data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_more_instructions, "instructions resources exceed"),
        (_more_reads, "byte-read resources exceed"),
        (_more_writes, "byte-write resources exceed"),
        (_more_keys, "number of entries in transaction footprint"),
        (_more_written_keys, "entry-write resources exceed"),
        (_twice_the_same_key, "duplicate key"),
        (_a_ttl_key, "unsupported ledger key type"),
        (_a_long_key, "footprint key exceeds"),
        (_archived(0, 0), "sorted in ascending order"),
        (_archived(1), "out of bounds"),
        (_archived_temporary, "non-persistent"),
    ],
)
def test_resources_beyond_the_network_limits(
    lab: Lab,
    alice: Keypair,
    change: Callable[[Lab, xdr.SorobanTransactionData], None],
    words: str,
) -> None:
    def change_data(data: xdr.SorobanTransactionData) -> None:
        change(lab, data)
        data.resource_fee = xdr.Int64(10**8)

    envelope = lab.prepare(alice, lab.put_call(), change_data=change_data)
    assert words in _soroban_invalid(lab, envelope)


def test_a_transaction_that_is_too_large(lab: Lab, alice: Keypair) -> None:
    data = lab.prepare(alice, lab.put_call()).transaction.soroban_data
    assert data is not None
    data.resource_fee = xdr.Int64(10**8)
    room = lab.chain.settings.tx_max_size_bytes
    envelope = lab.build(alice, lab.call("echo", scval.to_bytes(bytes(room))), soroban=data, fee=10**9)
    assert "total transaction size" in _soroban_invalid(lab, envelope)


def test_a_resource_fee_above_the_whole_fee(lab: Lab, alice: Keypair) -> None:
    envelope = lab.prepare(alice, lab.put_call(), fee=100)
    assert "higher than the full transaction fee" in _soroban_invalid(lab, envelope)


def test_a_resource_fee_below_the_computed_one(lab: Lab, alice: Keypair) -> None:
    def change(data: xdr.SorobanTransactionData) -> None:
        data.resource_fee = xdr.Int64(1_000)

    envelope = lab.prepare(alice, lab.put_call(), change_data=change)
    assert "lower than the actual Soroban resource fee" in _soroban_invalid(lab, envelope)


def test_a_bid_of_which_nothing_is_left_for_inclusion(lab: Lab, alice: Keypair) -> None:
    envelope = lab.prepare(alice, lab.put_call(), signers=[])
    envelope.transaction.fee -= 1
    envelope.sign(alice)
    result = lab.refuse(envelope)
    assert result.result.code == CODES.txINSUFFICIENT_FEE
    assert envelope.transaction.soroban_data is not None
    assert result.fee_charged.int64 == envelope.transaction.soroban_data.resource_fee.int64 + 100


def test_a_memo_with_a_host_function(lab: Lab, alice: Keypair) -> None:
    def remember(builder: TransactionBuilder) -> None:
        builder.set_timeout(300).add_text_memo("for the books")

    envelope = lab.prepare(alice, lab.put_call(), change=remember)
    assert "memo or muxed" in _soroban_invalid(lab, envelope)


def test_a_memo_is_refused_before_anything_else_is_looked_at(lab: Lab, alice: Keypair) -> None:
    def remember(builder: TransactionBuilder) -> None:
        builder.add_time_bounds(0, 5).add_text_memo("for the books")

    def exceed(data: xdr.SorobanTransactionData) -> None:
        data.resources.instructions = xdr.Uint32(lab.chain.settings.tx_max_instructions + 1)

    envelope = lab.prepare(alice, lab.put_call(), change=remember, change_data=exceed, sequence=5, signers=[])
    assert "memo or muxed" in _soroban_invalid(lab, envelope)
    lab.chain.set_interval(closing="manual")
    assert lab.submit(lab.build(alice, create())).status == "PENDING"
    envelope = lab.prepare(alice, lab.put_call(), change=remember, sequence=lab.sequence(alice) + 2)
    assert "memo or muxed" in _soroban_invalid(lab, envelope)


def test_a_memo_is_refused_when_applying_as_well(lab: Lab, alice: Keypair) -> None:
    def remember(builder: TransactionBuilder) -> None:
        builder.add_time_bounds(0, 0).add_text_memo("for the books")

    envelope = lab.prepare(alice, lab.put_call(), change=remember)
    transaction = decode_transaction(envelope.to_xdr_object().to_xdr_bytes(), lab.chain.network_id)
    latest = lab.latest()
    with lab.chain._storage.read() as connection:
        header = Header.unpack(latest.header)
        context = LedgerContext.of(lab.chain._network, header, latest.sequence + 1, latest.close_time)
        state = stored_state(connection, context.sequence)
        found = validate(transaction, state, context, applying=True)
    assert (found.outcome.code, found.uses_sequence) == (CODES.txSOROBAN_INVALID, False)


def _asset(code: bytes, issuer: str) -> xdr.TrustLineAsset:
    account = keypair(issuer).xdr_account_id()
    if len(code) == 4:
        short = xdr.AlphaNum4(xdr.AssetCode4(code), account)
        return xdr.TrustLineAsset(xdr.AssetType.ASSET_TYPE_CREDIT_ALPHANUM4, alpha_num4=short)
    long = xdr.AlphaNum12(xdr.AssetCode12(code), account)
    return xdr.TrustLineAsset(xdr.AssetType.ASSET_TYPE_CREDIT_ALPHANUM12, alpha_num12=long)


@pytest.mark.parametrize(
    ("asset", "possible"),
    [
        (xdr.TrustLineAsset(xdr.AssetType.ASSET_TYPE_NATIVE), False),
        (_asset(b"USD\0", "bank"), True),
        (_asset(b"USD\0", "alice"), False),  # one's own
        (_asset(b"U\0D\0", "bank"), False),
        (_asset(b"US-D", "bank"), False),
        (_asset(bytes(4), "bank"), False),
        (_asset(b"DOLLAR".ljust(12, b"\0"), "bank"), True),
        (_asset(b"USD".ljust(12, b"\0"), "bank"), False),  # a short code in a long place
        (
            xdr.TrustLineAsset(
                xdr.AssetType.ASSET_TYPE_POOL_SHARE, liquidity_pool_id=xdr.PoolID(xdr.Hash(bytes(32)))
            ),
            True,
        ),
    ],
)
def test_a_trustline_in_the_footprint_is_one_that_can_be(
    lab: Lab, alice: Keypair, asset: xdr.TrustLineAsset, *, possible: bool
) -> None:
    trustline = xdr.LedgerKeyTrustLine(alice.xdr_account_id(), asset)
    key = xdr.LedgerKey(xdr.LedgerEntryType.TRUSTLINE, trust_line=trustline)

    def change(data: xdr.SorobanTransactionData) -> None:
        data.resources.footprint.read_only.append(key)
        data.resource_fee = xdr.Int64(10**8)

    envelope = lab.prepare(alice, lab.put_call(), change_data=change)
    if possible:
        lab.succeed(envelope)
    else:
        assert "invalid trustline asset" in _soroban_invalid(lab, envelope)


@pytest.mark.parametrize("where", ["transaction", "operation"])
def test_a_muxed_source_with_a_host_function(lab: Lab, alice: Keypair, where: str) -> None:
    envelope = lab.prepare(alice, lab.put_call(), signers=[])
    muxed = MuxedAccount(alice.public_key, 7)
    if where == "transaction":
        envelope.transaction.source = muxed
    else:
        envelope.transaction.operations[0].source = muxed
    # The muxed id makes the envelope larger, and its fee with it.
    envelope.transaction.fee += 1_000
    assert envelope.transaction.soroban_data is not None
    envelope.transaction.soroban_data.resource_fee.int64 += 1_000
    envelope.sign(alice)
    assert "memo or muxed" in _soroban_invalid(lab, envelope)


def footprint_of(envelope: TransactionEnvelope) -> xdr.LedgerFootprint:
    assert envelope.transaction.soroban_data is not None
    return envelope.transaction.soroban_data.resources.footprint


def _extend(lab: Lab, alice: Keypair, extend_to: int, *, written: bool = False) -> TransactionEnvelope:
    envelope = lab.prepare_ttl(alice, [lab.instance_key], extend_to=extend_to, signers=[])
    footprint = footprint_of(envelope)
    if written:
        footprint.read_write, footprint.read_only = footprint.read_only, []
    envelope.sign(alice)
    return envelope


def test_malformed_ttl_operations(lab: Lab, alice: Keypair) -> None:
    account = xdr.LedgerKey(xdr.LedgerEntryType.ACCOUNT, account=xdr.LedgerKeyAccount(alice.xdr_account_id()))
    temporary = lab.data_key(1, xdr.ContractDataDurability.TEMPORARY)
    readable = lab.prepare_ttl(alice, [lab.instance_key], signers=[])
    footprint = footprint_of(readable)
    footprint.read_write, footprint.read_only = [], footprint.read_write
    readable.sign(alice)
    too_long = lab.chain.settings.max_entry_ttl
    for envelope in (
        _extend(lab, alice, too_long),
        _extend(lab, alice, 10, written=True),
        lab.prepare_ttl(alice, [account], extend_to=10),
    ):
        inner = operation_result(lab.refuse(envelope)).tr
        assert inner is not None
        assert inner.extend_footprint_ttl_result is not None
        assert inner.extend_footprint_ttl_result.code == -1
    for envelope in (
        readable,
        lab.prepare_ttl(alice, [account]),
        lab.prepare_ttl(alice, [temporary]),
    ):
        inner = operation_result(lab.refuse(envelope)).tr
        assert inner is not None
        assert inner.restore_footprint_result is not None
        assert inner.restore_footprint_result.code == -1
    lab.succeed(_extend(lab, alice, too_long - 1))
