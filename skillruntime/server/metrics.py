"""What the server counts, and its text form (Prometheus exposition 0.0.4)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

__all__ = ["Metrics"]

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counts requests by route and status, and accepted executions by skill; times requests."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._accepted: Counter[str] = Counter()
        self._buckets = [0] * (len(_BOUNDS) + 1)
        self._seconds = 0.0

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request; *route* is a route's name, never a path that a caller made up."""
        self._requests[method, route, status] += 1
        self._buckets[bisect_left(_BOUNDS, seconds)] += 1
        self._seconds += seconds

    def count_accepted(self, skill_id: str) -> None:
        """Count one execution that was taken."""
        self._accepted[skill_id] += 1

    def to_text(self, executions: Mapping[str, int]) -> str:
        """Return all of it; *executions* is how many there are now in each status."""
        lines = ["# TYPE skillruntime_requests_total counter"]
        lines += [
            f'skillruntime_requests_total{{method="{method}",route="{route}",status="{status}"}} {number}'
            for (method, route, status), number in sorted(self._requests.items())
        ]
        lines.append("# TYPE skillruntime_request_seconds histogram")
        total = 0
        for bound, number in zip((*map(str, _BOUNDS), "+Inf"), self._buckets, strict=True):
            total += number
            lines.append(f'skillruntime_request_seconds_bucket{{le="{bound}"}} {total}')
        lines += [
            f"skillruntime_request_seconds_sum {self._seconds:.6f}",
            f"skillruntime_request_seconds_count {total}",
        ]
        lines.append("# TYPE skillruntime_executions_accepted_total counter")
        lines += [
            f'skillruntime_executions_accepted_total{{skill="{skill}"}} {number}'
            for skill, number in sorted(self._accepted.items())
        ]
        lines.append("# TYPE skillruntime_executions gauge")
        lines += [f'skillruntime_executions{{status="{status}"}} {n}' for status, n in sorted(executions.items())]
        return "\n".join(lines) + "\n"
