"""A chain driven without RPC: build, simulate, sign, submit, and look at what happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from stellar_sdk import Address, Keypair, TransactionBuilder, TransactionEnvelope, scval, xdr
from stellar_sdk.account import Account
from stellar_sdk.operation import (
    CreateAccount,
    ExtendFootprintTTL,
    InvokeHostFunction,
    Operation,
    RestoreFootprint,
)

from mycelium_localnet import Chain, _native

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mycelium_localnet.ledger import EventRow, LedgerRow, Submission, TransactionRow

ONE_XLM = 10**7
CODES = xdr.TransactionResultCode


def keypair(name: str) -> Keypair:
    """The same account for the same name."""
    return Keypair.from_raw_ed25519_seed(sha256(name.encode()).digest())


def create(name: str = "new", amount: str = "5", source: Keypair | None = None) -> CreateAccount:
    """The cheapest of operations: a new account."""
    return CreateAccount(keypair(name).public_key, amount, None if source is None else source.public_key)


@dataclass
class Lab:
    """A chain, and everything that a test does to it."""

    chain: Chain
    wasm: bytes = field(repr=False)
    contract_id: str = ""

    # Accounts

    def account(self, name: str, amount: int | None = None) -> Keypair:
        """A funded account."""
        found = keypair(name)
        if amount is None:
            self.chain.fund(found.public_key)
        else:
            self.chain.fund(found.public_key, amount)
        return found

    def account_entry(self, owner: Keypair) -> xdr.AccountEntry:
        key = xdr.LedgerKey(xdr.LedgerEntryType.ACCOUNT, account=xdr.LedgerKeyAccount(owner.xdr_account_id()))
        entry = self.entry(key)
        assert entry is not None
        assert entry[0].data.account is not None
        return entry[0].data.account

    def balance(self, owner: Keypair) -> int:
        return self.account_entry(owner).balance.int64

    def sequence(self, owner: Keypair) -> int:
        return self.account_entry(owner).seq_num.sequence_number.int64

    # Entries

    def entry(self, key: xdr.LedgerKey) -> tuple[xdr.LedgerEntry, int | None] | None:
        with self.chain.read() as view:
            found = view.entry(key.to_xdr_bytes())
        return None if found is None else (xdr.LedgerEntry.from_xdr_bytes(found[0]), found[1])

    def live_until(self, key: xdr.LedgerKey) -> int | None:
        found = self.entry(key)
        assert found is not None
        return found[1]

    def data_key(
        self,
        key: int,
        durability: xdr.ContractDataDurability = xdr.ContractDataDurability.PERSISTENT,
    ) -> xdr.LedgerKey:
        """The key of what `put` and `put_temporary` store."""
        return self._data_key(scval.to_uint32(key), durability)

    @property
    def instance_key(self) -> xdr.LedgerKey:
        value = xdr.SCVal(xdr.SCValType.SCV_LEDGER_KEY_CONTRACT_INSTANCE)
        return self._data_key(value, xdr.ContractDataDurability.PERSISTENT)

    @property
    def code_key(self) -> xdr.LedgerKey:
        found = self.entry(self.instance_key)
        assert found is not None
        assert found[0].data.contract_data is not None
        instance = found[0].data.contract_data.val.instance
        assert instance is not None
        assert instance.executable.wasm_hash is not None
        return xdr.LedgerKey(
            xdr.LedgerEntryType.CONTRACT_CODE,
            contract_code=xdr.LedgerKeyContractCode(instance.executable.wasm_hash),
        )

    def _data_key(self, key: xdr.SCVal, durability: xdr.ContractDataDurability) -> xdr.LedgerKey:
        address = Address(self.contract_id).to_xdr_sc_address()
        return xdr.LedgerKey(
            xdr.LedgerEntryType.CONTRACT_DATA,
            contract_data=xdr.LedgerKeyContractData(address, key, durability),
        )

    # Transactions

    def build(
        self,
        source: Keypair,
        *operations: Operation,
        fee: int = 100,
        sequence: int | None = None,
        signers: Sequence[Keypair] | None = None,
        soroban: xdr.SorobanTransactionData | None = None,
        change: Callable[[TransactionBuilder], object] = lambda builder: builder.add_time_bounds(0, 0),
    ) -> TransactionEnvelope:
        """A transaction signed by `signers` (by its source). `fee`: the whole bid."""
        number = self.sequence(source) + 1 if sequence is None else sequence
        builder = TransactionBuilder(Account(source.public_key, number - 1), self.chain.passphrase, 100)
        for operation in operations:
            builder.append_operation(operation)
        change(builder)
        envelope = builder.build()
        envelope.transaction.fee = fee
        envelope.transaction.soroban_data = soroban
        for signer in [source] if signers is None else signers:
            envelope.signatures.append(signer.sign_decorated(envelope.hash()))
        return envelope

    def call(self, function: str, *arguments: xdr.SCVal) -> InvokeHostFunction:
        """The operation that calls the contract."""
        invocation = xdr.InvokeContractArgs(
            Address(self.contract_id).to_xdr_sc_address(),
            xdr.SCSymbol(function.encode()),
            list(arguments),
        )
        kind = xdr.HostFunctionType.HOST_FUNCTION_TYPE_INVOKE_CONTRACT
        return InvokeHostFunction(xdr.HostFunction(kind, invoke_contract=invocation), [])

    def simulate(self, source: Keypair, operation: InvokeHostFunction) -> _native.Simulation:
        """What the network's simulation says of a host function."""
        with self.chain.read() as view:
            return _native.simulate_invoke(
                ledger=self.chain.ledger_info(view.latest()),
                get=view.entry,
                host_function=operation.host_function.to_xdr_bytes(),
                auth_mode="record",
                source_account=source.xdr_account_id().to_xdr_bytes(),
                prng_seed=bytes(32),
            )

    def prepare(self, source: Keypair, operation: InvokeHostFunction, **options: Any) -> TransactionEnvelope:
        """Simulate, and build the transaction that a client would send. `options`: see `build`."""
        simulation = self.simulate(source, operation)
        assert simulation.error is None, simulation.error
        assert simulation.transaction_data is not None
        operation.auth = [xdr.SorobanAuthorizationEntry.from_xdr_bytes(item) for item in simulation.auth]
        data = xdr.SorobanTransactionData.from_xdr_bytes(simulation.transaction_data)
        change_data = options.pop("change_data", None)
        if change_data is not None:
            change_data(data)
        options.setdefault("fee", 100 + data.resource_fee.int64)
        return self.build(source, operation, soroban=data, **options)

    def prepare_ttl(
        self, source: Keypair, keys: Sequence[xdr.LedgerKey], *, extend_to: int | None = None, **options: Any
    ) -> TransactionEnvelope:
        """An extension of keys, or without `extend_to` a restoration, with ample resources."""
        footprint = xdr.LedgerFootprint(list(keys), []) if extend_to else xdr.LedgerFootprint([], list(keys))
        zero, room = xdr.Uint32(0), xdr.Uint32(0 if extend_to else 100_000)
        data = xdr.SorobanTransactionData(
            xdr.SorobanTransactionDataExt(0),
            xdr.SorobanResources(footprint, zero, room, room),
            xdr.Int64(options.pop("resource_fee", 100 * ONE_XLM)),
        )
        operation = ExtendFootprintTTL(extend_to) if extend_to else RestoreFootprint()
        options.setdefault("fee", 100 + data.resource_fee.int64)
        return self.build(source, operation, soroban=data, **options)

    def submit(self, envelope: TransactionEnvelope) -> Submission:
        answer = self.chain.submit(envelope.to_xdr_object().to_xdr_bytes())
        assert answer.hash == envelope.hash()
        return answer

    def refuse(self, envelope: TransactionEnvelope) -> xdr.TransactionResult:
        """The result of a transaction that must be refused; that it changed nothing is checked here."""
        before = self.latest()
        with self.chain.read() as view:
            known = view.transaction(envelope.hash())
        answer = self.submit(envelope)
        assert answer.status == "ERROR", answer
        assert answer.result is not None
        assert self.latest() == before
        assert (answer.latest_ledger, answer.close_time) == (before.sequence, before.close_time)
        with self.chain.read() as view:
            assert view.transaction(answer.hash) == known
            assert not view.is_pending(answer.hash)
        return result_of(answer.result)

    def refused(self, envelope: TransactionEnvelope) -> xdr.TransactionResultCode:
        """The code of a transaction that must be refused."""
        return self.refuse(envelope).result.code

    def apply(self, envelope: TransactionEnvelope) -> TransactionRow:
        """Submit what must be accepted, and what became of it."""
        answer = self.submit(envelope)
        assert answer.status == "PENDING", describe(answer.result)
        return self.transaction(answer.hash)

    def succeed(self, envelope: TransactionEnvelope) -> TransactionRow:
        """Apply what must succeed."""
        row = self.apply(envelope)
        assert row.successful, describe(row.result)
        return row

    def invoke(self, source: Keypair, function: str, *arguments: xdr.SCVal) -> TransactionRow:
        """Call the contract as a client would, with success."""
        return self.succeed(self.prepare(source, self.call(function, *arguments)))

    def put_call(self, key: int = 1, value: int = 2) -> InvokeHostFunction:
        return self.call("put", scval.to_uint32(key), scval.to_uint64(value))

    def put(self, source: Keypair, key: int, value: int) -> TransactionRow:
        return self.succeed(self.prepare(source, self.put_call(key, value)))

    def deploy(self, source: Keypair) -> Lab:
        """Upload the contract and create it."""
        kinds = xdr.HostFunctionType
        upload = xdr.HostFunction(kinds.HOST_FUNCTION_TYPE_UPLOAD_CONTRACT_WASM, wasm=self.wasm)
        row = self.succeed(self.prepare(source, InvokeHostFunction(upload, [])))
        value = return_value(row)
        assert value is not None
        address = Address(source.public_key).to_xdr_sc_address()
        preimage = xdr.ContractIDPreimage(
            xdr.ContractIDPreimageType.CONTRACT_ID_PREIMAGE_FROM_ADDRESS,
            from_address=xdr.ContractIDPreimageFromAddress(address, xdr.Uint256(bytes(32))),
        )
        executable = xdr.ContractExecutable(
            xdr.ContractExecutableType.CONTRACT_EXECUTABLE_WASM,
            wasm_hash=xdr.Hash(scval.from_bytes(value)),
        )
        create = xdr.HostFunction(
            kinds.HOST_FUNCTION_TYPE_CREATE_CONTRACT,
            create_contract=xdr.CreateContractArgs(preimage, executable),
        )
        row = self.succeed(self.prepare(source, InvokeHostFunction(create, [])))
        value = return_value(row)
        assert value is not None
        self.contract_id = scval.from_address(value).address
        return self

    # Looking

    def transaction(self, transaction_hash: bytes) -> TransactionRow:
        with self.chain.read() as view:
            row = view.transaction(transaction_hash)
        assert row is not None
        return row

    def latest(self) -> LedgerRow:
        with self.chain.read() as view:
            return view.latest()

    def ledgers(self) -> list[LedgerRow]:
        """All that are kept."""
        with self.chain.read() as view:
            return view.ledgers(view.oldest().sequence, 1_000_000)

    def events(self, ledger: int) -> list[EventRow]:
        with self.chain.read() as view:
            return list(view.events(after=(ledger, -1, 0, 0), end_ledger=ledger + 1))


def change_call(envelope: TransactionEnvelope, function: str, *arguments: xdr.SCVal) -> None:
    """Call something else than what was simulated, with the resources of that. To be signed afterwards."""
    operation = envelope.transaction.operations[0]
    assert isinstance(operation, InvokeHostFunction)
    invocation = operation.host_function.invoke_contract
    assert invocation is not None
    invocation.function_name = xdr.SCSymbol(function.encode())
    invocation.args = list(arguments)


def describe(result: bytes | None) -> str:
    """A TransactionResult in words, for failing tests."""
    return "no result" if result is None else str(xdr.TransactionResult.from_xdr_bytes(result))


def result_of(data: bytes) -> xdr.TransactionResult:
    result = xdr.TransactionResult.from_xdr_bytes(data)
    assert result.to_xdr_bytes() == data
    return result


def operation_result(result: xdr.TransactionResult, index: int = 0) -> xdr.OperationResult:
    """One operation's result in a failed transaction."""
    assert result.result.code == CODES.txFAILED
    assert result.result.results is not None
    return result.result.results[index]


def operation_code(result: xdr.TransactionResult, index: int = 0) -> xdr.OperationResultCode:
    return operation_result(result, index).code


def meta_of(row: TransactionRow) -> xdr.TransactionMetaV4:
    meta = xdr.TransactionMeta.from_xdr_bytes(row.meta)
    assert meta.to_xdr_bytes() == row.meta
    assert meta.v4 is not None
    return meta.v4


def return_value(row: TransactionRow) -> xdr.SCVal | None:
    meta = meta_of(row)
    assert meta.soroban_meta is not None
    return meta.soroban_meta.return_value
