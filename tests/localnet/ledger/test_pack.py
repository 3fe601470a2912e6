"""XDR by concatenation against the SDK's own encoder."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from stellar_sdk import Keypair, scval, xdr

from mycelium_localnet import events, pack, results, schema
from mycelium_localnet.headers import Header

_BYTES = st.binary(max_size=40)
_HASH = st.binary(min_size=32, max_size=32)


@given(st.binary(max_size=40), st.text(alphabet=st.characters(codec="utf-8"), max_size=20))
def test_bytes_and_strings(data: bytes, text: str) -> None:
    assert pack.sc_bytes(data) == scval.to_bytes(data).to_xdr_bytes()
    assert pack.sc_string(text) == scval.to_string(text).to_xdr_bytes()
    assert pack.sc_string(data) == scval.to_string(data).to_xdr_bytes()


@given(st.integers(0, 2**64 - 1), st.integers(-(2**127), 2**127 - 1))
def test_numbers(unsigned: int, signed: int) -> None:
    assert pack.sc_u64(unsigned) == scval.to_uint64(unsigned).to_xdr_bytes()
    assert pack.sc_i128(signed) == scval.to_int128(signed).to_xdr_bytes()


@given(st.from_regex(r"[a-zA-Z0-9_]{1,32}", fullmatch=True), st.lists(_BYTES, max_size=5))
def test_symbols_and_collections(name: str, items: list[bytes]) -> None:
    assert pack.sc_symbol(name) == scval.to_symbol(name).to_xdr_bytes()
    values = [scval.to_bytes(item) for item in items]
    assert pack.sc_vec([pack.sc_bytes(item) for item in items]) == scval.to_vec(values).to_xdr_bytes()
    pairs = [(pack.sc_u64(number), pack.sc_bytes(item)) for number, item in enumerate(items)]
    mapping = xdr.SCMap(
        [xdr.SCMapEntry(scval.to_uint64(number), value) for number, value in enumerate(values)]
    )
    assert pack.sc_map(pairs) == xdr.SCVal(xdr.SCValType.SCV_MAP, map=mapping).to_xdr_bytes()


@given(_HASH)
def test_addresses(key: bytes) -> None:
    address = Keypair.from_raw_ed25519_public_key(key).public_key
    assert pack.sc_account(key) == scval.to_address(address).to_xdr_bytes()


@given(_HASH, _HASH, st.integers(-(2**63), 2**63 - 1))
def test_fee_events(contract: bytes, account: bytes, amount: int) -> None:
    data = events.fee_event(contract, account, amount, events.AFTER_ALL)
    event = xdr.TransactionEvent.from_xdr_bytes(data)
    assert event.to_xdr_bytes() == data
    assert event.stage == xdr.TransactionEventStage.TRANSACTION_EVENT_STAGE_AFTER_ALL_TXS
    assert event.event.contract_id is not None
    assert event.event.contract_id.contract_id.hash == contract
    parts = events.take_apart(event.event.to_xdr_bytes())
    assert parts.type == "contract"
    assert parts.topics == (pack.sc_symbol("fee"), pack.sc_account(account))
    assert parts.value == pack.sc_i128(amount)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=3))
def test_error_events(arguments: list[int]) -> None:
    values = [pack.sc_u64(argument) for argument in arguments]
    data = results.error_event(results.BUDGET, results.EXCEEDED_LIMIT, "too much", values)
    event = xdr.DiagnosticEvent.from_xdr_bytes(data)
    assert event.to_xdr_bytes() == data
    assert event.event.type == xdr.ContractEventType.DIAGNOSTIC
    assert event.event.body.v0 is not None
    error = event.event.body.v0.topics[1].error
    assert error is not None
    assert error.type == xdr.SCErrorType.SCE_BUDGET
    assert error.code == xdr.SCErrorCode.SCEC_EXCEEDED_LIMIT


@given(st.lists(st.binary(max_size=70), max_size=6))
def test_lists_in_a_column(items: list[bytes]) -> None:
    assert schema.unpack_list(schema.pack_list(items)) == tuple(items)


@given(
    st.builds(
        Header,
        protocol=st.integers(0, 2**32 - 1),
        previous=_HASH,
        tx_set_hash=_HASH,
        close_time=st.integers(0, 2**64 - 1),
        result_hash=_HASH,
        state_hash=_HASH,
        sequence=st.integers(0, 2**32 - 1),
        total_coins=st.integers(-(2**63), 2**63 - 1),
        fee_pool=st.integers(-(2**63), 2**63 - 1),
        base_fee=st.integers(0, 2**32 - 1),
        base_reserve=st.integers(0, 2**32 - 1),
        max_tx_set_size=st.integers(0, 2**32 - 1),
        skip_list=st.binary(min_size=128, max_size=128),
    )
)
def test_headers(header: Header) -> None:
    packed = header.pack()
    assert Header.unpack(packed) == header
    decoded = xdr.LedgerHeader.from_xdr_bytes(packed)
    assert decoded.to_xdr_bytes() == packed
    assert decoded.bucket_list_hash.hash == header.state_hash
    assert decoded.tx_set_result_hash.hash == header.result_hash
    assert decoded.fee_pool.int64 == header.fee_pool
    assert decoded.base_reserve.uint32 == header.base_reserve
