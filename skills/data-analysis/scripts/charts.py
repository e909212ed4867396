"""A query's result as a chart: which columns are x, y and series, and what has no
meaning as a chart.

Not a tool: query.py imports it where a chart is asked for.
"""

from __future__ import annotations

from typing import Any

from comparisons import Result, order_of
from drawing import MAX_SERIES, Plot, draw
from expressions import as_ordered
from script_call import Failure

MAX_POINTS = 5000
BINS = 20


def draw_result(result: Result, arguments: dict[str, Any], notes: list[str]) -> bytes:
    """Return the PNG of *result* and add what a reader should know to *notes*."""
    kind = arguments["chart"]
    if arguments.get("find"):
        raise Failure(
            "INVALID_INPUT",
            "what find returns is not drawn",
            "Leave chart or find out.",
            path="/chart",
        )
    if kind in ("scatter", "histogram"):
        plot = _of_rows(kind, result, notes)
    else:
        plot = _of_groups(
            kind,
            result,
            result.rows[: arguments["limit"]] if kind == "bar" else result.rows,
            notes,
        )
    if not plot.points:
        action = "Send other columns or conditions."
        raise Failure(
            "INVALID_INPUT", "there is nothing to draw: no row has all values", action
        )
    plot.title = arguments.get("title") or plot.title
    image, said = draw(plot)
    notes += said
    return image


def _of_rows(kind: str, result: Result, notes: list[str]) -> Plot:
    wanted = 1 if kind == "histogram" else 2
    if result.groups or len(result.names) < wanted:
        action = (
            "Send values: ['amount'] for a histogram, ['units', 'amount'] for a "
            "scatter, and no group."
        )
        raise Failure(
            "INVALID_INPUT",
            f"a {kind} shows {wanted} column(s) of rows",
            action,
            path="/values",
        )
    rows = [
        row
        for row in result.rows
        if all(isinstance(value, int | float) for value in row[:wanted])
    ]
    x = result.names[0]
    if kind == "scatter":
        if len(rows) > MAX_POINTS:
            step = -(-len(rows) // MAX_POINTS)
            notes.append(f"{len(rows)} points: one in {step} is drawn.")
            rows = rows[::step]
        plot = Plot(kind, f"{result.names[1]} against {x}", x, result.names[1])
        _fill(
            plot,
            [(row[2] if len(row) > 2 else "", row[0], row[1]) for row in rows],
            notes,
        )
        return plot
    plot = Plot(kind, f"Distribution of {x}", x, "number of rows")
    numbers = [row[0] for row in rows]
    if numbers:
        low, high = min(numbers), max(numbers)
        plot.bin_width = (high - low) / BINS or 1.0
        counts = [0] * (BINS if high > low else 1)
        for number in numbers:
            counts[min(int((number - low) / plot.bin_width), len(counts) - 1)] += 1
        plot.lines[""] = [
            (low + index * plot.bin_width, count) for index, count in enumerate(counts)
        ]
    result.names, result.total = (
        [f"{x} from", "count"],
        None,
    )  # what is drawn is the answer
    result.rows = [
        [float(f"{low:.10g}"), count] for low, count in plot.lines.get("", [])
    ]
    return plot


def _of_groups(
    kind: str, result: Result, rows: list[list[Any]], notes: list[str]
) -> Plot:
    """Draw the first figure over the group in time, or the first one; a second group,
    or figure, makes series.
    """
    figures = max(result.groups, 1)
    if len(result.names) <= figures or result.groups > 2:
        action = (
            "Send group: one or two, and a figure in values, such as 'sum(amount)'."
        )
        raise Failure(
            "INVALID_INPUT",
            f"a {kind} chart needs groups and a figure",
            action,
            path="/chart",
        )
    periods = [
        index for index in range(result.groups) if result.expressions[index].period
    ]
    x = periods[0] if periods else 0
    if kind == "line":
        as_ordered(
            result.expressions[x], "/chart"
        )  # texts that have no order are refused
    names = [result.names[index] for index in range(figures, len(result.expressions))]
    if result.groups == 2:
        drawn = [(row[1 - x], row[x], row[figures]) for row in rows]
    else:
        drawn = [
            (name if len(names) > 1 else "", row[x], row[figures + i])
            for i, name in enumerate(names)
            for row in rows
        ]
    drawn = [
        (name, place, value)
        for name, place, value in drawn
        if place is not None and value is not None
    ]
    wrong = next(
        (value for _, _, value in drawn if isinstance(value, str | bool)), None
    )
    if wrong is not None:
        raise Failure(
            "INVALID_INPUT",
            f"{wrong!r} is not a number",
            "Send a figure in values.",
            path="/values",
        )
    if len({(name, place) for name, place, _ in drawn}) < len(drawn):
        action = (
            f"Send group: [{result.names[x]!r}] and a figure in values, such as "
            f"'sum({result.names[figures]})'."
        )
        raise Failure(
            "INVALID_INPUT",
            f"one {result.names[x]!r} has several values",
            action,
            path="/group",
        )
    measured = names[0] if len(names) == 1 or result.groups == 2 else "value"
    plot = Plot(
        kind, f"{', '.join(names[:3])} by {result.names[x]}", result.names[x], measured
    )
    places = dict.fromkeys(place for _, place, _ in drawn)
    plot.categories = (
        sorted(places, key=order_of) if kind == "line" or periods else list(places)
    )
    if len(plot.categories) > MAX_POINTS:
        notes.append(
            f"{len(plot.categories)} x values: the first {MAX_POINTS} are drawn."
        )
        plot.categories = plot.categories[:MAX_POINTS]
    known = set(plot.categories)
    rank = {place: index for index, place in enumerate(plot.categories)}
    kept = sorted(
        (point for point in drawn if point[1] in known),
        key=lambda point: rank[point[1]],
    )
    _fill(plot, kept, notes)
    return plot


def _fill(plot: Plot, points: list[tuple[Any, Any, float]], notes: list[str]) -> None:
    """Put the points into series: those with the largest values, in the order of their
    names.
    """
    sizes: dict[Any, float] = {}
    for name, _, value in points:
        sizes[name] = sizes.get(name, 0) + abs(value)
    if len(sizes) > MAX_SERIES:
        notes.append(f"{len(sizes)} series: the {MAX_SERIES} largest are drawn.")
    for name in sorted(
        sorted(sizes, key=lambda name: -sizes[name])[:MAX_SERIES], key=order_of
    ):
        plot.lines[str(name) if name is not None else "(none)"] = [
            (x, y) for group, x, y in points if group == name
        ]
