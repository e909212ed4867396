"""How much of the table one caller may take, as SQL: a condition of the accepting statement, and why it refused.

The rows themselves are the count: a row of its own for each caller would be locked until the commit, and two servers
that lock those of two callers in different orders wait for each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from skillruntime.server.database import Execute
from skillruntime.server.executions import Quota, TooFastError, TooManyError

__all__ = ["allows", "check_quota", "quota_values"]

_UNFINISHED: Final = """SELECT count(*) FROM (SELECT 1 FROM skillruntime_executions
    WHERE caller = :caller AND state <> 'ended' LIMIT :most) AS unfinished"""
# When the next one may come, if too many came within a minute.
_RATED: Final = """SELECT created_at - {now} + 60 FROM skillruntime_executions
    WHERE rated = :rated AND created_at BETWEEN {now} - 60 AND {now}
    ORDER BY created_at DESC OFFSET :skipped LIMIT 1"""


def allows(quota: Quota | None, *, is_shared: bool) -> str:
    """Return the SQL condition that *quota* allows one more execution of ``:caller``."""
    conditions = []
    if quota is not None and quota.most_unfinished is not None:
        conditions.append(f"({_UNFINISHED}) < :most")
    if quota is not None and _counts_rate(quota, is_shared):
        conditions.append(f"NOT EXISTS ({_RATED})")
    return " AND ".join(conditions) or "true"


def quota_values(quota: Quota | None) -> dict[str, Any]:
    """Return the parameters of `allows`."""
    if quota is None:
        return {"rated": None, "most": None, "skipped": None}
    skipped = 0 if math.isinf(quota.most_a_minute) else max(0, int(quota.most_a_minute) - 1)
    return {"rated": quota.rated, "most": quota.most_unfinished, "skipped": skipped}


def check_quota(execute: Execute, sql: Callable[[str], str], caller: str, quota: Quota, *, is_shared: bool) -> None:
    """Refuse one more execution of *caller* if *quota* does not allow it.

    Raises:
        TooManyError: it has too many that have not ended.
        TooFastError: too many came within a minute.
    """
    values = quota_values(quota)
    if quota.most_unfinished is not None:
        [(number,)] = execute(sql(_UNFINISHED), caller=caller, **values)
        if number >= quota.most_unfinished:
            raise TooManyError
    if _counts_rate(quota, is_shared):
        found = execute(sql(_RATED), **values)
        if found:
            raise TooFastError(max(0.1, float(found[0][0])))


def _counts_rate(quota: Quota, is_shared: bool) -> bool:
    # One server counts in memory.
    return is_shared and not math.isinf(quota.most_a_minute)
