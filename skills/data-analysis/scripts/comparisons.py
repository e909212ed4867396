"""What groups say of each other: shares, growth, running totals; and the order of their
values.

Not a tool: query.py imports it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any

from expressions import Expression
from script_call import Failure

WEEKDAYS = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
]
DIGITS = 6  # of fractions: a ten-thousandth of a per cent
YEARS_BACK = {"year": 1, "quarter": 4, "month": 12}


@dataclass(slots=True)
class Result:
    """The answer as a table of plain values: first the columns of *groups*, then
    figures.

    *used* is how many rows of the file fit the conditions; *total* how many the answer
    has, where *rows* are fewer.
    """

    names: list[str]
    expressions: list[Expression]
    groups: int
    rows: list[list[Any]]
    used: int
    total: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Return the number of rows of the whole answer."""
        return len(self.rows) if self.total is None else self.total


def order_of(value: Any) -> tuple[int, float, str]:
    """Return what sorts *value*: numbers, then weekdays by the week, then texts; none
    first.

    >>> sorted(["Tuesday", "Monday", None, 3], key=order_of)
    [None, 3, 'Monday', 'Tuesday']
    """
    if value is None:
        return 0, 0, ""
    if isinstance(value, bool | int | float):
        return 1, float(value), ""
    return (2, WEEKDAYS.index(value), "") if value in WEEKDAYS else (3, 0, str(value))


def add_comparisons(result: Result, wanted: list[str]) -> None:
    """Add a column for each of *wanted* and each figure of *result*: fractions, so 0.1
    is 10 %.
    """
    figures = list(range(result.groups, len(result.names)))
    for what in dict.fromkeys(wanted):
        if what in ("share", "running_total"):  # of what adds up: a mean has no share
            chosen = [index for index in figures if result.expressions[index].additive]
            if not chosen:
                message = (
                    f"{what} of {result.names[figures[0]]!r} has no meaning: its "
                    "values do not add up"
                )
                raise Failure(
                    "INVALID_INPUT",
                    message,
                    "Send a sum or count in values.",
                    path="/add",
                )
        else:
            chosen = figures
        for index in chosen:
            rows = result.rows
            if what == "share":
                values = _shares(result, index)
            else:
                place = _time_group(result)
                rows = sorted(
                    rows,
                    key=lambda row: [order_of(value) for value in row[: result.groups]],
                )
                if what == "running_total":
                    values = _running(result, rows, index, place)
                else:
                    back = 1 if what == "growth" else _periods_of_a_year(result, place)
                    values = _growth(result, rows, index, place, back)
            result.names.append(f"{what.replace('_', ' ')} of {result.names[index]}")
            for row, value in zip(rows, values, strict=True):
                row.append(value if value is None else round(value, DIGITS))


def _shares(result: Result, index: int) -> list[Any]:
    """Return shares of the whole; with several groups, of what the first one has."""
    wholes = [row[0] if result.groups > 1 else None for row in result.rows]
    totals: dict[Any, float] = {}
    for whole, row in zip(wholes, result.rows, strict=True):
        totals[whole] = totals.get(whole, 0) + (row[index] or 0)
    shares = []
    for whole, row in zip(wholes, result.rows, strict=True):
        known = totals[whole] and row[index] is not None
        shares.append(row[index] / totals[whole] if known else None)
    return shares


def _time_group(result: Result) -> int:
    """Return the place of the group that is in time. Raises: Failure, where none is."""
    groups = result.expressions[: result.groups]
    found = [index for index, group in enumerate(groups) if group.period]
    found += [
        index
        for index, group in enumerate(groups)
        if group.kind in ("temporal", "numeric")
    ]
    for index in range(result.groups):  # texts such as 2025-03 or 2025-Q1
        if all(
            str(row[index])[:4].isdecimal()
            for row in result.rows
            if row[index] is not None
        ):
            found.append(index)
    if found:
        return found[0]
    action = "Group by a period, such as 'month(date)'."
    raise Failure(
        "INVALID_INPUT",
        "growth and running totals need a group in time",
        action,
        path="/add",
    )


def _others(row: list[Any], result: Result, place: int) -> tuple[Any, ...]:
    return tuple(
        value for index, value in enumerate(row[: result.groups]) if index != place
    )


def _running(
    result: Result, rows: list[list[Any]], index: int, place: int
) -> list[Any]:
    sums: dict[Any, float] = {}
    found = []
    for row in rows:
        key = _others(row, result, place)
        sums[key] = sums.get(key, 0) + (row[index] or 0)
        found.append(sums[key])
    return found


def _periods_of_a_year(result: Result, place: int) -> int:
    period = result.expressions[place].period
    if period not in YEARS_BACK:
        action = "Group by month(date), quarter(date) or year(date)."
        raise Failure(
            "INVALID_INPUT",
            "growth_on_year needs months, quarters or years",
            action,
            path="/add",
        )
    return YEARS_BACK[period]


def _growth(
    result: Result, rows: list[list[Any]], index: int, place: int, back: int
) -> list[Any]:
    """Return the relative change to the value *back* periods before; none where that
    has none, or none above zero.
    """
    numbers = _numbers([row[place] for row in rows], result.expressions[place].period)
    keys = [_others(row, result, place) for row in rows]
    known = {
        (key, number): row[index]
        for key, number, row in zip(keys, numbers, rows, strict=True)
    }
    first = min((number for number in numbers if number is not None), default=0)
    found: list[Any] = []
    missing, below = [], []
    for key, number, row in zip(keys, numbers, rows, strict=True):
        before = None if number is None else known.get((key, number - back))
        if before is None and number is not None and number - back >= first:
            missing.append(str(row[place]))
        if before is not None and before <= 0:
            below.append(str(row[place]))
        found.append(
            (row[index] - before) / before
            if before and before > 0 and row[index] is not None
            else None
        )
    for what, named in (("no value", missing), ("a value not above zero", below)):
        if named:
            periods = ", ".join(list(dict.fromkeys(named))[:5])
            result.notes.append(
                f"The period before has {what}, so there is no growth for {periods}."
            )
    return found


def _numbers(values: list[Any], period: str) -> list[int | None]:
    """Number the periods so that neighbours differ by one: of a calendar by the
    calendar, else in their order.
    """
    if period in ("year", "quarter", "month", "week", "day"):
        return [
            None if value is None else _number(str(value), period) for value in values
        ]
    order = sorted({order_of(value) for value in values if value is not None})
    return [None if value is None else order.index(order_of(value)) for value in values]


def _number(text: str, period: str) -> int:
    """Return the number of a period.

    >>> _number("2025-01", "month") - _number("2024-12", "month")
    1
    >>> _number("2021-W01", "week") - _number("2020-W53", "week")
    1
    """
    if period == "day":
        return date.fromisoformat(text).toordinal()
    year, _, rest = text.partition("-")
    if period == "week":
        return date.fromisocalendar(int(year), int(rest[1:]), 1).toordinal() // 7
    return int(year) * {"year": 1, "quarter": 4, "month": 12}[period] + int(
        rest.lstrip("Q") or 0
    )
