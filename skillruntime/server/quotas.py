"""How much of the table one caller may take, as SQL: a condition of the accepting statement, and why it refused.

The rows themselves are the count: a row of its own for each caller would be locked until the commit, and two servers
that lock those of two callers in different orders wait for each other.

Law: no servers together accept more than a quota allows. A statement does not see what other servers have not committed
yet, so one that counts alone keeps a margin for all of that; near the limit, servers count one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from skillruntime.server.database import Execute, OperationRefusedError
from skillruntime.server.executions import Quota, TooFastError, TooManyError

__all__ = ["MOST_UNSEEN", "NearQuotaError", "allows", "check_quota", "lock_quotas", "quota_values"]

MOST_UNSEEN: Final = 100
"""Executions that one server may have accepted in a transaction that others do not see yet."""
_UNSEEN: Final = f"(SELECT {MOST_UNSEEN} * count(*) FROM skillruntime_servers)"
_UNFINISHED: Final = """SELECT count(*) FROM (SELECT 1 FROM skillruntime_executions
    WHERE caller = :caller AND state <> 'ended' LIMIT :most) AS unfinished"""
# Only servers that share PostgreSQL count rates in it. Its clock_timestamp() may change within a statement, so that no
# condition with it uses an index: 100,000 rows took half a second. This one stays the same.
_NOW: Final = "extract(epoch from statement_timestamp())::float8"
_RECENT: Final = f"""FROM skillruntime_executions WHERE rated = :rated AND created_at BETWEEN {_NOW} - 60 AND {_NOW}"""
_RATED: Final = f"SELECT count(*) FROM (SELECT 1 {_RECENT} LIMIT :a_minute) AS recent"
# When the next one may come, if too many came within a minute.
_NEXT: Final = f"SELECT created_at - {_NOW} + 60 {_RECENT} ORDER BY created_at DESC OFFSET :a_minute - 1 LIMIT 1"


class NearQuotaError(OperationRefusedError):
    """What other servers accept at this moment decides: count again behind `lock_quotas`."""


def lock_quotas(execute: Execute) -> None:
    """Let no other server count behind this lock until the transaction ends."""
    execute("SELECT pg_advisory_xact_lock(7305003)")


def allows(quota: Quota | None, *, is_shared: bool, is_exact: bool) -> str:
    """Return the SQL condition that *quota* allows one more execution of ``:caller``.

    Unless *is_exact*, where no other server counts meanwhile, it keeps a margin for what they have not committed.
    """
    unseen = f" - {_UNSEEN}" if is_shared and not is_exact else ""
    conditions = []
    if quota is not None and quota.most_unfinished is not None:
        conditions.append(f"({_UNFINISHED}) < :most{unseen}")
    if quota is not None and _counts_rate(quota, is_shared):
        conditions.append(f"({_RATED}) < :a_minute{unseen}")
    return " AND ".join(conditions) or "true"


def quota_values(quota: Quota | None) -> dict[str, Any]:
    """Return the parameters of `allows`."""
    if quota is None:
        return {"rated": None, "most": None, "a_minute": None}
    a_minute = None if math.isinf(quota.most_a_minute) else max(1, int(quota.most_a_minute))
    return {"rated": quota.rated, "most": quota.most_unfinished, "a_minute": a_minute}


def check_quota(execute: Execute, sql: Callable[[str], str], caller: str, quota: Quota, *, is_shared: bool) -> None:
    """Refuse one more execution of *caller* if *quota* does not allow it, by what is committed.

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
        found = execute(sql(_NEXT), **values)
        if found:
            raise TooFastError(max(0.1, float(found[0][0])))


def _counts_rate(quota: Quota, is_shared: bool) -> bool:
    # One server counts in memory.
    return is_shared and not math.isinf(quota.most_a_minute)
