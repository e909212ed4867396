"""One condition of ``where`` as SQL: numbers, dates and texts each compared as a person
means it.

Not a tool: query.py imports it.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

from column_types import quoted_text
from expressions import Expression, as_ordered
from script_call import Failure
from text_tables import DATE

OPPOSITES = {"!=": "=", "not_in": "in", "not_empty": "empty"}
PERIOD = re.compile(r"(\d{4})(?:-Q([1-4])|-(\d{1,2})(?:-(\d{1,2}))?)?")
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2})?")


def condition(found: Expression, entry: dict[str, Any], path: str) -> str:
    """Return SQL for *entry*, ``{column, op, value}``, where *found* is its column.

    Rows without a value fit ``!=`` and ``not_in``. Texts compare without regard to
    case; a date is its whole day, a month its whole month. Raises: Failure, where the
    value does not fit the column.
    """
    operator, value = entry.get("op", "="), entry.get("value")
    if operator in OPPOSITES:
        return (
            "NOT "
            f"coalesce({condition(found, {'op': OPPOSITES[operator], 'value': value}, path)}, "
            "false)"
        )
    if operator == "empty":
        return f"{found.sql} IS NULL"
    if value is None or value == []:
        message = f"{operator!r} needs a value"
        raise Failure(
            "MISSING_REQUIRED_PARAM",
            message,
            "Send value, or op 'empty'.",
            path=f"{path}/value",
        )
    if operator == "in" or isinstance(value, list):
        values = value if isinstance(value, list) else [value]
        if operator not in ("in", "="):
            message = f"{operator!r} takes one value"
            raise Failure(
                "INVALID_INPUT",
                message,
                "Send one value, or op 'in'.",
                path=f"{path}/value",
            )
        return (
            "("
            + " OR ".join(
                condition(found, {"op": "=", "value": part}, path) for part in values
            )
            + ")"
        )
    if operator == "contains":
        return (
            f"contains(lower({found.sql}::VARCHAR), {quoted_text(str(value).lower())})"
        )
    return _compared(found, operator, value, path)


def _compared(found: Expression, operator: str, value: Any, path: str) -> str:
    if found.kind == "boolean":
        word = str(value).lower()
        if word not in ("true", "false"):
            raise _unfit(found, value, "true or false", path)
        return f"{found.sql} {operator} {word}"
    text = str(value).strip()
    if (
        operator != "=" or PERIOD.fullmatch(text) or DATE.fullmatch(text)
    ):  # dates are equal as dates
        found = as_ordered(found, path)
    if found.kind == "numeric":
        return f"{found.sql} {operator} {_number(found, value, path)}"
    if found.kind == "temporal":
        return _in_time(found, operator, value, path)
    return f"lower({found.sql}::VARCHAR) {operator} {quoted_text(text.lower())}"


def _number(found: Expression, value: Any, path: str) -> str:
    try:
        return (
            f"{float(value)!r}::DOUBLE"
            if not isinstance(value, int)
            else str(int(value))
        )
    except (TypeError, ValueError) as error:
        raise _unfit(found, value, "a number such as 1000", path) from error


def _in_time(found: Expression, operator: str, value: Any, path: str) -> str:
    """Compare with a moment, or with a period as a whole: up to 2025-03 includes the
    last of March.
    """
    text = str(value).strip()
    if MOMENT.fullmatch(text):
        return f"{found.sql} {operator} TIMESTAMP {quoted_text(text)}"
    parts = PERIOD.fullmatch(text)
    try:
        first, after = _bounds(parts) if parts else (None, None)
    except ValueError:  # 2025-02-30
        first = after = None
    if first is None:
        raise _unfit(
            found,
            value,
            "a date such as '2025-03-31', '2025-03', '2025-Q1' or '2025'",
            path,
        )
    start, end = f"DATE '{first}'", f"DATE '{after}'"
    shapes = {
        "=": f"({found.sql} >= {start} AND {found.sql} < {end})",
        "<": f"{found.sql} < {start}",
        "<=": f"{found.sql} < {end}",
        ">": f"{found.sql} >= {end}",
        ">=": f"{found.sql} >= {start}",
    }
    return shapes[operator]


def _bounds(parts: re.Match[str]) -> tuple[date, date]:
    """Return the first day of a period and the first day after it."""
    year, quarter, month, day = parts[1], parts[2], parts[3], parts[4]
    if day:
        first = date(int(year), int(month), int(day))
        return first, first + timedelta(days=1)
    if quarter:
        start, length = int(quarter) * 3 - 2, 3
    elif month:
        start, length = int(month), 1
    else:
        start, length = 1, 12
    first = date(int(year), start, 1)
    after = start + length
    if after > 12:
        return first, date(int(year) + 1, after - 12, 1)
    return first, date(int(year), after, 1)


def _unfit(found: Expression, value: Any, wanted: str, path: str) -> Failure:
    message = (
        f"{str(value)[:60]!r} cannot be compared with {found.text!r}, which is "
        f"{found.kind}"
    )
    return Failure("INVALID_INPUT", message, f"Send {wanted}.", path=f"{path}/value")
