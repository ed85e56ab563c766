"""The service's own metrics, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Collection

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fabula.reference.serving.snapshots import State

__all__ = ["Metered", "Metrics"]

_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The metrics of one service. They contain no words, ids or tokens."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "fabula_requests",
            "Requests by endpoint and status.",
            ["endpoint", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "fabula_request_seconds",
            "Seconds from a request to the end of its response.",
            ["endpoint"],
            buckets=_BUCKETS_S,
            registry=self.registry,
        )
        self.words = Counter("fabula_words_searched", "Words looked up.", registry=self.registry)
        self.in_flight = Gauge(
            "fabula_requests_in_flight", "Requests in progress.", registry=self.registry
        )
        self.reloads = Counter(
            "fabula_reloads", "Changed corpora put in service.", registry=self.registry
        )
        self.shards = Gauge("fabula_shards", "Shards in service.", registry=self.registry)
        self.documents = Gauge("fabula_documents", "Documents in service.", registry=self.registry)
        self._reference = Info("fabula_reference", "What is in service.", registry=self.registry)

    def tell(self, state: State) -> None:
        """Update what is served now."""
        about = state.reference.about
        self._reference.info({"name": about.name, "fingerprint": about.fingerprint})
        self.shards.set(len(state.shards))
        self.documents.set(about.n_documents)

    def page(self) -> bytes:
        return generate_latest(self.registry)


class Metered:
    """Middleware that counts every request, including rejected ones."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, endpoints: Collection[str]) -> None:
        self._app, self._metrics, self._endpoints = app, metrics, endpoints
        self._known: dict[tuple[str, str], tuple[Counter, Histogram]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Arbitrary paths must not become labels.
        endpoint = scope["path"] if scope["path"] in self._endpoints else "other"
        status = "500"

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        begin = time.perf_counter()
        self._metrics.in_flight.inc()
        try:
            await self._app(scope, receive, send_noted)
        finally:
            self._metrics.in_flight.dec()
            requests, seconds = self._series(endpoint, status)
            requests.inc()
            seconds.observe(time.perf_counter() - begin)

    def _series(self, endpoint: str, status: str) -> tuple[Counter, Histogram]:
        """Looked up by their labels once: that takes longer than counting."""
        if (endpoint, status) not in self._known:
            self._known[endpoint, status] = (
                self._metrics.requests.labels(endpoint, status),
                self._metrics.seconds.labels(endpoint),
            )
        return self._known[endpoint, status]
