"""What is odd in a table: rows that are equal, rows with gaps, outliers, and which
numbers go together.

Not a tool: query.py imports it. Each finding returns names of columns, rows, and notes.
"""

from __future__ import annotations

from typing import Any

from column_types import quoted_text
from expressions import Expression, Scope, as_number, parse, shown_sql
from script_call import Failure
from tables import Table

Finding = tuple[list[str], list[list[Any]], list[str]]
MAX_FOUND = 100_000
CONTEXT = 8


def _duplicates(
    table: Table, scope: Scope, values: list[Expression], filters: str
) -> Finding:
    """Find values, or whole rows, that occur more than once."""
    chosen = values or _all(scope)
    by = ", ".join(expression.sql for expression in chosen)
    shown = ", ".join(shown_sql(expression) for expression in chosen)
    rows = table.rows(
        f'SELECT {shown}, count(*), array_to_string(list("·left" ORDER BY '
        f"\"·left\")[1:10], ', ') FROM base WHERE {filters} GROUP BY {by} HAVING "
        f'count(*) > 1 ORDER BY min("·left") LIMIT {MAX_FOUND}'
    )
    surplus = sum(row[-2] for row in rows) - len(rows)
    what = "these values" if values else "all values"
    note = (
        f"{len(rows)} group(s) of rows are equal in {what}: {surplus} row(s) more "
        "than different ones."
    )
    action = (
        []
        if values
        else ["Send values: ['order_id'] (the key) to find rows that share only that."]
    )
    return (
        [*(e.text for e in chosen), "count", "rows"],
        [list(row) for row in rows],
        [note, *action],
    )


def _gaps(
    table: Table, scope: Scope, values: list[Expression], filters: str
) -> Finding:
    """Find rows where a value is missing, and count the gaps of each column."""
    chosen = values or _all(scope)
    missing = " || ".join(
        f"CASE WHEN {e.sql} IS NULL THEN {quoted_text(', ' + e.text)} ELSE '' END"
        for e in chosen
    )
    shown = (values or _all(scope))[:CONTEXT]
    rows = table.rows(
        f'SELECT "·left", ({missing})[3:], {", ".join(map(shown_sql, shown))} FROM base '
        f"WHERE {filters} AND ({missing}) <> '' ORDER BY \"·left\" LIMIT {MAX_FOUND}"
    )
    counts = ", ".join(f"count(*) FILTER ({e.sql} IS NULL)" for e in chosen)
    found = table.rows(f"SELECT {counts} FROM base WHERE {filters}")[0]
    named = ", ".join(
        f"{e.text}: {count}" for e, count in zip(chosen, found, strict=True) if count
    )
    note = f"Missing values: {named}." if named else "No value is missing."
    return (
        ["row", "missing", *(e.text for e in shown)],
        [list(row) for row in rows],
        [note],
    )


def _outliers(
    table: Table, scope: Scope, values: list[Expression], filters: str
) -> Finding:
    """Find values more than one and a half interquartile ranges outside the middle half
    (Tukey's fences).
    """
    context = _all(scope)[:CONTEXT]
    found, notes = [], []
    for number in _numbers(scope, values):
        first, third, count = table.rows(
            f"SELECT quantile_cont({number.sql}, 0.25), quantile_cont({number.sql}, "
            f"0.75), count({number.sql}) FROM base WHERE {filters}"
        )[0]
        if count < 4:
            notes.append(f"{number.text}: {count} values are too few to have outliers.")
            continue
        low, high = first - 1.5 * (third - first), third + 1.5 * (third - first)
        middle = (first + third) / 2
        shown = ", ".join(map(shown_sql, context))
        sql = number.sql
        rows = table.rows(
            f'SELECT "·left", {quoted_text(number.text)}, {sql}, {shown} FROM base '
            f"WHERE {filters} "
            f"AND ({sql} < {low!r}::DOUBLE OR {sql} > {high!r}::DOUBLE) "
            f'ORDER BY abs({sql} - {middle!r}::DOUBLE) DESC, "·left" LIMIT {MAX_FOUND}'
        )
        found += [list(row) for row in rows]
        notes.append(
            f"{number.text}: {len(rows)} of {count} values are not between {low:.10g} "
            f"and {high:.10g}."
        )
    return (
        ["row", "column", "value", *(expression.text for expression in context)],
        found,
        notes,
    )


def _correlations(
    table: Table, scope: Scope, values: list[Expression], filters: str
) -> Finding:
    """Find how closely each two numbers go together (Pearson's r, from -1 to 1), the
    closest first.
    """
    numbers = _numbers(scope, values)
    if len(numbers) < 2:
        raise Failure(
            "INVALID_INPUT",
            "a correlation needs two numeric columns",
            "Send values: two.",
            path="/values",
        )
    rows = []
    for place, one in enumerate(numbers):
        for other in numbers[place + 1 :]:
            pair = f"{one.sql}::DOUBLE, {other.sql}::DOUBLE"
            value, count = table.rows(
                f"SELECT corr({pair}), regr_count({pair}) FROM base WHERE {filters}"
            )[0]
            rows.append(
                [
                    one.text,
                    other.text,
                    None if value is None else round(value, 6),
                    count,
                ]
            )
    rows.sort(key=lambda row: -abs(row[2] or 0))
    return ["column", "with", "correlation", "count"], rows, []


def _numbers(scope: Scope, values: list[Expression]) -> list[Expression]:
    """Return the numeric expressions that are named, or all numeric columns."""
    if values:
        return [
            as_number(expression, f"/values/{index}")
            for index, expression in enumerate(values)
        ]
    found = [expression for expression in _all(scope) if expression.kind == "numeric"]
    if not found:
        raise Failure(
            "INVALID_INPUT",
            f"{scope.file} has no numeric column",
            "Send values.",
            path="/values",
        )
    return found[:20]


def _all(scope: Scope) -> list[Expression]:
    return [parse(name, scope, "/values") for name in scope.columns]


FINDINGS = {
    "duplicates": _duplicates,
    "gaps": _gaps,
    "outliers": _outliers,
    "correlations": _correlations,
}
