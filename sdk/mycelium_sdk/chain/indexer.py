"""The client of an indexer: latest anchors and histories, believed only where the chain proves them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mycelium_sdk.chain.history import AnchorHistory, NamedSource, PastAnchor, proved_history
from mycelium_sdk.chain.indexer_api import WITHOUT, IndexerApi, is_unknown_owner
from mycelium_sdk.errors import Fork, InputError, Rollback, Tampered, WrongOwner
from mycelium_sdk.strkey import check_contract, is_account, is_contract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.retry import RetryPolicy

    ReadAnchor = Callable[[str], Anchor | None]

__all__ = ["IndexedLatest", "IndexerClient"]

REQUEST_SECONDS = 5.0
HISTORY_SECONDS = 60.0

_PAGE = 200
_DISTRUST = f"do not use this indexer, and tell whoever runs it; {WITHOUT}"


@dataclass(frozen=True, slots=True)
class IndexedLatest:
    """An owner's newest anchor as an indexer has it: its word, until it is compared with the chain.

    `as_of_ledger`: everything up to that ledger is in; `lag`: by how many seconds that may be behind.
    """

    past: PastAnchor
    as_of_ledger: int
    lag: float


@dataclass(frozen=True, slots=True)
class _Claim:
    """What an indexer says of an owner: the newest anchor (None: none was seen), and of which ledgers.

    It speaks for those from `first_ledger` to `as_of_ledger`, apart from `missed`. An anchor that was written
    in one of them is one that it must have.
    """

    past: PastAnchor | None
    as_of_ledger: int
    lag: float
    first_ledger: int = 0
    missed: tuple[tuple[int, int], ...] = ()

    @property
    def latest(self) -> IndexedLatest | None:
        """The same for callers."""
        return None if self.past is None else IndexedLatest(self.past, self.as_of_ledger, self.lag)

    def covers(self, ledger: int | None) -> bool:
        """Whether an anchor of that ledger must be known."""
        if ledger is None or not self.first_ledger <= ledger <= self.as_of_ledger:
            return False
        return not _admitted(ledger, self.missed)


class IndexerClient:
    """Asks one indexer about one contract (C-address) on one network (its passphrase).

    Nothing is asked before the first call. May be used from several threads, and goes on in a forked child.
    Close it, or use it as a context manager.

    A request has `seconds` for all of it, and `history_seconds` is the limit for the pages of one history.
    `retries`: how what may pass is tried again; what a server asks for by `Retry-After` is waited for where
    it fits in.

    Every method raises `ChainUnavailable` if the indexer does not answer, in time or at all (`retry_after`:
    what it asked for), `WrongDomain` if it answers about another contract, or does not follow this one, and
    `ChainError` if what it answers is not its API.
    """

    def __init__(
        self,
        url: str,
        network: str,
        contract: str,
        *,
        retries: RetryPolicy | None = None,
        seconds: float = REQUEST_SECONDS,
        history_seconds: float = HISTORY_SECONDS,
    ) -> None:
        self._api = IndexerApi(url, network, check_contract(contract), retries=retries, seconds=seconds)
        self._history_seconds = history_seconds

    @property
    def name(self) -> str:
        """What messages call it: its host and port."""
        return self._api.name

    def latest(self, owner: str) -> IndexedLatest | None:
        """The owner's newest anchor as the indexer has it, None if it has seen none.

        For deciding whether to look closer; what is acted on comes from the chain, or is compared with it by
        `compare`. Raises InputError for what is no address.
        """
        return self._claim(owner).latest

    def compare(
        self, chain: Anchor, *, ledger: int | None = None, again: ReadAnchor | None = None
    ) -> IndexedLatest | None:
        """The owner's newest anchor as the indexer has it, compared with the one read from the chain.

        `ledger`: the one that wrote the anchor (`EntryState.last_modified`); with it, an indexer that lacks
        the anchor though it must have it is told from one that is behind. `again`: reads the owner's anchor
        once more, asked where the indexer has a newer one, which may have been made meanwhile. An indexer may
        be behind, which the result shows, or may not have looked as far back: None.

        Raises:
            Rollback: the indexer has a newer anchor than the chain: one of them is behind, or lies.
            Fork: both have the same version, and they differ.
            Tampered: the indexer leaves this anchor out.
            WrongOwner: it gave another owner's.
        """
        claim = self._claim(chain.owner)
        self._judge(claim, PastAnchor(chain, ledger), again)
        return claim.latest

    def history(self, latest: PastAnchor) -> AnchorHistory:
        """The history that ends in `latest`, which was read from the chain, as far as the indexer has it.

        Raises Tampered, WrongOwner, Fork or Rollback if it is not what `latest` commits to.
        """
        return proved_history(latest, [self.source(required=True)])

    def source(self, *, again: ReadAnchor | None = None, required: bool = False) -> NamedSource:
        """The histories that the indexer serves, for `proved_history`; up to the first gap that it admits.

        `again`: see `compare`. Unless `required`, an indexer that cannot be used is a note of the history.
        """

        def read(latest: PastAnchor) -> Iterable[PastAnchor]:
            return self._versions(latest, again)

        return NamedSource(self.name, read, advice=_DISTRUST, required=required)

    def close(self) -> None:
        """Let go of connections. Closing twice is harmless; a call after it opens new ones."""
        self._api.close()

    def __enter__(self) -> IndexerClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- what it says, and whether that can be

    def _claim(self, owner: str) -> _Claim:
        found = self._api.get(_path(owner))
        if is_unknown_owner(found):
            return self._ignorance(found)
        return _Claim(self._past(found, owner), *self._standing(found))

    def _ignorance(self, problem: Mapping[str, Any]) -> _Claim:
        api = self._api
        missed = tuple(api.ranges(problem, "missed_ledgers"))
        return _Claim(None, *self._standing(problem), api.ledger(problem, "first_ledger"), missed)

    def _standing(self, document: Mapping[str, Any]) -> tuple[int, float]:
        return self._api.ledger(document, "as_of_ledger"), self._api.seconds(document, "lag")

    def _past(self, item: object, owner: str) -> PastAnchor:
        past = self._api.past(item)
        if past.anchor.owner != owner:
            raise WrongOwner(f"{self.name} gave another owner's anchor", hint=_DISTRUST)
        return past

    def _judge(self, claim: _Claim, chain: PastAnchor, again: ReadAnchor | None) -> None:
        """Raise unless the indexer and the chain can both be telling the truth. See `compare`."""
        on_chain = chain.anchor
        indexed = None if claim.past is None else claim.past.anchor
        if indexed is not None and indexed.version > on_chain.version and again is not None:
            newer = again(on_chain.owner)
            if newer is not None and newer.version > on_chain.version:
                on_chain = newer
        version = 0 if indexed is None else indexed.version
        if version > on_chain.version:
            raise Rollback(
                f"{self.name} has version {version} of this owner, and the chain serves version"
                f" {on_chain.version}",
                hint="read the chain again, from another RPC server: this one is behind, or the indexer"
                f" invents anchors; {WITHOUT}",
            )
        if version == on_chain.version and indexed != on_chain:
            raise Fork(
                f"{self.name} has another version {version} of this owner than the chain", hint=_DISTRUST
            )
        if version < chain.anchor.version and claim.covers(chain.ledger):
            raise Tampered(
                f"{self.name} leaves out version {chain.anchor.version} of this owner, of ledger"
                f" {chain.ledger}, though it says that it has everything up to ledger {claim.as_of_ledger}",
                hint=_DISTRUST,
            )

    def _versions(self, latest: PastAnchor, again: ReadAnchor | None) -> Iterator[PastAnchor]:
        """The owner's anchors, newest first. Pages are asked for as they are needed."""
        owner = latest.anchor.owner
        deadline = time.monotonic() + self._history_seconds
        query = {"limit": str(_PAGE)}
        page = self._api.get(_path(owner) + "/history", query, deadline=deadline)
        if is_unknown_owner(page):
            self._judge(self._ignorance(page), latest, again)
            return
        items = self._api.items(page, "items")
        if not items:
            raise self._api.misfit("it has a history of nothing")
        self._judge(_Claim(self._past(items[0], owner), *self._standing(page)), latest, again)
        above: int | None = None
        while True:
            missing = tuple(self._api.ranges(page, "gaps"))
            for item in items:
                past = self._past(item, owner)
                version = past.anchor.version
                if above is not None and version != above - 1:
                    if _admitted(above - 1, missing):
                        return
                    raise self._omitted(above - 1)
                yield past
                above = version
            cursor = self._api.cursor(page)
            if cursor is None:
                if above is not None and above > 1 and not _admitted(above - 1, missing):
                    raise self._omitted(above - 1)
                return
            if not items:
                raise self._api.misfit("its history does not go on")
            page = self._api.get(_path(owner) + "/history", {**query, "cursor": cursor}, deadline=deadline)
            items = self._api.items(page, "items")

    def _omitted(self, version: int) -> Tampered:
        return Tampered(
            f"{self.name} serves a false history: it leaves out version {version}, and names no gap there",
            hint=_DISTRUST,
        )


def _admitted(number: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= number <= last for first, last in ranges)


def _path(owner: str) -> str:
    """Where an owner is found. Raises InputError for what is no address; it is not repeated."""
    if not (is_account(owner) or is_contract(owner)):
        raise InputError("this is no address of an owner", hint="give an account (G...) or a contract (C...)")
    return f"/memory/{owner}"
