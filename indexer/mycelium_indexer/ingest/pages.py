"""A page of events as progress: where to go on, and up to where everything is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_indexer.values import Progress
from mycelium_sdk.chain.cursors import ends_ledger, ledger_of, place_of

if TYPE_CHECKING:
    from mycelium_indexer.values import Landmark
    from mycelium_sdk.chain.base import ChainEvent, EventPage

__all__ = ["fresh_events", "place_before", "progress_after"]


def place_before(ledger: int) -> str:
    """A cursor before all contract events of a ledger, which a server that still has that ledger takes."""
    return f"{ledger << 32:019d}-{0:010d}"


def fresh_events(page: EventPage, after: str | None) -> list[ChainEvent]:
    """The page's events behind the cursor `after`, in order, each once: a server that repeats itself is
    heard once. Raises WrongDomain for ids that are no places."""
    seen = (-1, 0) if after is None else place_of(after)
    found = {place: event for event in page.events if (place := place_of(event.id)) > seen}
    return [found[place] for place in sorted(found)]


def progress_after(
    page: EventPage,
    events: list[ChainEvent],
    *,
    before: Progress | None,
    start: int,
    landmark: Landmark | None,
    now: float,
) -> Progress:
    """How far a page leads. `events`: its fresh ones; `before`: None on the first page, which began at ledger
    `start`. Never behind where it was."""
    cursors = [page.cursor, *(event.id for event in events[-1:])]
    if before is not None:
        cursors.append(before.cursor)
    cursor = max(cursors, key=place_of)
    # The cursor behind an event may leave off in the middle of a ledger.
    reached = ledger_of(cursor) if ends_ledger(cursor) else ledger_of(cursor) - 1
    close_time = 0 if before is None else before.close_time
    if reached >= page.latest_ledger:
        reached, close_time = page.latest_ledger, max(close_time, page.latest_close_time)
    else:
        times = [event.close_time for event in events if event.ledger <= reached]
        times = times or [event.close_time for event in events[:1] if before is None]
        close_time = max(close_time, *times) if times else close_time
    return Progress(
        cursor=cursor,
        ledger=max(reached, start - 1 if before is None else before.ledger),
        close_time=close_time,
        landmark=landmark,
        latest_ledger=page.latest_ledger,
        asked_at=now,
        first_ledger=start if before is None else before.first_ledger,
    )
