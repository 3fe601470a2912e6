"""The friendbot: who gets money, and how clients learn that an account is there already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Keypair, SorobanServer
from stellar_sdk import xdr as stellar_xdr

from mycelium_localnet import IN_PROCESS_URL, Chain, InProcessClient
from mycelium_localnet.errors import ChainBusyError, FundingError
from mycelium_localnet.rpc.friendbot import Funding, friendbot

if TYPE_CHECKING:
    from tests.localnet.rpc.conftest import Net

SOMEBODY = Keypair.from_raw_ed25519_seed(b"somebody".ljust(32, b"."))


def balance(net: Net, address: str) -> int:
    key = stellar_xdr.LedgerKey(
        stellar_xdr.LedgerEntryType.ACCOUNT,
        account=stellar_xdr.LedgerKeyAccount(Keypair.from_public_key(address).xdr_account_id()),
    )
    (entry,) = net.result("getLedgerEntries", {"keys": [key.to_xdr()]})["entries"]
    account = stellar_xdr.LedgerEntryData.from_xdr(entry["xdr"]).account
    assert account is not None
    return account.balance.int64


def test_a_new_account_has_its_money_when_the_answer_comes(net: Net) -> None:
    status, body = friendbot(net.chain, SOMEBODY.public_key)
    assert status == 200
    assert balance(net, SOMEBODY.public_key) == 10_000 * 10**7
    found = net.result("getTransaction", {"hash": body["hash"]})
    assert found["status"] == "SUCCESS"
    assert (body["successful"], body["ledger"]) == (True, found["ledger"])
    assert body["envelope_xdr"] == found["envelopeXdr"]
    assert body["result_xdr"] == found["resultXdr"]
    assert body["result_meta_xdr"] == found["resultMetaXdr"]


def test_the_new_accounts_sequence_can_be_read_from_the_meta(net: Net) -> None:
    _status, body = friendbot(net.chain, SOMEBODY.public_key)
    meta = stellar_xdr.TransactionMeta.from_xdr(str(body["result_meta_xdr"])).v4
    assert meta is not None
    created = [
        change.created.data.account
        for operation in meta.operations
        for change in operation.changes.ledger_entry_changes
        if change.created is not None
    ]
    assert [account and account.seq_num.sequence_number.int64 for account in created] == [
        int(str(body["ledger"])) << 32
    ]


def test_an_account_that_exists_is_told_by_the_detail(net: Net) -> None:
    friendbot(net.chain, SOMEBODY.public_key)
    status, body = friendbot(net.chain, SOMEBODY.public_key)
    assert status == 400
    assert "createAccountAlreadyExist" in str(body["detail"])
    assert body["status"] == 400


@pytest.mark.parametrize("address", [None, "", "G", "nonsense", SOMEBODY.secret, "M" * 69])
def test_what_is_no_account_is_refused(net: Net, address: str | None) -> None:
    before = net.result("getHealth")
    status, body = friendbot(net.chain, address)
    assert status == 400
    assert "addr" in str(body["detail"])
    assert SOMEBODY.secret not in str(body)
    assert net.result("getHealth") == before


@pytest.mark.parametrize(("error", "expected"), [(ChainBusyError("busy"), 503), (FundingError("poor"), 500)])
def test_trouble_has_a_status(
    net: Net, monkeypatch: pytest.MonkeyPatch, error: Exception, expected: int
) -> None:
    def fail(_address: str) -> str:
        raise error

    monkeypatch.setattr(net.chain, "fund", fail)
    status, body = friendbot(net.chain, SOMEBODY.public_key)
    assert (status, body["status"], body["detail"]) == (expected, expected, str(error))


def test_it_answers_after_its_ledger_also_with_manual_closing() -> None:
    with Chain.open(":memory:", seed=b"manual", closing="manual") as chain:
        status, body = friendbot(chain, SOMEBODY.public_key)
        assert (status, body["successful"]) == (200, True)
        server = SorobanServer(IN_PROCESS_URL, InProcessClient(chain))
        assert server.load_account(SOMEBODY.public_key).sequence == int(str(body["ledger"])) << 32


def test_an_account_that_is_being_funded_is_there_before_it_is_said_to_be() -> None:
    with Chain.open(":memory:", seed=b"manual", closing="manual") as chain:
        first, second = Funding(chain, SOMEBODY.public_key), Funding(chain, SOMEBODY.public_key)
        assert second.look() is not None
        server = SorobanServer(IN_PROCESS_URL, InProcessClient(chain))
        server.load_account(SOMEBODY.public_key)
        for funding in (first, second):
            assert funding.look() is None
        assert first.answer[0] == 200
        assert second.answer[0] == 400
        assert "createAccountAlreadyExist" in str(second.answer[1]["detail"])
