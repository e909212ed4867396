# /// script
# requires-python = ">=3.11"
# dependencies = ["duckdb>=1.4,<3", "matplotlib>=3.9,<4", "python-calamine>=0.5,<1"]
# ///
"""Answer a question on one or two data files: filter, join, group, compare, find; and
draw the answer.

Reads one JSON object on standard input (the contract's ``input``), prints one JSON
object (its ``output``)::

    echo '{"path": "sales.csv", "group": ["month(date)"], "values": ["sum(amount)"]}' |
    python scripts/query.py
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from comparisons import Result, add_comparisons, order_of
from conditions import condition
from expressions import (
    LEFT,
    RIGHT,
    Expression,
    Scope,
    as_number,
    as_ordered,
    parse,
    shown_sql,
)
from findings import FINDINGS
from joining import joined
from script_call import (
    Failure,
    answer,
    check_output,
    inside_workspace,
    shown_path,
    write_output,
)
from tables import Table, database, open_table, plain
from text_tables import named

SKILL = Path(__file__).resolve().parents[1]
ALIAS = re.compile(r"(.+?)\s+as\s+(\S.*)", re.IGNORECASE | re.DOTALL)
SORT = re.compile(
    r"(-?)\s*(.+?)(?:\s+(asc|desc)(?:ending)?)?", re.IGNORECASE | re.DOTALL
)
Named = list[tuple[str, Expression]]
MAX_READ = 1_000_000  # rows that leave the database, for a file or a chart


@dataclass(frozen=True, slots=True)
class Selection:
    """What a query looks at: the first file's table, the columns that it can name, and
    the conditions as SQL: of rows, and of figures after grouping.
    """

    table: Table
    scope: Scope
    rows: str
    figures: str


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the answer, with its first rows. A file that must not be replaced is
    refused before any work.
    """
    arguments = {"where": [], "group": [], "values": [], "add": []} | arguments
    target = _target(arguments)
    with database() as opened:
        left = open_table(opened, arguments)
        join = arguments.get("join")
        own = {"sheet": None, "has_header": None}  # of the first file
        right = (
            open_table(opened, arguments | own | join, "other", "/join")
            if join
            else None
        )
        notes = [*left.notes, *(right.notes if right else ())]
        scope = joined(left, right, join["on"] if join else [], notes)
        values = _parsed(scope, arguments, "values")
        selection = _selected(left, scope, arguments, values, notes)
        result = _answer(selection, values, arguments)
    if not result.used and arguments["where"]:
        notes.append("No row fits where.")
    notes += result.notes
    data = b""
    if arguments.get("chart"):
        # half a second of matplotlib, which a call that draws nothing need not wait for
        from charts import draw_result

        data = draw_result(result, arguments, notes)
    elif target is not None:
        data = _as_csv(result)
    limit = arguments["limit"]
    if result.count > limit:
        notes.append(f"These are the first {limit} of {result.count} rows.")
    answered: dict[str, Any] = {
        "columns": result.names,
        "rows": result.rows[:limit],
        "row_count": result.count,
        "rows_used": result.used,
    }
    if target is not None:
        write_output(target, data, "/output_path", overwrite=arguments["overwrite"])
        answered["output_path"] = shown_path(target)
    return answered | ({"notes": list(dict.fromkeys(notes))} if notes else {})


def _answer(selection: Selection, values: Named, arguments: dict[str, Any]) -> Result:
    """Return the rows that the arguments ask for."""
    has_figures = any(value.is_aggregate for _, value in values)
    has_columns = bool(values) and not has_figures
    is_of_each = arguments.get("limit_per_group") is not None
    if arguments.get("find"):
        return _found(selection, values, arguments)
    if arguments["group"] and has_columns and is_of_each:
        return _listed_of_each(selection, values, arguments)
    if arguments["group"] or has_figures:
        return _grouped(selection, values, arguments)
    if is_of_each:
        raise _no_groups()
    return _listed(selection, values, arguments)


def _no_groups() -> Failure:
    action = (
        "Send group: ['region', 'customer'] and a figure for the top customers of "
        "each region, or group: ['region'] and columns in values for its top rows."
    )
    return Failure(
        "INVALID_INPUT",
        "limit_per_group needs groups that have several rows",
        action,
        path="/limit_per_group",
    )


def _target(arguments: dict[str, Any]) -> Path | None:
    """Return the file to write, if any: a chart as PNG, or the result as CSV."""
    suffix = ".png" if arguments.get("chart") else ".csv"
    name = arguments.get("output_path") or (
        "chart.png" if arguments.get("chart") else ""
    )
    if not name:
        return None
    if not name.lower().endswith(suffix):
        action = (
            "A chart is a .png, a result without chart a .csv; send chart: 'bar' or "
            "'line' to draw."
        )
        raise Failure(
            "INVALID_INPUT",
            f"{name!r} does not end in {suffix}",
            action,
            path="/output_path",
        )
    target = inside_workspace(name, "/output_path")
    check_output(target, "/output_path", overwrite=arguments["overwrite"])
    return target


def _parsed(scope: Scope, arguments: dict[str, Any], part: str) -> Named:
    """Return the name and meaning of each entry of ``group`` or ``values``."""
    parsed = []
    for index, text in enumerate(arguments[part]):
        path = f"/{part}/{index}"
        alias = None if text in scope.columns else ALIAS.fullmatch(text.strip())
        expression = parse(alias[1] if alias else text, scope, path)
        if part == "group" and expression.is_aggregate:
            raise Failure(
                "INVALID_INPUT",
                f"{text!r} is a figure, not a group",
                "Put it into values.",
                path=path,
            )
        parsed.append((alias[2] if alias else text.strip(), expression))
    return parsed


def _selected(
    table: Table,
    scope: Scope,
    arguments: dict[str, Any],
    values: Named,
    notes: list[str],
) -> Selection:
    """Read ``where``: a condition on a figure is tried after grouping."""
    rows, groups = ["true"], ["true"]
    for index, entry in enumerate(arguments["where"]):
        path = f"/where/{index}"
        expression = dict(values).get(entry["column"]) or parse(
            entry["column"], scope, f"{path}/column"
        )
        sql = condition(expression, entry, path)
        _note_values(table, [expression], notes)
        if expression.is_aggregate:
            groups.append(sql)
            continue
        rows.append(sql)
        is_name = entry["op"] == "=" and expression.kind == "text"
        if is_name and not table.rows(f"SELECT 1 FROM base WHERE {sql} LIMIT 1"):
            import difflib

            query = (
                f"SELECT DISTINCT {expression.sql} AS v FROM base WHERE v IS NOT NULL "
                "ORDER BY v LIMIT 5000"
            )
            known = [str(value) for (value,) in table.rows(query)]
            close = (
                difflib.get_close_matches(str(entry["value"]), known, 3, 0.5)
                or known[:8]
            )
            shown = ", ".join(repr(plain(value)) for value in close)
            notes.append(
                f"No row has {entry['value']!r} in {expression.text}; it has values "
                f"such as {shown}."
            )
    return Selection(table, scope, " AND ".join(rows), " AND ".join(groups))


def _note_values(table: Table, expressions: list[Expression], notes: list[str]) -> None:
    """Say which values are left out because they are not numbers or dates, and how
    unclear ones are read.
    """
    for column in dict.fromkeys(
        column for expression in expressions for column in expression.columns
    ):
        if column.undecided:
            notes.append(
                f"{column.name}: {column.undecided!r} can be two dates; ask the user, "
                "then send date_format."
            )
        elif column.note:
            notes.append(f"{column.name}: {column.note}.")
    for column, what in dict.fromkeys(
        pair for expression in expressions for pair in expression.converted
    ):
        sql = column.number if what == "number" else column.moment
        bad = (
            f'SELECT DISTINCT {column.sql} AS v, "·left" AS r FROM base WHERE v IS '
            f"NOT NULL AND ({sql}) IS NULL"
        )
        (count,) = table.rows(f"SELECT count(*) FROM ({bad})")[0]
        if count:
            first = table.rows(f"{bad} ORDER BY r LIMIT 3")
            shown = ", ".join(
                f"{plain(value)[:30]!r} (row {row})" for value, row in first
            )
            kind = "numbers" if what == "number" else "dates"
            notes.append(
                f"{column.name}: {count} value(s) are not {kind} and are left out: "
                f"{shown}."
            )


def _grouped(selection: Selection, values: Named, arguments: dict[str, Any]) -> Result:
    """Return a row of figures for each group; comparisons see all groups, also those
    that ``where`` and ``limit_per_group`` leave out.
    """
    table, scope = selection.table, selection.scope
    groups = _parsed(scope, arguments, "group")
    most = arguments.get("limit_per_group")
    if most is not None and len(groups) < 2:
        raise _no_groups()
    values = values or [("count()", parse("count()", scope, "/values"))]
    for index, (name, value) in enumerate(values):
        if not value.is_aggregate:
            message = f"{name!r} has many values in each group"
            action = f"Send a figure such as 'sum({name})', or put it into group."
            raise Failure("INVALID_INPUT", message, action, path=f"/values/{index}")
    rows = table.rows(_group_query(selection, groups, values))
    used = 'SELECT count(DISTINCT "·left") FROM base WHERE '
    (count,) = table.rows(f"{used}{selection.rows}")[0]
    expressions = [expression for _, expression in (*groups, *values)]
    names = [name for name, _ in (*groups, *values)]
    result = Result(names, expressions, len(groups), [], count)
    for row in rows:
        pairs = zip(row[1:], expressions, strict=True)
        result.rows.append([_rounded(value, of) for value, of in pairs])
    add_comparisons(result, arguments["add"])
    result.rows = [
        row for row, found in zip(result.rows, rows, strict=True) if found[0]
    ]
    if most is None:
        _sort(result, arguments.get("sort"))
    else:
        _keep_of_each(result, arguments.get("sort"), most)
    _note_values(table, expressions, result.notes)
    _note_case(table, [group for _, group in groups], result.notes)
    return result


def _group_query(selection: Selection, groups: Named, values: Named) -> str:
    """Return the SQL of a row for each group: whether the conditions on figures hold,
    the groups, and the figures.
    """
    keys = [f'"·g{index}"' for index in range(len(groups))]
    keyed = "*"
    for (_, group), key in zip(groups, keys, strict=True):
        keyed += f", {group.sql} AS {key}"
    source = f"(SELECT {keyed} FROM base WHERE {selection.rows})"
    if selection.scope.is_joined:
        # Numbers the repetitions of a row in its group; the figures of its file take
        # the first alone.
        over = [
            f"row_number() OVER (PARTITION BY {', '.join([*keys, quoted])})"
            for quoted in ('"·left"', '"·right"')
        ]
        right = f'CASE WHEN "·right" IS NOT NULL THEN {over[1]} END'
        source = (
            f'(SELECT *, {over[0]} AS "·once {LEFT}", {right} AS "·once {RIGHT}" FROM '
            f"{source})"
        )
    columns = [selection.figures]
    for key, (_, group) in zip(keys, groups, strict=True):
        columns.append(shown_sql(replace(group, sql=key)))
    columns += [shown_sql(value) for _, value in values]
    by = f"GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join(columns)} FROM {source} {by}"


def _rounded(value: Any, expression: Expression) -> Any:
    """Return *value*, in ten digits where it is the result of a division."""
    return (
        plain(value)
        if expression.exact or not isinstance(value, float)
        else plain(float(f"{value:.10g}"))
    )


def _note_case(table: Table, groups: list[Expression], notes: list[str]) -> None:
    """Say where two groups differ in case alone: to a person they are one."""
    for group in groups:
        if group.kind == "text" and not group.period:
            query = (
                f"SELECT min({group.sql}) AS a, max({group.sql}) AS b FROM base GROUP "
                f"BY lower({group.sql})"
            )
            query += " HAVING a <> b ORDER BY a LIMIT 1"
            notes += [
                f"{group.text}: {one!r} and {other!r} are two groups."
                for one, other in table.rows(query)
            ]


def _sort(result: Result, wanted: str | None) -> None:
    """Order the rows as asked; else in time where a group is one; else the largest
    first.
    """
    groups = result.expressions[: result.groups]
    in_time = any(
        group.period or group.kind in ("temporal", "numeric") for group in groups
    )
    _sort_by_groups(result.rows, result.groups)
    if wanted:
        index, descending = _sort_column(result, wanted)
        _sort_by_column(result, index, descending=descending)
    elif groups and not in_time:
        result.rows.sort(key=lambda row: order_of(row[result.groups]), reverse=True)


def _sort_by_groups(rows: list[list[Any]], groups: int) -> None:
    rows.sort(key=lambda row: [order_of(value) for value in row[:groups]])


def _sort_by_column(result: Result, index: int, *, descending: bool) -> None:
    """Order the rows by one column, those without a value last."""
    result.rows.sort(key=lambda row: order_of(row[index]), reverse=descending)
    result.rows.sort(key=lambda row: row[index] is None)


def _sort_column(result: Result, wanted: str) -> tuple[int, bool]:
    """Return the place of the column that *wanted* names, and whether the largest come
    first: of a figure, unless it says "asc".
    """
    found = SORT.fullmatch(wanted.strip())
    text = wanted if wanted in result.names or not found else found[2]
    name = named(text, result.names, "the result has no column", "/sort")
    index = result.names.index(name)
    descending = index >= result.groups
    if found and (found[1] or found[3]):
        descending = bool(found[1]) or found[3].lower() == "desc"
    return index, descending


def _keep_of_each(result: Result, wanted: str | None, most: int) -> None:
    """Keep the first *most* rows of each value of the groups before the last: by the
    column *wanted*, else the largest of the first figure. They stay together, in the
    order of the groups.
    """
    outer = result.groups - 1
    index = result.groups
    _sort_by_groups(result.rows, result.groups)
    _sort_by_column(result, index, descending=True)
    if wanted:
        index, descending = _sort_column(result, wanted)
        _sort_by_column(result, index, descending=descending)
    kept: list[list[Any]] = []
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in result.rows:
        group = tuple(row[:outer])
        counts[group] += 1
        if counts[group] <= most:
            kept.append(row)
    if index >= outer:  # otherwise the groups are in the order that was asked for
        _sort_by_groups(kept, outer)
    result.rows = kept


def _listed(selection: Selection, values: Named, arguments: dict[str, Any]) -> Result:
    """Return rows as they are: the columns named, or all."""
    _refuse_comparisons(arguments)
    table, scope = selection.table, selection.scope
    numeric = {"histogram": 1, "scatter": 2}.get(arguments.get("chart", ""), 0)
    values = values or [(name, parse(name, scope, "/values")) for name in scope.columns]
    expressions = [
        as_number(v, f"/values/{i}") if i < numeric else v
        for i, (_, v) in enumerate(values)
    ]
    limit = arguments["limit"]
    if arguments.get("chart") or arguments.get("output_path"):
        limit = MAX_READ
    order = _row_order(scope, values, arguments)
    columns = ", ".join(shown_sql(expression) for expression in expressions)
    rows = table.rows(
        f"SELECT {columns} FROM base WHERE {selection.rows} ORDER BY {order} LIMIT "
        f"{limit}"
    )
    count = _count(selection)
    result = Result([name for name, _ in values], expressions, 0, [], count)
    result.rows, result.total = [[plain(value) for value in row] for row in rows], count
    _note_values(table, expressions, result.notes)
    return result


def _listed_of_each(
    selection: Selection, values: Named, arguments: dict[str, Any]
) -> Result:
    """Return the first rows of each group, with the group's columns before those
    named.
    """
    _refuse_comparisons(arguments)
    table, scope = selection.table, selection.scope
    groups = _parsed(scope, arguments, "group")
    expressions = [expression for _, expression in (*groups, *values)]
    columns = ", ".join(shown_sql(expression) for expression in expressions)
    by = ", ".join(group.sql for _, group in groups)
    order = _row_order(scope, values, arguments)
    rows = table.rows(
        f"SELECT {columns} FROM base WHERE {selection.rows} QUALIFY row_number() OVER "
        f"(PARTITION BY {by} ORDER BY {order}) <= {arguments['limit_per_group']} "
        f"ORDER BY {order} LIMIT {MAX_READ}"
    )
    names = [name for name, _ in (*groups, *values)]
    result = Result(names, expressions, 0, [], _count(selection))
    result.rows = [[plain(value) for value in row] for row in rows]
    _sort_by_groups(result.rows, len(groups))
    if not arguments.get("sort"):
        result.notes.append(
            "Without sort these are the rows of each group that come first in the file."
        )
    _note_values(table, expressions, result.notes)
    _note_case(table, [group for _, group in groups], result.notes)
    return result


def _refuse_comparisons(arguments: dict[str, Any]) -> None:
    if not arguments["add"]:
        return
    raise Failure(
        "INVALID_INPUT",
        "add compares groups, and there are none",
        "Send group and values as well, such as 'month(date)' and 'sum(amount)'.",
        path="/add",
    )


def _row_order(scope: Scope, values: Named, arguments: dict[str, Any]) -> str:
    """Return the SQL that orders rows: by ``sort``, the largest first unless it says
    "asc"; then as in the file.
    """
    as_in_file = '"·left"'
    wanted = arguments.get("sort")
    if not wanted:
        return as_in_file
    found = SORT.fullmatch(wanted.strip())
    text = found[2] if found else wanted
    key = as_ordered(dict(values).get(text) or parse(text, scope, "/sort"), "/sort")
    ascending = found is not None and not found[1] and (found[3] or "").lower() == "asc"
    direction = "ASC" if ascending else "DESC"
    return f"{key.sql} {direction} NULLS LAST, {as_in_file}"


def _count(selection: Selection) -> int:
    """Return how many rows fit ``where``."""
    query = f"SELECT count(*) FROM base WHERE {selection.rows}"
    (count,) = selection.table.rows(query)[0]
    return int(count)


def _found(selection: Selection, values: Named, arguments: dict[str, Any]) -> Result:
    """Return what ``find`` names: rows that are duplicates, have gaps or are outliers;
    or correlations.
    """
    table = selection.table
    expressions = [expression for _, expression in values]
    has_figures = any(expression.is_aggregate for expression in expressions)
    is_of_groups = arguments["group"] or arguments["add"] or has_figures
    if is_of_groups or arguments.get("limit_per_group"):
        action = "Leave group, add and figures out; values name the columns to look at."
        raise Failure(
            "INVALID_INPUT", "find looks at rows, not at groups", action, path="/find"
        )
    find = FINDINGS[arguments["find"]]
    names, rows, notes = find(table, selection.scope, expressions, selection.rows)
    result = Result(names, [], 0, [], _count(selection), notes=notes)
    result.rows = [[plain(value) for value in row] for row in rows]
    _note_values(table, expressions, result.notes)
    return result


def _as_csv(result: Result) -> bytes:
    import csv
    import io

    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(result.names)
    writer.writerows(result.rows)
    return text.getvalue().encode(
        "utf-8-sig"
    )  # with the mark by which spreadsheets know UTF-8


if __name__ == "__main__":
    sys.exit(answer(run, SKILL / "contracts" / "query.json"))
