"""What Prometheus is told: how far the chain was followed, what is held, and how requests fare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily

from mycelium_sdk.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from mycelium_indexer.api.settings import ApiSettings
    from mycelium_indexer.store.base import IndexStore

__all__ = ["METRICS_TYPE", "Metrics"]

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_SOURCE = ("network", "contract")
_GAUGES = {
    "owners": "Owners with an anchor",
    "anchors": "Anchors held",
    "gaps": "Ranges of versions that are missing",
    "missed": "Ranges of ledgers whose events were dropped before they were read",
    "set_aside": "Events that were no anchors",
    "ledger": "Everything up to this ledger is in",
    "latest_ledger": "The server's latest ledger when it was last asked",
    "lag_seconds": "Seconds by which answers may be behind the chain",
    "asked_seconds": "Seconds since the server was last asked",
}


class Metrics:
    """The metrics of one application."""

    def __init__(self, store: IndexStore, settings: ApiSettings) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Held(store, settings))
        ProcessCollector(registry=self._registry)
        self._requests = Histogram(
            "mycelium_indexer_request_duration_seconds",
            "Time to answer, by route template",
            ("method", "route", "status"),
            buckets=_BUCKETS,
            registry=self._registry,
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer. Methods that nobody serves are one, since clients can invent them."""
        known = method if method in _METHODS else "other"
        self._requests.labels(known, route, str(status)).observe(seconds)

    def text(self) -> bytes:
        """All of it, as Prometheus reads it. Asks the database; that it does not answer is a metric too."""
        return generate_latest(self._registry)


class _Held:
    """What the database holds, asked when the metrics are."""

    def __init__(self, store: IndexStore, settings: ApiSettings) -> None:
        self._store = store
        self._settings = settings

    def describe(self) -> list[Metric]:
        """Nothing: what is described when it is registered would be asked for then."""
        return []

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client's collectors."""
        families = {
            name: GaugeMetricFamily(f"mycelium_indexer_{name}", text, labels=_SOURCE)
            for name, text in _GAUGES.items()
        }
        up = GaugeMetricFamily("mycelium_indexer_database_up", "Whether the database answers")
        try:
            self._ask(families)
        except BackendError:
            up.add_metric((), 0)
            yield up
            return
        up.add_metric((), 1)
        yield up
        yield from families.values()

    def _ask(self, families: dict[str, GaugeMetricFamily]) -> None:
        now = self._settings.clock()
        for source in self._store.sources():
            if not source.current:
                continue
            totals = self._store.totals(source)
            values: dict[str, float] = {
                "owners": totals.owners,
                "anchors": totals.anchors,
                "gaps": totals.gaps,
                "missed": len(self._store.missed(source)),
                "set_aside": totals.set_aside,
            }
            progress = self._store.progress(source)
            if progress is not None:
                values |= {
                    "ledger": progress.ledger,
                    "latest_ledger": progress.latest_ledger,
                    "lag_seconds": progress.lag(now),
                    "asked_seconds": max(0.0, now - progress.asked_at),
                }
            for name, value in values.items():
                families[name].add_metric((source.network, source.contract), value)
