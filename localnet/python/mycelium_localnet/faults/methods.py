"""The faults as methods of a chain, and what its doors ask before they answer."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from mycelium_localnet.cheats.interventions import expire
from mycelium_localnet.errors import ChainBusyError, ChainFileError
from mycelium_localnet.faults import archival, kinds, store
from mycelium_localnet.faults.door import Trouble, methods_in, trouble_of
from mycelium_localnet.faults.fork import ForkedView
from mycelium_localnet.faults.intake import examine
from mycelium_localnet.faults.kinds import DOOR_KINDS, KINDS, Fault
from mycelium_localnet.faults.views import HidingView, LaggingView, TrimmedView
from mycelium_localnet.opened import OpenChain

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from mycelium_localnet.faults.kinds import FaultKind
    from mycelium_localnet.rows import Submission
    from mycelium_localnet.view import ReadView

_ANSWER_KINDS = frozenset(KINDS) - DOOR_KINDS


class Faults(OpenChain):
    """Part of `Chain`. Faults concern those who ask through a door (an in-process client, the server), never
    the methods of `Chain` itself."""

    def fault(
        self,
        kind: FaultKind,
        *,
        count: int = 1,
        methods: Iterable[str] | None = None,
        seed: int = 0,
        seconds: float | None = None,
        ledgers: int | None = None,
        key: bytes | str | None = None,
        owner: str | None = None,
        carried_out: bool | None = None,
    ) -> int:
        """Have the next `count` requests go wrong, and return the fault's number.

        `methods`: only requests for these (`"friendbot"` is one); None for all that the kind can hit. Of
        several faults that fit a request, the one that was set first hits it. They live in the chain file:
        all doors of all processes show them, until they are used up or cleared.

        * `http_503`, `http_504`, `html`: HTTP statuses 503, 504, and 502 with a page. `drop`: the connection
          is closed. `slow`: the answer takes `seconds` (1). Whether a request is carried out whose answer
          is lost (always lost before with 503): `carried_out`, or as the `seed` has it, hit by hit.
        * `try_again_later`: sendTransaction takes nothing and says so. `never_closes`: it takes valid
          transactions, and no ledger ever holds them. `not_found`: getTransaction knows nothing.
        * `stale`: the answer is that of `ledgers` (1) ledgers ago. `fork`: the last `ledgers` (1) have other
          hashes, and all 32-byte values that they wrote are others, made from `seed`. `retention`: of history
          only the last `ledgers` (1) are kept.
        * `archive`: before the request is answered, an entry is archived, really: the one of `key` (a
          LedgerKey), or those whose keys hold the address `owner`, or all contract data.

        Raises InvalidRequestError.
        """
        fault = kinds.make(
            kind, count=count, methods=methods, seed=seed, seconds=seconds, ledgers=ledgers, key=key,
            owner=owner, carried_out=carried_out,
        )  # fmt: skip
        with self._writing() as connection:
            return store.add(connection, fault)

    def faults(self) -> tuple[Fault, ...]:
        """What is set and not used up, in the order in which it was set."""
        with self._reading() as connection:
            return tuple(store.everything(connection))

    def clear_faults(self) -> int:
        """Have nothing go wrong any more. Returns how many faults there were."""
        with self._writing() as connection:
            return store.clear(connection)

    def trouble(self, body: bytes | None) -> Trouble | None:
        """For doors: what befalls a request before and after it is carried out, None when nothing does. Uses
        up a hit. `body`: of a JSON-RPC request; None for the friendbot.

        Raises ChainClosedError; whatever else is wrong with the chain is for the answer to tell.
        """
        with suppress(ChainFileError, ChainBusyError):
            with self._reading() as connection:
                armed = any(fault.kind in DOOR_KINDS for fault in store.everything(connection))
            names = methods_in(body) if armed else None
            if names is not None:
                with self._writing() as connection:
                    fault = store.take(connection, names, DOOR_KINDS)
                return None if fault is None else trouble_of(fault)
        return None

    def serving(self, method: str) -> Self:
        """For doors: the chain as the next answer of `method` shows it, which is this one unless a fault hits
        it. Uses up a hit. What comes back is this chain seen differently, and closed with it."""
        with self._reading() as connection:
            if store.find(connection, (method,), _ANSWER_KINDS) is None:
                return self
        with self._writing() as connection:
            fault = store.take(connection, (method,), _ANSWER_KINDS)
            if fault is not None and fault.kind == "archive":
                expire(connection, self._network, archival.wanted_keys(connection, fault))
                return self
        return self if fault is None else self._seen_through(fault)

    def _seen_through(self, fault: Fault) -> Self:
        seen = copy(self)

        def view(connection: sqlite3.Connection, fee_write_1kb: int) -> ReadView:
            if fault.kind == "not_found":
                return HidingView(connection, fee_write_1kb)
            if fault.kind == "retention":
                return TrimmedView(connection, fee_write_1kb, fault.ledgers)
            if fault.kind == "stale":
                return LaggingView(connection, fee_write_1kb, fault.ledgers)
            return ForkedView(connection, fee_write_1kb, fault.ledgers, fault.seed)

        def intake(connection: sqlite3.Connection, envelope: bytes) -> Submission:
            fee_write_1kb = self.settings.fee_per_write_1kb
            answer = examine(connection, lambda: self._take_in(connection, envelope), fee_write_1kb)
            if answer.status != "PENDING":
                return answer
            if fault.kind == "try_again_later":
                return replace(answer, status="TRY_AGAIN_LATER")
            if answer.hash.hex() in fault.held:
                return replace(answer, status="DUPLICATE")
            store.hold(connection, fault, answer.hash.hex())
            return answer

        if fault.kind in ("try_again_later", "never_closes"):
            seen._intake = intake  # noqa: SLF001 - of this class
        else:
            seen._view = view  # noqa: SLF001
        return seen
