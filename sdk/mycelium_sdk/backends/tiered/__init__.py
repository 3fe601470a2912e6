"""Two backends as one: a primary that is the truth, and a secondary that follows it."""

from mycelium_sdk.backends.tiered.queue import Lag
from mycelium_sdk.backends.tiered.store import TieredBackend
from mycelium_sdk.backends.tiered.upkeep import Repaired

__all__ = ["Lag", "Repaired", "TieredBackend"]
