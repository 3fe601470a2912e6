"""When an agent's memory is anchored by itself."""

from __future__ import annotations

from dataclasses import dataclass

from mycelium_sdk.errors import InputError

__all__ = ["AnchoringPolicy"]


@dataclass(frozen=True, slots=True)
class AnchoringPolicy:
    """What `AgentMemory.heartbeat` does when.

    `heartbeat_seconds`: least time between two anchors, in seconds, at least 0.
    `min_writes`: least number of writes since the last anchor, at least 1. A forget is a write; remembering
    what is already remembered is not.
    `keep_alive`: whether a heartbeat with nothing to anchor extends the anchor's time to live if less than
    30 days are left, and restores it if it was archived. The chain is asked once an hour for that.

    Raises:
        InputError: a value is of another type or out of range.
    """

    heartbeat_seconds: float = 3600
    min_writes: int = 1
    keep_alive: bool = True

    def __post_init__(self) -> None:
        seconds = self.heartbeat_seconds
        if (
            isinstance(seconds, bool)
            or not isinstance(seconds, (int, float))
            or not 0 <= seconds < float("inf")
        ):
            raise InputError("heartbeat_seconds must be a number of at least 0", hint="for example 3600")
        if isinstance(self.min_writes, bool) or not isinstance(self.min_writes, int) or self.min_writes < 1:
            raise InputError("min_writes must be a whole number of at least 1", hint="for example 1")
        if not isinstance(self.keep_alive, bool):
            raise InputError("keep_alive must be true or false", hint="for example True")

    def due(self, *, writes: int, last_anchor: float | None, now: float) -> bool:
        """Whether a heartbeat should anchor.

        `writes`: writes since the last anchor. `last_anchor`: its Unix time, None if never anchored. A last
        anchor in the future means that a clock was set back, and counts as due.
        """
        if writes < self.min_writes:
            return False
        if last_anchor is None or last_anchor > now:
            return True
        return now - last_anchor >= self.heartbeat_seconds
