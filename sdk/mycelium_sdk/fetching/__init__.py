"""Getting what an anchor points to from wherever it says, without trusting that place."""

from mycelium_sdk.fetching.fetcher import fetch_https
from mycelium_sdk.fetching.policy import FetchPolicy

__all__ = ["FetchPolicy", "fetch_https"]
