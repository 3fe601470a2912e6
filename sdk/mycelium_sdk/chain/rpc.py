"""The chain client over one Stellar RPC server: any network, and the embedded chain through an in-process
client."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from stellar_sdk import Account, SorobanServer, TransactionBuilder, xdr
from stellar_sdk.soroban_rpc import EventFilter, EventFilterType

from mycelium_sdk.chain import answers, operations, translate
from mycelium_sdk.chain.base import (
    EXPIRING_WITHIN,
    EntryState,
    EntryStatus,
    Simulation,
    TransactionState,
)
from mycelium_sdk.chain.diagnostics import host_failure
from mycelium_sdk.chain.fees import DEFAULT_MAX_FEE, unquoted_fee
from mycelium_sdk.chain.http_client import HttpClient
from mycelium_sdk.chain.submit import Submitter
from mycelium_sdk.chain.transport import Transport
from mycelium_sdk.errors import ChainError, ChainUnavailable, WrongDomain
from mycelium_sdk.retry import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stellar_sdk import Keypair
    from stellar_sdk.client.base_sync_client import BaseSyncClient
    from stellar_sdk.soroban_rpc import SimulateTransactionResponse

    from mycelium_sdk.chain.base import (
        BeforeSend,
        ChainIdentity,
        EventPage,
        LedgerHead,
        Receipt,
        SignedTransaction,
        Work,
    )

__all__ = ["READ_ONLY_ACCOUNT", "RpcChain"]

READ_ONLY_ACCOUNT = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
"""The account of the all-zero key, which nobody can sign for: the source of simulations that nobody signs."""

_MINIMUM_FEE = 100
_LAGGING_LOOKS = 7  # 12 to 16 seconds
_DOMAIN_SECONDS = 60.0  # for so long an address that served the expected network is taken to do so still


class RpcChain:
    """A `ChainClient` over the RPC server at `url`, expected to serve the network of `passphrase`.

    `client` sends the requests, by default an `HttpClient`, which never tries again by itself, since `policy`
    decides about that. `inclusion_fee` is the bid in stroops on top of the resource fee, `max_fee` the most
    that a transaction may cost with both, whatever the server says. Nothing is asked before the first use.

    Time limits, as it comes: a request takes 20 seconds at most (`REQUEST_SECONDS`). What asks is repeated as
    `policy` says and takes 50, since no wait that ends after 30 is begun. A submission asks four times, then
    sends for 100 seconds at most (30, and the request and the question that were begun by then), and waits
    for 140 (90, and the question that was begun by then).
    """

    lags: ClassVar[bool] = True
    """Whether the server may not know a transaction yet though it names the ledger that holds it, as it may
    where several servers answer under one address."""

    def __init__(
        self,
        url: str,
        passphrase: str,
        *,
        client: BaseSyncClient | None = None,
        policy: RetryPolicy | None = None,
        inclusion_fee: int = _MINIMUM_FEE,
        max_fee: int = DEFAULT_MAX_FEE,
    ) -> None:
        policy = policy or RetryPolicy()
        self.url = url
        self.passphrase = passphrase
        self.inclusion_fee = inclusion_fee
        self.max_fee = max_fee
        self._transport = Transport(HttpClient() if client is None else client, policy)
        self._server = SorobanServer(url, self._transport)
        self._policy = policy
        self._monotonic = policy.pace.monotonic
        self._domain_known_until: float | None = None
        self._submitter = Submitter(
            server=self._server,
            passphrase=passphrase,
            policy=policy,
            inclusion_fee=inclusion_fee,
            max_fee=max_fee,
            look_up=self.transaction,
            sequence=self._sequence,
            lagging_looks=_LAGGING_LOOKS if self.lags else 0,
            latest=self._latest,
            refused=self._refused,
            unquoted_fee=self._unquoted_fee,
        )

    def identity(self) -> ChainIdentity:
        """See `ChainClient`. The chain id is the field `chainId` of `getNetwork`, which only our own chains
        serve."""
        network = self._ask_network()
        with translate.decoding(self.url):
            return answers.identity(network, self._server.get_latest_ledger(), self.passphrase)

    def friendbot_url(self) -> str | None:
        """Where this network gives out funds, None where it does not."""
        url = self._ask_network().get("friendbotUrl")
        return url if isinstance(url, str) and url else None

    def fund(self, address: str) -> bool:
        """Have the network's friendbot create the account; False if it was there already.

        Asking again does no harm, since nobody is funded twice: a lost answer is repeated as `policy` says.

        Raises:
            ChainError: the network has no friendbot, or it refused.
        """
        if self._account_exists(address):
            return False
        url = self.friendbot_url()
        if url is None:
            raise ChainError(
                "this network has no friendbot", hint="send some XLM to the account to create it"
            )

        def ask() -> bool:
            try:
                status = self._transport.get(url, {"addr": address}).status_code
            except ChainUnavailable:
                if self._account_exists(address):  # only the answer was lost
                    return True
                raise
            if 200 <= status < 300:
                return True
            if self._account_exists(address):  # somebody else was first, or an answer was lost
                return False
            kind = ChainUnavailable if translate.may_pass(status) else ChainError
            raise kind(f"the friendbot refused with HTTP status {status}", hint="try again in a minute")

        return self._policy.call(ask)

    def simulate(self, work: Work, *, source: str | None = None) -> Simulation:
        """See `ChainClient`. Without a `source` the one of the all-zero key stands in."""
        self._check_domain()
        builder = (
            TransactionBuilder(
                Account(source or READ_ONLY_ACCOUNT, 0), self.passphrase, base_fee=_MINIMUM_FEE
            )
            .append_operation(work.operation)
            .add_time_bounds(0, 0)
        )
        if work.data is not None:
            builder.set_soroban_data(work.data)
        envelope = builder.build()
        with translate.decoding(self.url):
            answer = self._server.simulate_transaction(envelope, use_upgraded_auth=False)
            if answer.error is None:
                found = answers.simulation(answer)
                missing = self._unquoted_fee(work, answers.transaction_data(answer))
                return dataclasses.replace(found, resource_fee=found.resource_fee + missing)
        raise self._refused(work, answer)

    def submit(self, work: Work, signer: Keypair, *, before_send: BeforeSend | None = None) -> Receipt:
        """See `ChainClient`."""
        self._check_domain()
        return self._submitter.submit(work, signer, before_send)

    def resume(self, signed: SignedTransaction) -> Receipt:
        """See `ChainClient`."""
        self._check_domain()
        return self._submitter.resume(signed)

    def transaction(self, transaction_hash: str) -> TransactionState:
        """See `ChainClient`."""
        self._check_domain()
        with translate.decoding(self.url):
            return answers.transaction_state(self._server.get_transaction(transaction_hash), transaction_hash)

    def entries(
        self, keys: Sequence[xdr.LedgerKey], *, expiring_within: int = EXPIRING_WITHIN
    ) -> tuple[EntryState, ...]:
        """See `ChainClient`."""
        self._check_domain()
        with translate.decoding(self.url):
            answer = self._server.get_ledger_entries(list(keys))
            found = {entry.key: entry for entry in answer.entries or ()}
            return tuple(
                answers.entry_state(key, found.get(key.to_xdr()), answer.latest_ledger, expiring_within)
                for key in keys
            )

    def events(
        self,
        contract_id: str,
        *,
        start_ledger: int | None = None,
        cursor: str | None = None,
        topics: Sequence[xdr.SCVal | None] | None = None,
        limit: int = 100,
    ) -> EventPage:
        """See `ChainClient`."""
        self._check_domain()
        wanted = EventFilter(
            type=EventFilterType.CONTRACT,
            contractIds=[contract_id],
            topics=None if topics is None else [["*" if t is None else t.to_xdr() for t in topics]],
        )
        with translate.decoding(self.url):
            answer = self._server.get_events(
                start_ledger=start_ledger, filters=[wanted], cursor=cursor, limit=limit
            )
            return answers.event_page(answer)

    def ledger(self, sequence: int) -> LedgerHead | None:
        """See `ChainClient`."""
        self._check_domain()
        with translate.decoding(self.url):
            try:
                found = self._server.get_ledgers(start_ledger=sequence, limit=1).ledgers
            except ChainUnavailable:
                raise
            except ChainError:
                health = self._server.get_health()
                if health.oldest_ledger <= sequence <= health.latest_ledger:
                    raise
                return None
            head = next((one for one in found if one.sequence == sequence), None)
            return None if head is None else answers.ledger_head(head)

    def close(self) -> None:
        """See `ChainClient`."""
        self._transport.close()

    def _check_domain(self) -> None:
        """Make sure that the server serves the expected network, by an answer that is not old.

        Threads that need one at the same time each ask: none waits for what another one waits for.
        """
        known_until = self._domain_known_until
        if known_until is None or self._monotonic() >= known_until:
            self._ask_network()

    def _ask_network(self) -> dict[str, object]:
        asked_at = self._monotonic()
        network = self._transport.call(self.url, "getNetwork")
        if network.get("passphrase") != self.passphrase:
            self._domain_known_until = None
            raise WrongDomain(
                f"{translate.server_name(self.url)} serves another network than the configured one"
            )
        self._domain_known_until = asked_at + _DOMAIN_SECONDS
        return network

    def _latest(self) -> tuple[int, int]:
        with translate.decoding(self.url):
            return answers.latest_ledger(self._server.get_latest_ledger())

    def _unquoted_fee(self, work: Work, data: xdr.SorobanTransactionData) -> int:
        with translate.decoding(self.url):
            return unquoted_fee(work, data, lambda key: self.entries([key])[0])

    def _sequence(self, address: str) -> tuple[int | None, int]:
        (state,) = self.entries([operations.account_key(address)])
        account = None if state.data is None else state.data.account
        return None if account is None else account.seq_num.sequence_number.int64, state.latest_ledger

    def _account_exists(self, address: str) -> bool:
        (state,) = self.entries([operations.account_key(address)])
        return state.status is not EntryStatus.ABSENT

    def _refused(self, work: Work, answer: SimulateTransactionResponse) -> ChainError:
        with translate.decoding(self.url):
            failure = host_failure(answer.events)
        missing = failure is not None and failure.missing_value and self._contract_is_missing(work)
        return translate.simulation_refused(failure, contract_missing=missing)

    def _contract_is_missing(self, work: Work) -> bool:
        function = getattr(work.operation, "host_function", None)
        if not isinstance(function, xdr.HostFunction) or function.invoke_contract is None:
            return False
        contract = function.invoke_contract.contract_address
        key = xdr.LedgerKey(
            xdr.LedgerEntryType.CONTRACT_DATA,
            contract_data=xdr.LedgerKeyContractData(
                contract=contract,
                key=xdr.SCVal(xdr.SCValType.SCV_LEDGER_KEY_CONTRACT_INSTANCE),
                durability=xdr.ContractDataDurability.PERSISTENT,
            ),
        )
        (state,) = self.entries([key])
        return state.status is EntryStatus.ABSENT
