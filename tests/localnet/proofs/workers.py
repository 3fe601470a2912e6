"""What other processes do to a chain file while a test looks on."""

from __future__ import annotations

import os
from itertools import count
from typing import TYPE_CHECKING

from stellar_sdk import scval

from mycelium_localnet import Chain
from tests.localnet.ledger.lab import Lab, keypair

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

OWNER = keypair("owner")
SKIPPED = 3


def close_ledgers(path: str, contract_id: str, told: Connection) -> None:
    """Close ledgers, with and without transactions, until somebody ends this process.

    Tells `(last ledger before, last ledger after)` before each step. A killed process cannot: what it told
    last is what it was at.
    """
    with Chain.open(path) as chain:
        lab = Lab(chain, b"", contract_id)
        data = lab.prepare(OWNER, lab.put_call(1, 1)).transaction.soroban_data
        for step in count():
            last = lab.latest().sequence
            told.send((last, last + (SKIPPED if step % 4 == 3 else 1)))
            match step % 4:
                case 0:
                    chain.fund(keypair(f"account {os.getpid()} {step}").public_key)
                case 1:
                    call = lab.call("put", scval.to_uint32(1), scval.to_uint64(last))
                    lab.submit(lab.build(OWNER, call, soroban=data, fee=10**7))
                case 2:
                    chain.close_ledger()
                case _:
                    chain.skip_ledgers(SKIPPED)


def submit(path: str, envelopes: Sequence[bytes], told: Connection) -> None:
    """Hand in transactions, one ledger each, once the other side says so."""
    with Chain.open(path) as chain:
        told.send("open")
        told.recv()
        for envelope in envelopes:
            assert chain.submit(envelope).status == "PENDING"
        told.send("done")
