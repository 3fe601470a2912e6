"""Puts contracts on a chain, and the MemoryAnchor contract on the local one when it is first needed."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from stellar_sdk import Keypair

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.addresses import LOCAL_SALT, local_contract_id, local_deployer_seed
from mycelium_sdk.chain.artifact import memory_anchor_wasm
from mycelium_sdk.chain.base import ChainClient, EntryStatus
from mycelium_sdk.errors import ChainError, InputError

if TYPE_CHECKING:
    from mycelium_sdk.chain.base import Receipt

__all__ = [
    "Deployment",
    "FundedChain",
    "Notify",
    "deploy",
    "ensure_funded",
    "ensure_local_contract",
]

Notify = Callable[[str], None]
"""Told, in a sentence, what is being done without having been asked for."""

_WASM_MAGIC = b"\x00asm"


class FundedChain(ChainClient, Protocol):
    """A chain whose network gives out funds, as test networks do."""

    passphrase: str

    def fund(self, address: str) -> bool:
        """Create the account with some XLM; False if it was there already."""
        ...


@dataclass(frozen=True, slots=True)
class Deployment:
    """A contract that was made: its address, the hash of its code, and what it cost in stroops.

    `uploaded` is None where the code was on the chain already.
    """

    contract_id: str
    code_hash: bytes
    uploaded: Receipt | None
    created: Receipt

    @property
    def fee_charged(self) -> int:
        """Both transactions together, in stroops."""
        return self.created.fee_charged + (0 if self.uploaded is None else self.uploaded.fee_charged)


def deploy(chain: ChainClient, wasm: bytes, signer: Keypair, *, salt: bytes | None = None) -> Deployment:
    """Upload the code, unless it is there, and make a contract of it.

    The address follows from network, signer and `salt` (32 bytes, random by default).

    Raises:
        InputError: `wasm` is no WebAssembly, or `salt` has another length.
        ChainError: a contract is at that address already, or as `ChainClient.submit` says.
    """
    if not wasm.startswith(_WASM_MAGIC):
        raise InputError("the contract's code is not WebAssembly", hint="give the bytes of a .wasm file")
    salt = secrets.token_bytes(32) if salt is None else salt
    if len(salt) != 32:
        raise InputError(f"a salt has 32 bytes, not {len(salt)}")
    code_hash = hashlib.sha256(wasm).digest()
    (code,) = chain.entries([operations.code_key(code_hash)])
    uploaded = None
    if code.status in {EntryStatus.ABSENT, EntryStatus.ARCHIVED}:
        uploaded = chain.submit(operations.upload_code(wasm), signer)
    contract_id = operations.contract_id_of(chain.identity().passphrase, signer.public_key, salt)
    created = chain.submit(operations.create_contract(code_hash, signer.public_key, salt), signer)
    return Deployment(contract_id, code_hash, uploaded, created)


def ensure_funded(chain: FundedChain, address: str, notify: Notify | None) -> None:
    """Make sure that the account exists, by the network's friendbot. Safe when several processes do it at
    once."""
    (state,) = chain.entries([operations.account_key(address)])
    if state.status is EntryStatus.ABSENT and chain.fund(address) and notify is not None:
        notify(f"funded the account {address} with this network's play money")


def ensure_local_contract(chain: FundedChain, notify: Notify | None) -> str:
    """The address of the local chain's MemoryAnchor contract, deployed now if it is not there yet.

    Safe when several processes do it at once: one of them makes the contract, the others find it.
    """
    contract_id = local_contract_id(chain.passphrase)
    if is_deployed(chain, contract_id):
        return contract_id
    deployer = Keypair.from_raw_ed25519_seed(local_deployer_seed())
    chain.fund(deployer.public_key)
    try:
        deploy(chain, memory_anchor_wasm(), deployer, salt=LOCAL_SALT)
    except ChainError:
        if not is_deployed(chain, contract_id):
            raise
        return contract_id
    if notify is not None:
        notify(f"deployed the MemoryAnchor contract on the local chain: {contract_id}")
    return contract_id


def is_deployed(chain: ChainClient, contract_id: str) -> bool:
    """Whether there is a contract at the address, live or archived."""
    (state,) = chain.entries([operations.instance_key(contract_id)])
    return state.status is not EntryStatus.ABSENT
