"""The life of a TTL as clients see it, for an entry, a contract's instance and its code.

It expires and is archived, is brought back by a call or by RestoreFootprint, and is kept alive by
ExtendFootprintTTL, each as a simulation quotes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import SorobanServer, TransactionBuilder, scval, xdr

from mycelium_localnet import IN_PROCESS_URL, Chain, InProcessClient
from tests.localnet.ledger.lab import Lab, keypair, return_value
from tests.localnet.proofs.door import result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stellar_sdk import TransactionEnvelope

    from mycelium_localnet.ledger import TransactionRow

KINDS = ("entry", "instance", "code")
MINIMUM, MAXIMUM = 10, 40
OWNER = keypair("owner")


@dataclass
class Life:
    """A contract with one entry, on a chain whose entries expire soon."""

    lab: Lab
    server: SorobanServer

    @property
    def latest(self) -> int:
        return self.lab.latest().sequence

    def key(self, kind: str) -> xdr.LedgerKey:
        keys = {
            "entry": lambda: self.lab.data_key(1),
            "instance": lambda: self.lab.instance_key,
            "code": lambda: self.lab.code_key,
        }
        return keys[kind]()

    def look(self, kind: str) -> dict[str, Any]:
        """What getLedgerEntries says."""
        (found,) = result(self.lab.chain, "getLedgerEntries", {"keys": [self.key(kind).to_xdr()]})["entries"]
        entry: dict[str, Any] = found
        return entry

    def live_until(self, kind: str) -> int:
        found: int = self.look(kind)["liveUntilLedgerSeq"]
        return found

    def go_to(self, ledger: int) -> None:
        self.lab.chain.skip_ledgers(ledger - self.latest)
        assert self.latest == ledger

    # Transactions as a client makes them: built, simulated, signed, sent

    def builder(self) -> TransactionBuilder:
        account = self.server.load_account(OWNER.public_key)
        return TransactionBuilder(account, self.lab.chain.passphrase, 100).set_timeout(300)

    def call(self) -> TransactionEnvelope:
        """A read of the entry."""
        builder = self.builder()
        builder.append_invoke_contract_function_op(self.lab.contract_id, "get", [scval.to_uint32(1)])
        return builder.build()

    def restoration(self, *kinds: str) -> TransactionEnvelope:
        footprint = xdr.LedgerFootprint([], [self.key(kind) for kind in kinds])
        return self._with(footprint, self.builder().append_restore_footprint_op())

    def extension(self, extend_to: int, *kinds: str) -> TransactionEnvelope:
        footprint = xdr.LedgerFootprint([self.key(kind) for kind in kinds], [])
        return self._with(footprint, self.builder().append_extend_footprint_ttl_op(extend_to))

    def _with(self, footprint: xdr.LedgerFootprint, builder: TransactionBuilder) -> TransactionEnvelope:
        zero = xdr.Uint32(0)
        data = xdr.SorobanTransactionData(
            xdr.SorobanTransactionDataExt(0),
            xdr.SorobanResources(footprint, zero, zero, zero),
            xdr.Int64(0),
        )
        return builder.set_soroban_data(data).build()

    def quote(self, envelope: TransactionEnvelope) -> TransactionEnvelope:
        """As the simulation says it should be, signed."""
        prepared = self.server.prepare_transaction(envelope)
        prepared.sign(OWNER)
        return prepared

    def send(self, envelope: TransactionEnvelope) -> TransactionRow:
        sent = result(self.lab.chain, "sendTransaction", {"transaction": envelope.to_xdr()})
        assert sent["status"] == "PENDING", sent
        return self.lab.transaction(bytes.fromhex(sent["hash"]))

    def succeed(self, envelope: TransactionEnvelope) -> TransactionRow:
        row = self.send(self.quote(envelope))
        assert row.successful, str(self.lab.chain.trace(row.hash))
        return row

    def simulate(self, envelope: TransactionEnvelope) -> dict[str, Any]:
        return result(self.lab.chain, "simulateTransaction", {"transaction": envelope.to_xdr()})


@pytest.fixture
def life(wasm: bytes) -> Iterator[Life]:
    with Chain.open(":memory:", seed=b"life", profile="short-ttl") as chain:
        lab = Lab(chain, wasm)
        lab.account("owner")
        lab.deploy(OWNER).put(OWNER, 1, 7)
        yield Life(lab, SorobanServer(IN_PROCESS_URL, InProcessClient(chain)))


def archived_keys(data: xdr.SorobanTransactionData) -> list[xdr.LedgerKey]:
    """What a transaction restores before it calls."""
    extension = data.ext.resource_ext
    indices = [] if extension is None else extension.archived_soroban_entries
    return [data.resources.footprint.read_write[index.uint32] for index in indices]


def data_of(text: str) -> xdr.SorobanTransactionData:
    return xdr.SorobanTransactionData.from_xdr(text)


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_ledger_and_the_one_behind_it(life: Life, kind: str) -> None:
    before = life.look(kind)
    created = before["lastModifiedLedgerSeq"]
    assert before["liveUntilLedgerSeq"] == created + MINIMUM - 1
    life.go_to(created + MINIMUM - 1)
    assert life.look(kind) == before
    life.go_to(created + MINIMUM)
    assert life.look(kind) == before | {"liveUntilLedgerSeq": 0}


@pytest.mark.parametrize("kind", KINDS)
def test_in_its_last_ledger_it_can_be_used(life: Life, kind: str) -> None:
    others = [other for other in KINDS if other != kind]
    life.succeed(life.extension(MAXIMUM - 1, *others))
    last = life.live_until(kind)
    life.go_to(last - 1)
    before = life.look(kind)
    prepared = life.quote(life.call())
    data = prepared.transaction.soroban_data
    assert data is not None
    assert archived_keys(data) == []
    row = life.send(prepared)
    assert row.successful
    assert row.ledger == last
    assert life.look(kind) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_brings_it_back(life: Life, kind: str) -> None:
    """Only what is archived is restored: the others were kept alive."""
    others = [other for other in KINDS if other != kind]
    life.succeed(life.extension(MAXIMUM - 1, *others))
    life.go_to(life.live_until(kind) + 1)
    before, kept = life.look(kind), [life.look(other) for other in others]
    prepared = life.quote(life.call())
    data = prepared.transaction.soroban_data
    assert data is not None
    assert archived_keys(data) == [life.key(kind)]
    row = life.send(prepared)
    assert row.successful
    assert return_value(row) == scval.to_uint64(7)
    after = life.look(kind)
    assert (after["key"], after["xdr"]) == (before["key"], before["xdr"])
    assert after["lastModifiedLedgerSeq"] == row.ledger
    assert after["liveUntilLedgerSeq"] == row.ledger + MINIMUM - 1
    assert [life.look(other) for other in others] == kept


@pytest.mark.parametrize("kind", KINDS)
def test_restore_footprint_brings_it_back(life: Life, kind: str) -> None:
    """Only what is asked for: the others stay archived, and keep their values."""
    life.go_to(life.latest + MAXIMUM)
    before = {one: life.look(one) for one in KINDS}
    assert [one["liveUntilLedgerSeq"] for one in before.values()] == [0, 0, 0]
    row = life.succeed(life.restoration(kind))
    for one in KINDS:
        found = life.look(one)
        assert found["xdr"] == before[one]["xdr"]
        assert found["liveUntilLedgerSeq"] == (row.ledger + MINIMUM - 1 if one == kind else 0)
    row = life.succeed(life.call())
    assert return_value(row) == scval.to_uint64(7)


@pytest.mark.parametrize("kind", KINDS)
def test_extend_footprint_ttl_keeps_it_alive(life: Life, kind: str) -> None:
    before = life.look(kind)
    row = life.succeed(life.extension(30, kind))
    after = life.look(kind)
    assert after == before | {"liveUntilLedgerSeq": row.ledger + 30}
    life.go_to(row.ledger + 30)
    assert life.look(kind) == after
    life.go_to(row.ledger + 31)
    assert life.live_until(kind) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_extension_of_what_is_archived_comes_with_its_restoration(life: Life, kind: str) -> None:
    """By itself it succeeds and does nothing; the preamble is the RestoreFootprint that must come first."""
    life.go_to(life.latest + MAXIMUM)
    extension = life.extension(30, kind)
    answer = life.simulate(extension)
    assert set(answer["restorePreamble"]) == {"transactionData", "minResourceFee"}
    preamble = data_of(answer["restorePreamble"]["transactionData"])
    assert answer["restorePreamble"]["minResourceFee"] == str(preamble.resource_fee.int64)
    assert preamble.resources.footprint.read_write == [life.key(kind)]
    life.succeed(extension)
    assert life.live_until(kind) == 0

    restoration = life.builder().append_restore_footprint_op().set_soroban_data(preamble).build()
    restoration.transaction.fee += preamble.resource_fee.int64
    restoration.sign(OWNER)
    assert life.send(restoration).successful
    assert "restorePreamble" not in life.simulate(life.extension(30, kind))
    row = life.succeed(life.extension(30, kind))
    assert life.live_until(kind) == row.ledger + 30


@pytest.mark.parametrize("kind", KINDS)
def test_between_simulation_and_application_a_ledger_passes(life: Life, kind: str) -> None:
    """What ends with the last closed ledger is alive for the simulation and archived for the transaction, as
    on the network; one ledger later the simulation knows."""
    others = [other for other in KINDS if other != kind]
    life.succeed(life.extension(MAXIMUM - 1, *others))
    life.go_to(life.live_until(kind))
    prepared = life.quote(life.call())
    data = prepared.transaction.soroban_data
    assert data is not None
    assert archived_keys(data) == []
    row = life.send(prepared)
    assert row.ledger == life.latest
    trace = life.lab.chain.trace(row.hash)
    assert trace.outcome == "txFAILED, INVOKE_HOST_FUNCTION_ENTRY_ARCHIVED"
    answer = life.simulate(life.call())
    assert archived_keys(data_of(answer["transactionData"])) == [life.key(kind)]
    assert return_value(life.succeed(life.call())) == scval.to_uint64(7)


def test_a_call_has_no_preamble(life: Life) -> None:
    """It restores by itself."""
    life.go_to(life.latest + MAXIMUM)
    answer = life.simulate(life.call())
    assert "restorePreamble" not in answer
    keys = archived_keys(data_of(answer["transactionData"]))
    assert sorted(key.to_xdr() for key in keys) == sorted(life.key(kind).to_xdr() for kind in KINDS)
