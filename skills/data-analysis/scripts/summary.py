# /// script
# requires-python = ">=3.11"
# dependencies = ["duckdb>=1.4,<3", "python-calamine>=0.5,<1"]
# ///
"""Summarise a CSV, XLSX, JSON or Parquet file: shape, column types, gaps, ranges,
quantiles, frequent values.

Reads one JSON object on standard input (the contract's ``input``), prints one JSON
object (its ``output``)::

    echo '{"path": "sales.csv"}' | python scripts/summary.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import duckdb
from column_types import Column
from script_call import answer, shown_path
from tables import Table, database, open_table, plain

SKILL = Path(__file__).resolve().parents[1]
MAX_COLUMNS = 50
EXACT_ROWS = (
    1_000_000  # above it, distinct values are estimated (HyperLogLog, about 2 % off)
)
QUANTILES = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the table's shape and one entry per column asked for."""
    with database() as opened:
        table = open_table(opened, arguments)
        names = arguments.get("columns")
        chosen = [
            table.column(name, f"/columns/{index}")
            for index, name in enumerate(names or [])
        ]
        chosen = chosen or list(table.columns[:MAX_COLUMNS])
        result: dict[str, Any] = {
            "path": shown_path(table.file),
            "format": table.format,
            "bytes": table.file.stat().st_size,
            "row_count": table.row_count,
            "column_count": len(table.columns),
            "distinct_counts_exact": table.row_count <= EXACT_ROWS,
            "columns": [
                _summarise(table, column, arguments["top_values"]) for column in chosen
            ],
            "sample": _sample(table, chosen, arguments["sample_rows"]),
        }
        warnings = list(table.notes)
        if not names and len(table.columns) > MAX_COLUMNS:
            rest = ", ".join(
                column.name for column in table.columns[MAX_COLUMNS : MAX_COLUMNS + 20]
            )
            warnings.append(
                f"Only the first {MAX_COLUMNS} columns are summarised; name others in "
                f"columns: {rest}"
            )
        if not table.row_count:
            warnings.append("The file has columns and no rows.")
        return result | ({"warnings": warnings} if warnings else {})


def _summarise(table: Table, column: Column, top: int) -> dict[str, Any]:
    distinct = (
        "count(DISTINCT {})"
        if table.row_count <= EXACT_ROWS
        else "approx_count_distinct({})"
    )
    filled, different = table.rows(
        f"SELECT count({column.sql}), {distinct.format(column.sql)} FROM data"
    )[0]
    entry: dict[str, Any] = {
        "name": column.name,
        "type": column.type,
        "kind": column.kind,
        "null_count": table.row_count - filled,
        "null_share": round(1 - filled / table.row_count, 4) if table.row_count else 0,
        "distinct_count": different,
    }
    if not filled:
        return entry | (
            {"notes": ["Every value is missing."]} if table.row_count else {}
        )
    if column.kind == "numeric":
        entry |= _numbers(table, column)
    elif column.kind != "other":
        least, most = table.rows(
            f"SELECT min({column.sql})::VARCHAR, max({column.sql})::VARCHAR FROM data"
        )[0]
        entry |= {"min": plain(least), "max": plain(most)}
    if column.kind == "text":
        text = f"length({column.sql}::VARCHAR)"
        least, most = table.rows(f"SELECT min({text}), max({text}) FROM data")[0]
        entry |= {"min_length": least, "max_length": most}
    repeats = different < filled if column.kind == "text" else different * 2 <= filled
    if top and (
        repeats or column.kind == "boolean"
    ):  # where nearly every value is another, none is frequent
        entry["top_values"] = _top(table, column, filled, top)
    notes = [f"{column.note}."] if column.note else []
    if column.undecided:
        notes.append(
            f"{column.undecided!r} can be two dates: ask the user, then send "
            "date_format."
        )
    if different == 1 and filled == table.row_count > 1:
        notes.append("Every row has the same value.")
    notes += _almost(table, column, filled)
    return entry | ({"notes": notes} if notes else {})


def _numbers(table: Table, column: Column) -> dict[str, Any]:
    """Return range, mean, spread and quantiles of the finite values."""
    number = f"{column.sql}::DOUBLE"
    shares = ", ".join(map(str, QUANTILES.values()))
    finite, least, most = table.rows(
        f"SELECT count(*), min({column.sql}), max({column.sql}) FROM data WHERE "
        f"isfinite({number})"
    )[0]
    entry: dict[str, Any] = {"min": plain(least), "max": plain(most)}
    (filled,) = table.rows(f"SELECT count({column.sql}) FROM data")[0]
    if finite < filled:
        entry["non_finite_count"] = filled - finite
    if not finite:
        return entry
    try:
        mean, spread, quantiles = table.rows(
            f"SELECT avg({number}), stddev_samp({number}), quantile_cont({number}, "
            f"[{shares}]) FROM data WHERE isfinite({number})"
        )[0]
    except (
        duckdb.OutOfRangeException
    ):  # values near the end of double precision: their squares have no number
        return entry
    entry |= {"mean": plain(_short(mean)), "stddev": plain(_short(spread))}
    return entry | {
        "quantiles": {
            name: plain(_short(q)) for name, q in zip(QUANTILES, quantiles, strict=True)
        }
    }


def _short(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.10g}")


def _top(table: Table, column: Column, filled: int, top: int) -> list[dict[str, Any]]:
    rows = table.rows(
        f"SELECT any_value({column.shown_sql}), count(*) AS n FROM data WHERE "
        f"{column.sql} IS NOT NULL GROUP BY {column.sql} ORDER BY n DESC, "
        f"any_value({column.sql}::VARCHAR) LIMIT {top}"
    )
    return [
        {"value": plain(value), "count": count, "share": round(count / filled, 4)}
        for value, count in rows
    ]


def _almost(table: Table, column: Column, filled: int) -> list[str]:
    """Say so where nearly all of a text column are numbers or dates, and name what is
    not.
    """
    sql, kind = (
        (column.number, "numbers") if column.number else (column.moment, "dates")
    )
    if not sql:
        return []
    others = (
        f"SELECT DISTINCT {column.sql} AS v FROM data WHERE v IS NOT NULL AND ({sql}) "
        "IS NULL ORDER BY v LIMIT 3"
    )
    shown = ", ".join(repr(plain(value)[:40]) for (value,) in table.rows(others))
    (count,) = table.rows(f"SELECT count({sql}) FROM data")[0]
    return [
        f"{count} of {filled} values are {kind}, stored as text"
        + (f"; others: {shown}." if shown else ".")
    ]


def _sample(table: Table, columns: list[Column], count: int) -> list[dict[str, Any]]:
    query = (
        f"SELECT {', '.join(column.shown_sql for column in columns)} FROM data LIMIT "
        f"{count}"
    )
    names = [column.name for column in columns]
    return [dict(zip(names, map(plain, row), strict=True)) for row in table.rows(query)]


if __name__ == "__main__":
    sys.exit(answer(run, SKILL / "contracts" / "summary.json"))
