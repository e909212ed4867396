"""What the server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from skillruntime.errors import ErrorCode
from skillruntime.remote.protocol import Execution
from skillruntime.remote.wire_errors import WireCode

__all__ = ["Metrics"]

_CODES = frozenset(code.value for code in [*ErrorCode, *WireCode])
_RUN_BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counts requests by route and status, and executions by skill from their
    acceptance to their end.
    """

    def __init__(self) -> None:
        # Of its own: two services in one process must not share the library's global
        # registry.
        self._registry = CollectorRegistry()
        counter = partial(Counter, registry=self._registry)
        gauge = partial(Gauge, registry=self._registry)
        histogram = partial(Histogram, registry=self._registry)
        self._requests = counter(
            "skillruntime_requests", "Requests", ("method", "route", "status")
        )
        self._seconds = histogram(
            "skillruntime_request_seconds", "Their duration", buckets=_BOUNDS
        )
        self._accepted = counter(
            "skillruntime_executions_accepted", "Accepted executions", ("skill",)
        )
        self._executions = gauge(
            "skillruntime_executions", "Unfinished executions", ("status",)
        )
        labels = ("skill", "status", "code")
        self._ended = counter(
            "skillruntime_executions_ended", "Executions that ended here", labels
        )
        self._runs = histogram(
            "skillruntime_execution_seconds",
            "How long runs took",
            ("skill",),
            buckets=_RUN_BOUNDS,
        )
        self._waits = histogram(
            "skillruntime_queue_seconds",
            "From acceptance to beginning",
            buckets=_RUN_BOUNDS,
        )
        self.takeovers = counter(
            "skillruntime_takeovers", "Servers whose work this one took up"
        )
        """Servers that had died, or had left work."""
        self.failed_webhooks = counter(
            "skillruntime_webhook_failures", "Messages that no receiver accepted"
        )
        self._database = gauge(
            "skillruntime_database_up", "Whether the database answers"
        )

    def count_request(
        self, method: str, route: str, status: int, seconds: float
    ) -> None:
        """Count one request; *route* is a route's name, never a path that a caller made
        up.
        """
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
        if code and code not in _CODES:
            code = "other"
        self._ended.labels(execution.skill_id, execution.status.value, code).inc()

    def observe_run(self, skill_id: str, waited: float, seconds: float) -> None:
        """Note how long an execution waited for its place, and ran."""
        self._waits.observe(max(0.0, waited))
        self._runs.labels(skill_id).observe(seconds)

    def to_text(self, executions: Mapping[str, int] | None) -> str:
        """Return all of it as text; *executions* is how many are in each status, None
        while the database is away.
        """
        self._database.set(executions is not None)
        for status, number in (executions or {}).items():
            self._executions.labels(status).set(number)
        return generate_latest(self._registry).decode()
