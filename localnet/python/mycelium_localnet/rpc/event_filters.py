"""The filters of getEvents: checking them, and telling which events pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stellar_sdk.strkey import StrKey
from stellar_sdk.xdr import SCVal

from .faults import invalid_params
from .wire import decode_param

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mycelium_localnet.rows import EventRow

    from .params import Params

MAXIMUM_FILTERS: Final = 5
MAXIMUM_CONTRACTS: Final = 5
MAXIMUM_TOPICS: Final = 5
MAXIMUM_SEGMENTS: Final = 4

ONE: Final = "*"
REST: Final = "**"
_TYPES: Final = frozenset({"contract", "system"})


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """What the topics of an event must be, one after the other: SCVal bytes, or None for any.
    `open_ended`: there may be more topics behind them; otherwise the count must be the same."""

    segments: tuple[bytes | None, ...]
    open_ended: bool

    def matches(self, topics: Sequence[bytes]) -> bool:
        """Whether an event with these topics passes."""
        if len(topics) < len(self.segments) or (not self.open_ended and len(topics) > len(self.segments)):
            return False
        return all(
            wanted is None or wanted == topic for wanted, topic in zip(self.segments, topics, strict=False)
        )


@dataclass(frozen=True, slots=True)
class EventFilter:
    """One filter: everything that is set must hold; of `topics`, one."""

    types: frozenset[str]
    contract_ids: tuple[str, ...]
    topics: tuple[TopicFilter, ...]

    def matches(self, event: EventRow) -> bool:
        """Whether an event passes."""
        return (
            (not self.types or event.type in self.types)
            and (not self.contract_ids or event.contract_id in self.contract_ids)
            and (not self.topics or any(topic.matches(event.topics) for topic in self.topics))
        )


@dataclass(frozen=True, slots=True)
class EventFilters:
    """All filters of a request: an event passes when one of them, or none there is, lets it."""

    filters: tuple[EventFilter, ...]

    def matches(self, event: EventRow) -> bool:
        """Whether an event passes."""
        return not self.filters or any(one.matches(event) for one in self.filters)

    def contract_ids(self) -> list[str]:
        """The only contracts whose events can pass; an empty list when any can."""
        if not all(one.contract_ids for one in self.filters):
            return []
        return sorted({contract for one in self.filters for contract in one.contract_ids})


def read_filters(params: Params) -> EventFilters:
    """The `filters` of a request. Raises RpcFault -32602, naming what is wrong, for any that break a rule."""
    given = params.groups("filters")
    if len(given) > MAXIMUM_FILTERS:
        raise invalid_params(f"maximum {MAXIMUM_FILTERS} filters per request")
    return EventFilters(
        tuple(_filter(one, f"filter {number} invalid") for number, one in enumerate(given, 1))
    )


def _filter(params: Params, problem: str) -> EventFilter:
    joined = params.text("type") or ""
    types = frozenset(joined.split(",")) if joined else frozenset[str]()
    if not types <= _TYPES:
        raise invalid_params(f"{problem}: if set, type must be either 'system' or 'contract'")
    contract_ids = params.texts("contractIds")
    if len(contract_ids) > MAXIMUM_CONTRACTS:
        raise invalid_params(f"{problem}: maximum {MAXIMUM_CONTRACTS} contract IDs per filter")
    for number, contract in enumerate(contract_ids, 1):
        if not StrKey.is_valid_contract(contract):
            raise invalid_params(f"{problem}: contract ID {number} invalid")
    topics = params.text_lists("topics")
    if len(topics) > MAXIMUM_TOPICS:
        raise invalid_params(f"{problem}: maximum {MAXIMUM_TOPICS} topics per filter")
    return EventFilter(
        types,
        tuple(contract_ids),
        tuple(_topic(topic, f"{problem}: topic {number} invalid") for number, topic in enumerate(topics, 1)),
    )


def _topic(segments: list[str], problem: str) -> TopicFilter:
    if not segments:
        raise invalid_params(f"{problem}: topic must have at least 1 segment")
    open_ended = segments[-1] == REST
    if open_ended:
        segments = segments[:-1]
    if REST in segments:
        raise invalid_params(f"{problem}: wildcard '{REST}' is only allowed as the last segment")
    if len(segments) > MAXIMUM_SEGMENTS:
        raise invalid_params(f"{problem}: topic cannot have more than {MAXIMUM_SEGMENTS} segments")
    return TopicFilter(tuple(_segment(segment, problem) for segment in segments), open_ended)


def _segment(segment: str, problem: str) -> bytes | None:
    if segment == ONE:
        return None
    message = f"{problem}: a segment must be '{ONE}', a trailing '{REST}', or the XDR of an SCVal"
    return decode_param(SCVal, segment, message)[1]
