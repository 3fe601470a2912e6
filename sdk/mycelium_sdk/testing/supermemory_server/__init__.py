"""A Supermemory service of this project's own, for tests: real HTTP, both APIs, and every failure on demand.

    with SupermemoryServer() as server:
        store = SupermemoryBackend(OWNER, "a key", server.url)

It behaves as the service does where that matters to a store: adding with a known id appends, documents are
processed later and show no content until then, a bare address is fetched and replaced, failed documents
vanish, lists are paged and drift. No time passes by itself: `hold`, `release`, `pass_time`.
"""

from mycelium_sdk.testing.supermemory_server.faults import Fault
from mycelium_sdk.testing.supermemory_server.server import SupermemoryServer

__all__ = ["Fault", "SupermemoryServer"]
