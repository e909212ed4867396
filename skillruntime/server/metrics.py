"""Count requests and executions for Prometheus."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
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
from skillruntime.server.executions.outcomes import CUT_OFF

__all__ = ["Metrics"]

_REFUSALS = ("429", "503")
"""The statuses that alerts name."""
_CODES = frozenset(code.value for code in [*ErrorCode, *WireCode])
_OTHER = "other"
# The codes of refused requests are left out, because a refusal does not end an
# execution, and each code adds a line for each skill.
_END_CODES = (*ErrorCode, *sorted(CUT_OFF), _OTHER)
_RUN_BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counts requests by route and status, and executions by skill from their
    acceptance to their end.
    """

    def __init__(self) -> None:
        # Use a separate registry: two services in one process must not share the
        # library's global registry.
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
        self._versions = counter(
            "skillruntime_calls_by_version",
            "Calls in the shape of the contract's own version, or of an older range",
            ("skill", "versions"),
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
        self._takeovers = counter(
            "skillruntime_takeovers", "Servers whose work this one took up"
        )
        self.failed_webhooks: Counter = counter(
            "skillruntime_webhook_failures", "Messages that no receiver accepted"
        )
        self._database = gauge(
            "skillruntime_database_up", "Whether the database takes writes"
        )
        self._reading = threading.Lock()
        # Counts from before the first scrape, which shows 0 for them.
        self._early: list[Callable[[], None]] | None = []

    def announce(
        self, skill_ids: Iterable[str], routes: Iterable[tuple[str, str]]
    ) -> None:
        """Show 0 for each series of these skills and routes that an alert may name; a
        route is a method and a name.

        Prometheus does not see an increase in a series that starts with another value.
        """
        for skill_id in skill_ids:
            self._accepted.labels(skill_id)
            self._runs.labels(skill_id)
            self._ended.labels(skill_id, "completed", "")
            self._ended.labels(skill_id, "cancelled", WireCode.EXECUTION_CANCELLED)
            self._ended.labels(skill_id, "timeout", WireCode.EXECUTION_TIMEOUT)
            for code in _END_CODES:
                self._ended.labels(skill_id, "failed", code)
        for method, route in routes:
            for status in _REFUSALS:
                self._requests.labels(method, route, status)
        for status in ("accepted", "running"):
            self._executions.labels(status)

    def count_request(
        self, method: str, route: str, status: int, seconds: float
    ) -> None:
        """Count one request; *route* is a route's name, never a path that a caller made
        up.
        """
        # Count by route, not by path: ids would make a new time series for each
        # execution.
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.observe(seconds)

    def count_accepted(self, skill_id: str) -> None:
        """Count one execution that was accepted."""
        self._accepted.labels(skill_id).inc()

    def count_end(self, execution: Execution) -> None:
        """Count one execution that this server has ended."""
        code = execution.error.code if execution.error is not None else ""
        # A skill's own codes may be any text, and each would be a time series.
        if code and code not in _CODES:
            code = _OTHER
        ended = self._ended.labels(execution.skill_id, execution.status.value, code)
        if code in CUT_OFF:
            self._count_once_read(ended.inc)
        else:
            ended.inc()
        # The range of a migration, as in the contract: there are few such texts, all by
        # the author.
        migrated_from = (execution.metadata or {}).get("migrated_from")
        if migrated_from is not None or execution.has_output:
            versions = str(migrated_from or "current")
            self._versions.labels(execution.skill_id, versions).inc()

    def count_takeover(self) -> None:
        """Count one server whose work this server took up, because it had died or had
        left work.
        """
        self._count_once_read(self._takeovers.inc)

    def _count_once_read(self, count: Callable[[], None]) -> None:
        """Call *count*, but not before Prometheus has read 0: a starting server takes
        up a dead server's work before the first scrape.
        """
        with self._reading:
            if self._early is not None:
                self._early.append(count)
                return
        count()

    def observe_run(self, skill_id: str, waited: float, seconds: float) -> None:
        """Record how many seconds an execution waited for its place and ran."""
        self._waits.observe(max(0.0, waited))
        self._runs.labels(skill_id).observe(seconds)

    def to_text(
        self, executions: Mapping[str, int] | None, *, takes_writes: bool = True
    ) -> str:
        """Return all metrics as text; *executions* is the number of executions in each
        status, None while the database is unavailable.
        """
        self._database.set(executions is not None and takes_writes)
        for status, number in (executions or {}).items():
            self._executions.labels(status).set(number)
        text = generate_latest(self._registry).decode()
        with self._reading:
            early = self._early or ()
            self._early = None
        for count in early:
            count()
        return text
