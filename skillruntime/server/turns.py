"""Whose turn it is: what waits, in the order of its turns and within the limits of skills and callers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from skillruntime.server.database import Execute
from skillruntime.server.executions import Terms
from skillruntime.server.rate_limits import Places

__all__ = ["next_in_turn"]

Sql = Callable[[str], str]
_Found = tuple[str, str, str]  # an id, a skill and a caller
_CANDIDATES: Final = 500  # rows that one look at the queue takes in


def next_in_turn(execute: Execute, sql: Sql, number: int, terms: Terms, *, is_shared: bool) -> list[str]:
    """Return the ids of at most *number* waiting executions that may begin, in the order of their turns."""
    if not terms.has_limits:
        return [each[0] for each in _waiting(execute, sql, number)]
    return [each[0] for each in _within_limits(execute, sql, number, terms, is_shared)]


def _within_limits(execute: Execute, sql: Sql, number: int, terms: Terms, is_shared: bool) -> list[_Found]:
    if is_shared:
        # Two servers that count at the same time would both find a place for the last one.
        execute("SELECT pg_advisory_xact_lock(7305002)")
    places = Places(execute("SELECT skill_id, caller FROM skillruntime_executions WHERE state = 'running'"), terms)
    chosen: list[_Found] = []
    while True:
        # Without those that are full: a thousand of one caller must not hide the others that wait behind them.
        found = _waiting(
            execute,
            sql,
            _CANDIDATES,
            id=[each[0] for each in chosen],
            skill_id=places.full_skills,
            caller=places.full_callers,
        )
        for each in found:
            if len(chosen) < number and places.take(each[1], each[2]):
                chosen.append(each)
        # Another look finds others only if this one filled the places of a skill or a caller.
        if len(chosen) >= number or len(found) < _CANDIDATES:
            return chosen


def _waiting(execute: Execute, sql: Sql, number: int, **without: Sequence[str]) -> list[_Found]:
    """Return the id, skill and caller of what waits, in the order of its turns; *without* those of these values."""
    values = {f"{name}{each}": value for name, found in without.items() for each, value in enumerate(found)}
    clauses = (
        f"AND {name} NOT IN ({', '.join(f':{name}{each}' for each in range(len(found)))})"
        for name, found in without.items()
        if found
    )
    return execute(
        sql(
            f"""SELECT id, skill_id, caller FROM skillruntime_executions
            WHERE state = 'waiting' AND is_task = 0 {" ".join(clauses)}
            ORDER BY turn LIMIT :number {{skip_locked}}"""
        ),
        number=number,
        **values,
    )
