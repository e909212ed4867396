"""Inner names of the server that more than the test of their module needs: imported once,
here.
"""

from __future__ import annotations

from skillruntime.server.callers.access import hash_key
from skillruntime.server.executions.executions import Report, Terms, Work
from skillruntime.server.executions.open_executions import read_secret
from skillruntime.server.executions.outcomes import Outcome, as_released, timed_out
from skillruntime.server.executions.ticket import Ticket
from skillruntime.server.metrics import Metrics

__all__ = [
    "Metrics",
    "Outcome",
    "Report",
    "Terms",
    "Ticket",
    "Work",
    "as_released",
    "hash_key",
    "read_secret",
    "timed_out",
]
