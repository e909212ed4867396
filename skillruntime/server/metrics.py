"""What the server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from skillruntime.errors import ErrorCode
from skillruntime.remote.protocol import Execution
from skillruntime.remote.wire_errors import WireCode

__all__ = ["Metrics"]

_CODES = frozenset(each.value for codes in (ErrorCode, WireCode) for each in codes)
_RUN_BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counts requests by route and status, and executions by skill from their acceptance to their end."""

    def __init__(self) -> None:
        # Of its own: two services in one process must not share the library's global registry.
        self._registry = registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._requests = Counter("skillruntime_requests", "Requests", labels, registry=registry)
        self._seconds = Histogram("skillruntime_request_seconds", "Their duration", buckets=_BOUNDS, registry=registry)
        name = "skillruntime_executions_accepted"
        self._accepted = Counter(name, "Accepted executions", ("skill",), registry=registry)
        self._executions = Gauge("skillruntime_executions", "Unfinished executions", ("status",), registry=registry)
        name = "skillruntime_executions_ended"
        self._ended = Counter(name, "Executions that ended here", ("skill", "status", "code"), registry=registry)
        name = "skillruntime_execution_seconds"
        self._runs = Histogram(name, "How long runs took", ("skill",), buckets=_RUN_BOUNDS, registry=registry)
        name = "skillruntime_queue_seconds"
        self._waits = Histogram(name, "From acceptance to beginning", buckets=_RUN_BOUNDS, registry=registry)
        name = "skillruntime_takeovers"
        self._takeovers = Counter(name, "Servers whose work this one took up", registry=registry)
        name = "skillruntime_webhook_failures"
        self._failed_webhooks = Counter(name, "Messages that no receiver accepted", registry=registry)
        self._database = Gauge("skillruntime_database_up", "Whether the database answers", registry=registry)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request; *route* is a route's name, never a path that a caller made up."""
        # Routes, not paths: ids would make a new time series for each execution.
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.observe(seconds)

    def count_accepted(self, skill_id: str) -> None:
        """Count one execution that was accepted."""
        self._accepted.labels(skill_id).inc()

    def count_end(self, execution: Execution) -> None:
        """Count one execution that this server has ended."""
        code = execution.error.code if execution.error is not None else ""
        # A skill's own codes may be any text: each would be a time series.
        known = code if code in _CODES else "other" if code else ""
        self._ended.labels(execution.skill_id, execution.status.value, known).inc()

    def observe_run(self, skill_id: str, waited: float, seconds: float) -> None:
        """Note how long an execution waited for its place, and ran."""
        self._waits.observe(max(0.0, waited))
        self._runs.labels(skill_id).observe(seconds)

    def count_takeover(self) -> None:
        """Count one server that had died, or had left work, and whose work this one took up."""
        self._takeovers.inc()

    def count_failed_webhook(self) -> None:
        """Count one message that was given up."""
        self._failed_webhooks.inc()

    def to_text(self, executions: Mapping[str, int] | None) -> str:
        """Return all of it as text; *executions* is how many are in each status, None while the database is away."""
        self._database.set(executions is not None)
        for status, number in (executions or {}).items():
            self._executions.labels(status).set(number)
        return generate_latest(self._registry).decode()
