"""The chain client over one Stellar RPC server: any network, and the embedded chain through an in-process
client."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stellar_sdk import Account, SorobanServer, TransactionBuilder, xdr
from stellar_sdk.client.requests_client import RequestsClient
from stellar_sdk.soroban_rpc import EventFilter, EventFilterType, GetTransactionStatus

from mycelium_sdk.chain import operations, translate
from mycelium_sdk.chain.base import (
    EXPIRING_WITHIN,
    ChainEvent,
    ChainIdentity,
    EntryState,
    EntryStatus,
    EventPage,
    Resources,
    Simulation,
    TransactionState,
    TransactionStatus,
)
from mycelium_sdk.chain.diagnostics import host_failure, return_value, transaction_result_code
from mycelium_sdk.chain.retry import RetryPolicy
from mycelium_sdk.chain.submit import Submitter
from mycelium_sdk.chain.transport import Transport
from mycelium_sdk.errors import ChainError, WrongDomain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stellar_sdk import Keypair
    from stellar_sdk.client.base_sync_client import BaseSyncClient
    from stellar_sdk.soroban_rpc import (
        EventInfo,
        GetTransactionResponse,
        LedgerEntryResult,
        SimulateTransactionResponse,
    )

    from mycelium_sdk.chain.base import BeforeSend, Receipt, SignedTransaction, Work

__all__ = ["READ_ONLY_ACCOUNT", "RpcChain"]

READ_ONLY_ACCOUNT = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
"""The account of the all-zero key, which nobody can sign for: the source of simulations that nobody signs."""

_HTTP_SECONDS = 20
_MINIMUM_FEE = 100


class RpcChain:
    """A `ChainClient` over the RPC server at `url`, expected to serve the network of `passphrase`.

    `client` sends the requests, by default over HTTP without retries of its own, since `policy` decides
    about those. `inclusion_fee` is the bid in stroops on top of the resource fee. Nothing is asked before
    the first use.
    """

    def __init__(
        self,
        url: str,
        passphrase: str,
        *,
        client: BaseSyncClient | None = None,
        policy: RetryPolicy | None = None,
        inclusion_fee: int = _MINIMUM_FEE,
    ) -> None:
        policy = policy or RetryPolicy()
        if client is None:
            client = RequestsClient(num_retries=0, request_timeout=_HTTP_SECONDS, post_timeout=_HTTP_SECONDS)
        self.url = url
        self.passphrase = passphrase
        self._transport = Transport(client, policy)
        self._server = SorobanServer(url, self._transport)
        self._domain_checked = False
        self._domain_lock = threading.Lock()
        self._submitter = Submitter(
            server=self._server,
            passphrase=passphrase,
            policy=policy,
            inclusion_fee=inclusion_fee,
            look_up=self.transaction,
            chain_time=self._chain_time,
            refused=self._refused,
        )

    def identity(self) -> ChainIdentity:
        """See `ChainClient`. The chain id is the field `chainId` of `getNetwork`, which only our own chains
        serve."""
        network = self._ask_network()
        with translate.decoding(self.url):
            latest = self._server.get_latest_ledger()
        chain_id = network.get("chainId")
        return ChainIdentity(
            passphrase=self.passphrase,
            chain_id=chain_id if isinstance(chain_id, str) else None,
            protocol=latest.protocol_version,
            latest_ledger=latest.sequence,
            close_time=latest.close_time,
        )

    def friendbot_url(self) -> str | None:
        """Where this network gives out funds, None where it does not."""
        url = self._ask_network().get("friendbotUrl")
        return url if isinstance(url, str) and url else None

    def fund(self, address: str) -> bool:
        """Have the network's friendbot create the account; False if it was there already.

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
        response = self._transport.get(url, {"addr": address})
        if 200 <= response.status_code < 300:
            return True
        if self._account_exists(address):  # somebody else was first
            return False
        raise ChainError(
            f"the friendbot refused with HTTP status {response.status_code}", hint="try again in a minute"
        )

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
                return _simulation(answer)
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
            return _transaction_state(self._server.get_transaction(transaction_hash), transaction_hash)

    def entries(
        self, keys: Sequence[xdr.LedgerKey], *, expiring_within: int = EXPIRING_WITHIN
    ) -> tuple[EntryState, ...]:
        """See `ChainClient`."""
        self._check_domain()
        with translate.decoding(self.url):
            answer = self._server.get_ledger_entries(list(keys))
            found = {entry.key: entry for entry in answer.entries or ()}
            return tuple(
                _entry_state(found.get(key.to_xdr()), answer.latest_ledger, expiring_within) for key in keys
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
            return EventPage(
                events=tuple(_event(item) for item in answer.events),
                cursor=answer.cursor,
                latest_ledger=answer.latest_ledger,
                oldest_ledger=answer.oldest_ledger,
            )

    def close(self) -> None:
        """See `ChainClient`."""
        self._transport.close()

    def _check_domain(self) -> None:
        """Ask once whether the server serves the expected network."""
        if not self._domain_checked:
            with self._domain_lock:
                if not self._domain_checked:
                    self._ask_network()
                    self._domain_checked = True

    def _ask_network(self) -> dict[str, object]:
        network = self._transport.call(self.url, "getNetwork")
        if network.get("passphrase") != self.passphrase:
            raise WrongDomain(
                f"{translate.server_name(self.url)} serves another network than the configured one"
            )
        return network

    def _chain_time(self) -> int:
        with translate.decoding(self.url):
            return self._server.get_latest_ledger().close_time

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


def _simulation(answer: SimulateTransactionResponse) -> Simulation:
    if answer.transaction_data is None or answer.min_resource_fee is None:
        raise ValueError("a simulation without transaction data")
    resources = xdr.SorobanTransactionData.from_xdr(answer.transaction_data).resources
    return Simulation(
        value=xdr.SCVal.from_xdr(answer.results[0].xdr) if answer.results else None,
        resource_fee=answer.min_resource_fee,
        resources=Resources(
            instructions=resources.instructions.uint32,
            read_bytes=resources.disk_read_bytes.uint32,
            write_bytes=resources.write_bytes.uint32,
            read_entries=len(resources.footprint.read_only),
            write_entries=len(resources.footprint.read_write),
        ),
        latest_ledger=answer.latest_ledger,
    )


def _transaction_state(answer: GetTransactionResponse, transaction_hash: str) -> TransactionState:
    if answer.status is GetTransactionStatus.NOT_FOUND:
        return TransactionState(
            status=TransactionStatus.NOT_FOUND,
            hash=transaction_hash,
            latest_ledger=answer.latest_ledger,
            latest_close_time=answer.latest_ledger_close_time,
        )
    if answer.result_xdr is None or answer.transaction_hash != transaction_hash:
        raise ValueError("another transaction, or one without a result")
    result = xdr.TransactionResult.from_xdr(answer.result_xdr)
    succeeded = answer.status is GetTransactionStatus.SUCCESS
    failure = None if succeeded else host_failure(answer.diagnostic_events_xdr)
    value = None
    if succeeded and answer.result_meta_xdr is not None:
        value = return_value(xdr.TransactionMeta.from_xdr(answer.result_meta_xdr))
    return TransactionState(
        status=TransactionStatus.SUCCESS if succeeded else TransactionStatus.FAILED,
        hash=transaction_hash,
        latest_ledger=answer.latest_ledger,
        latest_close_time=answer.latest_ledger_close_time,
        ledger=answer.ledger,
        close_time=answer.create_at,
        fee_charged=result.fee_charged.int64,
        result_code=transaction_result_code(result),
        value=value,
        contract_error=None if failure is None else failure.contract_error,
    )


def _entry_state(entry: LedgerEntryResult | None, latest_ledger: int, expiring_within: int) -> EntryState:
    if entry is None:
        return EntryState(EntryStatus.ABSENT, latest_ledger)
    data = xdr.LedgerEntryData.from_xdr(entry.xdr)
    live_until = entry.live_until_ledger
    if live_until is None:
        status = EntryStatus.LIVE
    elif live_until < latest_ledger:
        # Servers give archived entries with a 0, or with the ledger that has passed.
        status, live_until = EntryStatus.ARCHIVED, None
    elif live_until - latest_ledger < expiring_within:
        status = EntryStatus.EXPIRING
    else:
        status = EntryStatus.LIVE
    return EntryState(status, latest_ledger, live_until, entry.last_modified_ledger, data)


def _event(item: EventInfo) -> ChainEvent:
    return ChainEvent(
        id=item.id,
        contract_id=item.contract_id,
        ledger=item.ledger,
        close_time=int(item.ledger_close_at.timestamp()),
        transaction=item.transaction_hash,
        topics=tuple(xdr.SCVal.from_xdr(topic) for topic in item.topic),
        value=xdr.SCVal.from_xdr(item.value),
    )
