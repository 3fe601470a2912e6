"""The faults that can be set: their kinds, which requests each can hit, and what each can be told."""

from __future__ import annotations

from binascii import a2b_base64
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from stellar_sdk import StrKey

from mycelium_localnet import keys
from mycelium_localnet.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

FaultKind: TypeAlias = Literal[
    "try_again_later", "not_found", "http_503", "http_504", "html", "slow", "drop", "retention", "archive",
    "stale", "fork", "never_closes",
]  # fmt: skip

KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)

FRIENDBOT: Final = "friendbot"
"""What a request to the friendbot is called among the methods."""

_SEND: Final = ("sendTransaction",)
_HISTORY: Final = ("getEvents", "getHealth", "getLedgers", "getTransaction", "getTransactions")
_READ: Final = (*_HISTORY, "getFeeStats", "getLatestLedger", "getLedgerEntries", "simulateTransaction")
ALL: Final = (*_READ, *_SEND, "getNetwork", "getVersionInfo", FRIENDBOT)

DOOR_KINDS: Final[frozenset[FaultKind]] = frozenset({"http_503", "http_504", "html", "slow", "drop"})
"""Those that befall an HTTP request as a whole; the others show in the answer of a method."""

_CONCERNS: Final[dict[FaultKind, tuple[str, ...]]] = {
    **dict.fromkeys(DOOR_KINDS, ALL),
    "try_again_later": _SEND,
    "never_closes": _SEND,
    "not_found": ("getTransaction",),
    "retention": _HISTORY,
    "archive": (*_SEND, "getLedgerEntries", "simulateTransaction"),
    "stale": _READ,
    "fork": _READ,
}
_TAKES: Final[dict[FaultKind, tuple[str, ...]]] = {
    **dict.fromkeys(KINDS, ()),
    "http_504": ("carried_out",),
    "html": ("carried_out",),
    "drop": ("carried_out",),
    "slow": ("seconds",),
    "retention": ("ledgers",),
    "stale": ("ledgers",),
    "fork": ("ledgers",),
    "archive": ("key", "owner"),
}
_MAXIMUM_COUNT: Final = 2**32 - 1
_MAXIMUM_SEED: Final = 2**63 - 1
_MAXIMUM_SECONDS: Final = 3_600.0
_MAXIMUM_LEDGERS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault that was set. `count`: how many requests it will still hit; `hits`: how many it has hit;
    `methods`: only requests for these, () for all that the kind concerns; `held`: hashes of the transactions
    that it keeps from their ledger. The rest: see `Chain.fault`."""

    kind: FaultKind
    count: int = 1
    methods: tuple[str, ...] = ()
    seed: int = 0
    seconds: float = 1.0
    ledgers: int = 1
    key: bytes | None = None
    owner: str | None = None
    carried_out: bool | None = None
    id: int = 0
    hits: int = 0
    held: tuple[str, ...] = ()

    def concerns(self, names: Collection[str]) -> bool:
        """Whether it hits a request for these methods (several in a batch, none where they are not known)."""
        if not names:
            return not self.methods and self.kind in DOOR_KINDS
        wanted = self.methods or _CONCERNS[self.kind]
        return any(name in wanted for name in names)

    def is_carried_out(self) -> bool:
        """Whether the request that is hit takes effect, though its answer is lost: what was asked for, or
        else as the seed has it for this hit."""
        if self.carried_out is not None:
            return self.carried_out
        return bool(sha256(b"%d %d" % (self.seed, self.hits)).digest()[0] & 1)


def make(
    kind: str,
    *,
    count: int,
    methods: Iterable[str] | None,
    seed: int,
    seconds: float | None,
    ledgers: int | None,
    key: bytes | str | None,
    owner: str | None,
    carried_out: bool | None,
) -> Fault:
    """A checked fault; None stands for the default. Raises InvalidRequestError."""
    if kind not in KINDS:
        raise InvalidRequestError(f"there is no fault {kind!r}", hint=f"the faults are {', '.join(KINDS)}")
    given = {"seconds": seconds, "ledgers": ledgers, "key": key, "owner": owner, "carried_out": carried_out}
    for name, value in given.items():
        if value is not None and name not in _TAKES[kind]:
            takes = ", ".join(_TAKES[kind]) or "nothing of its own"
            raise InvalidRequestError(f"the fault {kind} has no {name}", hint=f"it takes {takes}")
    _check_range("count", count, 1, _MAXIMUM_COUNT)
    _check_range("seed", seed, 0, _MAXIMUM_SEED)
    _check_range("ledgers", 1 if ledgers is None else ledgers, 1, _MAXIMUM_LEDGERS)
    _check_range("seconds", 1.0 if seconds is None else seconds, 0.0, _MAXIMUM_SECONDS)
    if owner is not None and not StrKey.is_valid_ed25519_public_key(owner):
        raise InvalidRequestError("owner must be the address of an account", hint="it begins with G")
    if key is not None and owner is not None:
        raise InvalidRequestError("key and owner cannot both be given")
    return Fault(
        kind,
        count,
        _check_methods(kind, methods),
        seed,
        1.0 if seconds is None else float(seconds),
        1 if ledgers is None else ledgers,
        None if key is None else _check_key(key),
        owner,
        carried_out,
    )


def _check_range(name: str, value: float, lowest: float, highest: float) -> None:
    # Also refuses what is not a number.
    if not lowest <= value <= highest:
        raise InvalidRequestError(f"{name} must be from {lowest:g} to {highest:.15g}, not {value}")


def _check_methods(kind: FaultKind, methods: Iterable[str] | None) -> tuple[str, ...]:
    if methods is None:
        return ()
    wanted = (methods,) if isinstance(methods, str) else tuple(dict.fromkeys(methods))
    if not wanted:
        raise InvalidRequestError("methods is empty", hint="leave it out to hit every request")
    for name in wanted:
        if name not in _CONCERNS[kind]:
            concerned = ", ".join(sorted(_CONCERNS[kind]))
            raise InvalidRequestError(f"the fault {kind} cannot hit {name!r}", hint=f"it hits {concerned}")
    return wanted


def _check_key(key: bytes | str) -> bytes:
    try:
        data = key if isinstance(key, bytes) else a2b_base64(key, strict_mode=True)
    except ValueError as error:
        raise InvalidRequestError("key must be a LedgerKey, as XDR or in base64") from error
    if not keys.is_persistent(data):
        raise InvalidRequestError(
            "only persistent entries are archived", hint="name the LedgerKey of contract data or of code"
        )
    return data
