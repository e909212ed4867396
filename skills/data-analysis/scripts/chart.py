# /// script
# requires-python = ">=3.11"
# dependencies = ["duckdb>=1.4,<3", "matplotlib>=3.9,<4"]
# ///
"""Draw one chart from a CSV, Parquet or JSON-lines file and write it as a PNG.

Reads one JSON object on standard input (the contract's ``input``), prints one JSON object (its ``output``)::

    echo '{"path": "sales.csv", "kind": "bar", "x": "region", "y": "amount"}' | python scripts/chart.py
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from script_call import Failure, answer, check_output, inside_workspace, shown_path, write_output
from tables import Column, Table, open_table, plain

SKILL = Path(__file__).resolve().parents[1]
MAX_SERIES = 6
MAX_POINTS = 5000
AGGREGATES = {"sum": "sum", "mean": "avg", "median": "median", "min": "min", "max": "max"}


@dataclass(slots=True)
class Plot:
    """What will be drawn: for each series (one, named "", without a split) its x and y values, in order."""

    kind: str
    title: str
    x_label: str
    y_label: str
    x_kind: str
    lines: dict[str, list[tuple[Any, float]]] = field(default_factory=dict)
    bin_width: float = 0.0
    warnings: list[str] = field(default_factory=list)

    @property
    def points(self) -> int:
        """Return how many bars, points or bins there are."""
        return sum(map(len, self.lines.values()))


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """Write the PNG and return where it is, and the figures drawn."""
    target = inside_workspace(arguments["output_path"], "/output_path")
    check_output(target, "/output_path", overwrite=arguments["overwrite"])
    with open_table(arguments) as table:
        plot = _plot(table, arguments)
    if not plot.points:
        raise Failure("INVALID_INPUT", "there is nothing to draw: no row has all values", "Send other columns.")
    from drawing import draw  # half a second of matplotlib, which a call that cannot be drawn need not wait for

    image, (width, height), warnings = draw(plot)
    write_output(target, image, "/output_path", overwrite=arguments["overwrite"])
    rows = [
        {"x": plain(x), "y": plain(y)} | ({"series": name} if name else {})
        for name, line in plot.lines.items()
        for x, y in line
    ]
    result = {
        "output_path": shown_path(target),
        "kind": plot.kind,
        "bytes": len(image),
        "width": width,
        "height": height,
        "series": [name for name in plot.lines if name],
        "points": plot.points,
        "data": rows[:100],
    }
    return result | ({"warnings": plot.warnings + warnings} if plot.warnings + warnings else {})


def _plot(table: Table, arguments: dict[str, Any]) -> Plot:
    kind = arguments["kind"]
    x = table.column(arguments["x"], "/x")
    y = table.column(arguments["y"], "/y") if arguments.get("y") and kind != "histogram" else None
    split = table.column(arguments["series"], "/series") if arguments.get("series") and kind != "histogram" else None
    if kind in ("scatter", "histogram"):
        _must_be_numeric(x, "/x")
    if y:
        _must_be_numeric(y, "/y")
    elif kind == "scatter":
        action = "Send a numeric column as y."
        raise Failure("MISSING_REQUIRED_PARAM", "a scatter chart needs y", action, path="/y")
    measured = "number of rows" if y is None else f"{arguments['aggregate']} of {y.name}"
    if kind == "scatter" and y:
        measured = y.name
    title = arguments.get("title") or {
        "histogram": f"Distribution of {x.name}",
        "scatter": f"{measured} against {x.name}",
    }.get(kind, f"{measured[0].upper()}{measured[1:]} by {x.name}")
    plot = Plot(kind, title, x.name, measured, x.kind)
    if kind == "histogram":
        _fill_histogram(plot, table, x, arguments["bins"])
    else:
        names = _series(plot, table, split)
        if kind == "scatter" and y:
            _fill_scatter(plot, table, x, y, split, names)
        else:
            _fill_grouped(plot, table, x, y, split, names, arguments)
    return plot


def _must_be_numeric(column: Column, path: str) -> None:
    if column.kind != "numeric":
        message = f"column {column.name!r} is {column.kind} ({column.type}), not numeric"
        raise Failure("INVALID_INPUT", message, "Send a numeric column; the summary tool lists them.", path=path)


def _series(plot: Plot, table: Table, split: Column | None) -> list[str]:
    """Return the names of the series, the most frequent ones, in alphabetical order."""
    if split is None:
        return []
    rows = table.rows(
        f"SELECT {split.sql}::VARCHAR AS s, count(*) AS n FROM data WHERE s IS NOT NULL GROUP BY s ORDER BY n DESC, s"
    )
    if len(rows) > MAX_SERIES:
        plot.warnings.append(f"{len(rows)} series: only the {MAX_SERIES} with most rows are drawn.")
    return sorted(name for name, _ in rows[:MAX_SERIES])


def _fill_histogram(plot: Plot, table: Table, x: Column, bins: int) -> None:
    number = f"{x.sql}::DOUBLE"
    low, high = table.rows(f"SELECT min({number}), max({number}) FROM data WHERE isfinite({number})")[0]
    if low is None:
        return
    width = (high - low) / bins or 1.0
    rows = dict(
        table.rows(
            f"SELECT least(floor(({number} - {low!r}) / {width!r}), {bins - 1})::BIGINT AS bin, count(*) "
            f"FROM data WHERE isfinite({number}) GROUP BY bin"
        )
    )
    plot.bin_width = width
    plot.y_label = "number of rows"
    plot.lines[""] = [(low + index * width, rows.get(index, 0)) for index in range(bins if high > low else 1)]


def _fill_scatter(plot: Plot, table: Table, x: Column, y: Column, split: Column | None, names: list[str]) -> None:
    where = f"isfinite({x.sql}::DOUBLE) AND isfinite({y.sql}::DOUBLE)"
    if split:
        where += f" AND {split.sql}::VARCHAR IN ({', '.join(map(_quoted, names)) or 'NULL'})"
    (count,) = table.rows(f"SELECT count(*) FROM data WHERE {where}")[0]
    step = -(-count // MAX_POINTS) or 1
    if step > 1:
        plot.warnings.append(f"{count} points: every {step}th is drawn.")
    group = f"{split.sql}::VARCHAR" if split else "''"
    rows = table.rows(
        f"SELECT s, x, y FROM (SELECT {group} AS s, {x.sql}::DOUBLE AS x, {y.sql}::DOUBLE AS y, "
        f"row_number() OVER () AS n FROM data WHERE {where}) WHERE n % {step} = {1 % step}"
    )
    for name in names or [""]:
        plot.lines[name] = [(a, b) for group_name, a, b in rows if group_name == name]


def _fill_grouped(
    plot: Plot, table: Table, x: Column, y: Column | None, split: Column | None, names: list[str], arguments: Any
) -> None:
    value = f"{AGGREGATES[arguments['aggregate']]}({y.sql}::DOUBLE)" if y else "count(*)"
    group = f"{split.sql}::VARCHAR" if split else "''"
    where = f"{x.sql} IS NOT NULL" + (f" AND isfinite({y.sql}::DOUBLE)" if y else "")
    if split:
        where += f" AND {split.sql}::VARCHAR IN ({', '.join(map(_quoted, names)) or 'NULL'})"
    rows = table.rows(
        f"SELECT {group} AS s, any_value({x.shown_sql}), {value} AS v FROM data WHERE {where} "
        f"GROUP BY s, {x.sql} ORDER BY {x.sql}, s"
    )
    ordered = list(dict.fromkeys(category for _, category, _ in rows))
    if plot.kind == "bar":
        ordered = _largest(plot, ordered, rows, arguments["limit"], x.kind)
    elif len(ordered) > MAX_POINTS:
        plot.warnings.append(f"{len(ordered)} x values: only the first {MAX_POINTS} are drawn.")
        ordered = ordered[:MAX_POINTS]
    found = {(name, category): float(f"{number:.10g}") for name, category, number in rows if number is not None}
    for name in names or [""]:
        plot.lines[name] = [(key, found[name, key]) for key in ordered if (name, key) in found]


def _largest(plot: Plot, ordered: list[Any], rows: list[tuple[Any, ...]], limit: int, kind: str) -> list[Any]:
    """Return the *limit* categories with the largest values; named ones by size, dates and numbers in their order."""
    sizes = dict.fromkeys(ordered, 0.0)
    for _, category, number in rows:
        sizes[category] += abs(float(number or 0))
    by_size = sorted(ordered, key=lambda category: -sizes[category])
    if len(ordered) > limit:
        plot.warnings.append(f"{len(ordered)} categories: only the {limit} largest are drawn.")
    kept = by_size[:limit]
    return kept if kind in ("text", "other") else [category for category in ordered if category in kept]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    sys.exit(answer(run, SKILL / "contracts" / "chart.json"))
