"""What the server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counts requests by route and status, and accepted executions by skill; times requests."""

    def __init__(self) -> None:
        # Of its own: two services in one process must not share the library's global registry.
        self._registry = registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._requests = Counter("skillruntime_requests", "Requests", labels, registry=registry)
        self._seconds = Histogram("skillruntime_request_seconds", "Their duration", buckets=_BOUNDS, registry=registry)
        name = "skillruntime_executions_accepted"
        self._accepted = Counter(name, "Accepted executions", ("skill",), registry=registry)
        self._executions = Gauge("skillruntime_executions", "Unfinished executions", ("status",), registry=registry)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request; *route* is a route's name, never a path that a caller made up."""
        # Routes, not paths: ids would make a new time series for each execution.
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.observe(seconds)

    def count_accepted(self, skill_id: str) -> None:
        """Count one execution that was accepted."""
        self._accepted.labels(skill_id).inc()

    def to_text(self, executions: Mapping[str, int]) -> str:
        """Return all of it as text; *executions* is how many there are now in each status."""
        for status, number in executions.items():
            self._executions.labels(status).set(number)
        return generate_latest(self._registry).decode()
