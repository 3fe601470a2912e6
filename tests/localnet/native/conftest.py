"""A ledger just large enough to drive the native module: entries in a dict, and calls applied to it."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
from typing import TYPE_CHECKING, Literal

import pysoroban  # type: ignore[import-untyped]
import pytest
from stellar_sdk import Address, Keypair, scval, xdr

from mycelium_localnet import _native

if TYPE_CHECKING:
    from collections.abc import Sequence

AuthMode = Literal["enforce", "record", "record_allow_nonroot"]
NETWORK_ID = hashlib.sha256(b"Standalone Network ; February 2017").digest()

# Reaches the corners of the host; the compiler's dialect, so it is text here and not a module.
PROBE_SOURCE = """
from pysoroban import (
    Address, Symbol, Topic, boolean, contract, error, event, events, fail, i32, prng, public, storage, u64,
)

@error
class ProbeError:
    NOT_SET = 7

@event
class Stored:
    owner: Topic[Address]
    value: u64

@contract
class Probe:
    @public
    def put(self, owner: Address, value: u64) -> u64:
        owner.require_auth()
        storage.persistent.set(owner, value)
        events.publish(Stored(owner, value))
        return value

    @public
    def get(self, owner: Address) -> u64:
        if not storage.persistent.has(owner):
            fail(ProbeError.NOT_SET)
        return storage.persistent.get(owner, u64)

    @public
    def remove(self, owner: Address) -> None:
        storage.persistent.remove(owner)

    @public
    def put_short(self, owner: Address, value: u64) -> None:
        storage.temporary.set(owner, value)

    @public
    def has_short(self, owner: Address) -> boolean:
        return storage.temporary.has(owner)

    @public
    def roll(self, limit: u64) -> u64:
        return prng.u64(u64(0), limit)

    @public
    def spin(self, rounds: i32) -> i32:
        total: i32 = 0
        for step in range(rounds):
            total = total + step
        return total

    @public
    def forward(self, target: Address, owner: Address, value: u64) -> u64:
        return target.call_u64(Symbol("put"), owner, value)
"""

OWNER = Keypair.from_raw_ed25519_seed(bytes(range(32)))
"""The source of every call here; nothing in these tests is secret."""


class MiniLedger:
    """Entries by key, a sequence number, and calls of the native module around them."""

    def __init__(self, settings: _native.NetworkSettings, wasm: bytes) -> None:
        self.settings = settings
        self.wasm = wasm
        self.cache = _native.ModuleCache()
        self.entries: dict[bytes, tuple[bytes, int | None]] = {}
        self.lookups: list[bytes] = []
        self.owner = OWNER
        self.sequence = 100
        self.close_time = 1_700_000_000
        self.contract = ""

    @property
    def info(self) -> _native.LedgerInfo:
        return _native.LedgerInfo(
            sequence=self.sequence,
            close_time=self.close_time,
            network_id=NETWORK_ID,
            base_reserve=5_000_000,
            settings=self.settings,
        )

    def get(self, key: bytes) -> tuple[bytes, int | None] | None:
        self.lookups.append(key)
        return self.entries.get(key)

    def simulate(
        self,
        function: xdr.HostFunction,
        *,
        auth: Sequence[bytes] = (),
        auth_mode: AuthMode = "record",
        upgraded_auth: bool = False,
        source: Keypair = OWNER,
        prng_seed: bytes = bytes(32),
        instruction_leeway: int = 0,
    ) -> _native.Simulation:
        return _native.simulate_invoke(
            ledger=self.info,
            get=self.get,
            host_function=function.to_xdr_bytes(),
            auth=auth,
            auth_mode=auth_mode,
            upgraded_auth=upgraded_auth,
            source_account=source.xdr_account_id().to_xdr_bytes(),
            prng_seed=prng_seed,
            instruction_leeway=instruction_leeway,
        )

    def invoke(
        self,
        function: xdr.HostFunction,
        simulation: _native.Simulation,
        *,
        instructions: int | None = None,
        auth: Sequence[bytes] | None = None,
        source: Keypair = OWNER,
        cache: _native.ModuleCache | None = None,
        prng_seed: bytes = bytes(32),
        diagnostics: bool = True,
    ) -> _native.Invocation:
        """Run what was simulated, without keeping its changes."""
        data = transaction_data(simulation)
        if instructions is not None:
            data.resources.instructions = xdr.Uint32(instructions)
        restored = restored_indices(data)
        return _native.invoke(
            ledger=self.info,
            cache=self.cache if cache is None else cache,
            host_function=function.to_xdr_bytes(),
            resources=data.resources.to_xdr_bytes(),
            restored_rw_indices=restored,
            auth=simulation.auth if auth is None else auth,
            source_account=source.xdr_account_id().to_xdr_bytes(),
            entries=self.footprint_entries(data.resources.footprint, restored),
            prng_seed=prng_seed,
            diagnostics=diagnostics,
        )

    def footprint_entries(
        self, footprint: xdr.LedgerFootprint, restored: Sequence[int]
    ) -> list[tuple[bytes, int | None] | None]:
        """What the module is handed for each key: live entries, and restored ones with their new TTL."""
        fresh = self.sequence + self.settings.min_persistent_entry_ttl - 1
        first_restorable = len(footprint.read_only)
        result: list[tuple[bytes, int | None] | None] = []
        for index, key in enumerate([*footprint.read_only, *footprint.read_write]):
            found = self.entries.get(key.to_xdr_bytes())
            if found is not None and found[1] is not None and found[1] < self.sequence:
                found = (found[0], fresh) if index - first_restorable in restored else None
            result.append(found)
        return result

    def apply(self, invocation: _native.Invocation) -> None:
        assert invocation.ok, invocation.error
        for change in invocation.changes:
            if not change.read_only and change.new_value is None:
                self.entries.pop(change.key, None)
            elif not change.read_only:
                assert change.new_value is not None
                self.entries[change.key] = (change.new_value, change.new_live_until)
            elif change.new_live_until:
                self.entries[change.key] = (self.entries[change.key][0], change.new_live_until)

    def run(self, function: xdr.HostFunction) -> _native.Invocation:
        """Simulate, invoke, and keep the changes."""
        simulation = self.simulate(function)
        assert simulation.error is None, simulation.error
        invocation = self.invoke(function, simulation)
        self.apply(invocation)
        return invocation

    def deploy(self, salt: bytes = bytes(32)) -> str:
        """Upload the probe contract unless it is there, create an instance, and return its address."""
        self.run(upload(self.wasm))
        created = self.run(create(self.wasm, salt))
        assert created.result is not None
        return scval.from_address(xdr.SCVal.from_xdr_bytes(created.result)).address

    def call(self, function: str, *args: xdr.SCVal, contract: str | None = None) -> xdr.HostFunction:
        return xdr.HostFunction(
            xdr.HostFunctionType.HOST_FUNCTION_TYPE_INVOKE_CONTRACT,
            invoke_contract=xdr.InvokeContractArgs(
                contract_address=Address(contract or self.contract).to_xdr_sc_address(),
                function_name=xdr.SCSymbol(function.encode()),
                args=list(args),
            ),
        )

    def put(self, value: int) -> xdr.HostFunction:
        return self.call("put", scval.to_address(OWNER.public_key), scval.to_uint64(value))

    def about_owner(self, function: str) -> xdr.HostFunction:
        """A call of a function whose one argument is the owner."""
        return self.call(function, scval.to_address(OWNER.public_key))

    def add_account(self, keypair: Keypair) -> None:
        entry = xdr.LedgerEntry(
            last_modified_ledger_seq=xdr.Uint32(self.sequence),
            data=xdr.LedgerEntryData(
                xdr.LedgerEntryType.ACCOUNT,
                account=xdr.AccountEntry(
                    account_id=keypair.xdr_account_id(),
                    balance=xdr.Int64(10**11),
                    seq_num=xdr.SequenceNumber(xdr.Int64(self.sequence << 32)),
                    num_sub_entries=xdr.Uint32(0),
                    inflation_dest=None,
                    flags=xdr.Uint32(0),
                    home_domain=xdr.String32(b""),
                    thresholds=xdr.Thresholds(b"\x01\x00\x00\x00"),
                    signers=[],
                    ext=xdr.AccountEntryExt(0),
                ),
            ),
            ext=xdr.LedgerEntryExt(0),
        )
        key = xdr.LedgerKey(
            xdr.LedgerEntryType.ACCOUNT, account=xdr.LedgerKeyAccount(keypair.xdr_account_id())
        )
        self.entries[key.to_xdr_bytes()] = (entry.to_xdr_bytes(), None)

    def data_key(self, durability: xdr.ContractDataDurability, contract: str | None = None) -> bytes:
        """The key of the entry that the probe keeps for the owner."""
        return contract_data_key(
            contract or self.contract, scval.to_address(OWNER.public_key), durability
        ).to_xdr_bytes()

    def instance_key(self) -> bytes:
        instance = xdr.SCVal(xdr.SCValType.SCV_LEDGER_KEY_CONTRACT_INSTANCE)
        return contract_data_key(
            self.contract, instance, xdr.ContractDataDurability.PERSISTENT
        ).to_xdr_bytes()

    def code_entry(self) -> bytes:
        """An entry for the current wasm, as a chain keeps code without cost inputs."""
        return xdr.LedgerEntry(
            last_modified_ledger_seq=xdr.Uint32(self.sequence),
            data=xdr.LedgerEntryData(
                xdr.LedgerEntryType.CONTRACT_CODE,
                contract_code=xdr.ContractCodeEntry(
                    ext=xdr.ContractCodeEntryExt(0),
                    hash=xdr.Hash(hashlib.sha256(self.wasm).digest()),
                    code=self.wasm,
                ),
            ),
            ext=xdr.LedgerEntryExt(0),
        ).to_xdr_bytes()

    def code_key(self) -> bytes:
        digest = xdr.Hash(hashlib.sha256(self.wasm).digest())
        return xdr.LedgerKey(
            xdr.LedgerEntryType.CONTRACT_CODE, contract_code=xdr.LedgerKeyContractCode(digest)
        ).to_xdr_bytes()


def contract_data_key(contract: str, key: xdr.SCVal, durability: xdr.ContractDataDurability) -> xdr.LedgerKey:
    return xdr.LedgerKey(
        xdr.LedgerEntryType.CONTRACT_DATA,
        contract_data=xdr.LedgerKeyContractData(
            contract=Address(contract).to_xdr_sc_address(), key=key, durability=durability
        ),
    )


def upload(wasm: bytes) -> xdr.HostFunction:
    return xdr.HostFunction(xdr.HostFunctionType.HOST_FUNCTION_TYPE_UPLOAD_CONTRACT_WASM, wasm=wasm)


def create(wasm: bytes, salt: bytes) -> xdr.HostFunction:
    return xdr.HostFunction(
        xdr.HostFunctionType.HOST_FUNCTION_TYPE_CREATE_CONTRACT,
        create_contract=xdr.CreateContractArgs(
            contract_id_preimage=xdr.ContractIDPreimage(
                xdr.ContractIDPreimageType.CONTRACT_ID_PREIMAGE_FROM_ADDRESS,
                from_address=xdr.ContractIDPreimageFromAddress(
                    address=Address(OWNER.public_key).to_xdr_sc_address(), salt=xdr.Uint256(salt)
                ),
            ),
            executable=xdr.ContractExecutable(
                xdr.ContractExecutableType.CONTRACT_EXECUTABLE_WASM,
                wasm_hash=xdr.Hash(hashlib.sha256(wasm).digest()),
            ),
        ),
    )


def transaction_data(simulation: _native.Simulation) -> xdr.SorobanTransactionData:
    assert simulation.transaction_data is not None, simulation.error
    return xdr.SorobanTransactionData.from_xdr_bytes(simulation.transaction_data)


def restored_indices(data: xdr.SorobanTransactionData) -> list[int]:
    if data.ext.resource_ext is None:
        return []
    return [index.uint32 for index in data.ext.resource_ext.archived_soroban_entries]


@pytest.fixture(scope="session")
def config_entries() -> list[bytes]:
    """The network's own settings, as shipped with the embedded chain."""
    source = importlib.resources.files("mycelium_localnet") / "network-settings.p28.json"
    updated = json.loads(source.read_text(encoding="utf-8"))["updated_entry"]
    return [xdr.ConfigSettingEntry.from_json_dict(entry).to_xdr_bytes() for entry in updated]


@pytest.fixture(scope="session")
def settings(config_entries: list[bytes]) -> _native.NetworkSettings:
    return _native.NetworkSettings(config_entries)


@pytest.fixture(scope="session")
def probe_wasm() -> bytes:
    return bytes(pysoroban.compile_source(PROBE_SOURCE).wasm)


@pytest.fixture
def ledger(settings: _native.NetworkSettings, probe_wasm: bytes) -> MiniLedger:
    """A ledger on which the probe contract was just deployed."""
    result = MiniLedger(settings, probe_wasm)
    result.contract = result.deploy()
    return result
