"""A plot as a PNG: light, legible at a glance, the same bytes for the same figures.

Not a tool: charts.py imports it. The colours stay distinct for people with colour
blindness (Okabe and Ito, 2008).
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import matplotlib
from lettering import Lettering
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

INK, QUIET, GRID = "#1f2328", "#59636e", "#e3e6ea"
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
MARKERS = ("o", "s", "^", "D", "v", "P")
MAX_SERIES = len(COLOURS)
INCHES, DPI = (9.0, 5.2), 150
STYLE = {
    "font.size": 11,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "axes.edgecolor": GRID,
    "axes.labelcolor": QUIET,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": False,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
}


@dataclass(slots=True)
class Plot:
    """What is drawn: for each series (one, named "", without a split) its x and y
    values, in order.

    *categories* are the x values of bars and lines, in their order. *lettering* writes
    its texts.
    """

    kind: str
    title: str
    x_label: str
    y_label: str
    lines: dict[str, list[tuple[Any, float]]] = field(default_factory=dict)
    categories: list[Any] = field(default_factory=list)
    bin_width: float = 0.0
    lettering: Lettering = field(default_factory=Lettering)

    @property
    def points(self) -> int:
        """Return how many bars, points or bins there are."""
        return sum(map(len, self.lines.values()))

    def written(self, text: str, length: int) -> str:
        """Return *text* in letters that a font has, cut to *length*."""
        return _cut(self.lettering.written(text), length)


def draw(plot: Plot) -> tuple[bytes, list[str]]:
    """Return the PNG of *plot*, and what a reader should know."""
    kinds = {"bar": _bars, "line": _line, "scatter": _scatter, "histogram": _histogram}
    style = STYLE | {"font.family": plot.lettering.families}
    with matplotlib.rc_context(style):
        figure = Figure(
            figsize=INCHES, dpi=DPI, facecolor="white", layout="constrained"
        )
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_axisbelow(True)
        kinds[plot.kind](axes, plot)
        figure.suptitle(
            plot.written(plot.title, 80),
            x=0.01,
            ha="left",
            fontsize=15,
            fontweight="bold",
            color=INK,
        )
        if len(plot.lines) > 1:
            names = [plot.written(name, 30) for name in plot.lines]
            columns = 6 if max(map(len, names)) <= 12 else 3
            axes.legend(
                labels=names,
                loc="lower left",
                bbox_to_anchor=(0, 1.0),
                ncols=columns,
                frameon=False,
            )
        data = io.BytesIO()
        figure.savefig(data, format="png", metadata={"Software": None})
    return data.getvalue(), plot.lettering.notes()


def _bars(axes: Any, plot: Plot) -> None:
    labels = [plot.written(_name(x), 28) for x in plot.categories]
    across = (
        max(map(len, labels)) > 12 or len(labels) > 12
    )  # long names read better beside lying bars
    place = {category: index for index, category in enumerate(plot.categories)}
    thick = 0.78 / len(plot.lines)
    for number, (name, line) in enumerate(plot.lines.items()):
        shift = (number - (len(plot.lines) - 1) / 2) * thick
        spots = [place[x] + shift for x, _ in line]
        values = [y for _, y in line]
        bars = (axes.barh if across else axes.bar)(
            spots, values, thick, color=COLOURS[number], label=name
        )
        if len(plot.lines) == 1 and len(labels) <= 20:
            axes.bar_label(
                bars, [_number(y) for y in values], padding=3, color=QUIET, fontsize=10
            )
    axes.margins(**{"x" if across else "y": 0.08})
    if across:
        axes.set_yticks(range(len(labels)), labels)
        axes.invert_yaxis()
        _format(axes, grid="x")
        axes.set_xlabel(plot.written(plot.y_label, 60))
        if len(plot.x_label) <= 40:
            axes.set_ylabel(plot.written(plot.x_label, 60))
    else:
        axes.set_xticks(range(len(labels)), labels)
        _format(axes, grid="y")
        _name_axes(axes, plot)


def _line(axes: Any, plot: Plot) -> None:
    categories = plot.categories
    moments = all(_moment(x) for x in categories)
    numeric = all(isinstance(x, int | float) for x in categories)
    place = {x: index for index, x in enumerate(categories)}
    for number, (name, line) in enumerate(plot.lines.items()):
        if moments:
            xs = [_moment(x) for x, _ in line]
        elif numeric:
            xs = [x for x, _ in line]
        else:
            xs = [place[x] for x, _ in line]
        marker = MARKERS[number] if len(line) <= 40 else None
        style = {
            "color": COLOURS[number],
            "linewidth": 2,
            "marker": marker,
            "markersize": 5,
        }
        axes.plot(xs, [y for _, y in line], label=name, **style)
    _format(axes, grid="y")
    _name_axes(axes, plot)
    if moments:
        locator = AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    elif numeric:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        step = -(-len(categories) // 12)
        axes.set_xticks(
            range(0, len(categories), step),
            [plot.written(_name(x), 14) for x in categories[::step]],
        )


def _scatter(axes: Any, plot: Plot) -> None:
    if plot.points <= 300:
        size = 36
    elif plot.points <= 2000:
        size = 14
    else:
        size = 8
    for number, (name, line) in enumerate(plot.lines.items()):
        xs, ys = [x for x, _ in line], [y for _, y in line]
        style = {"s": size, "alpha": 0.7, "linewidths": 0, "marker": MARKERS[number]}
        axes.scatter(xs, ys, color=COLOURS[number], label=name, **style)
    _format(axes, grid="both")
    _name_axes(axes, plot)


def _histogram(axes: Any, plot: Plot) -> None:
    line = plot.lines[""]
    style = {
        "align": "edge",
        "color": COLOURS[0],
        "edgecolor": "white",
        "linewidth": 0.8,
    }
    axes.bar([x for x, _ in line], [y for _, y in line], width=plot.bin_width, **style)
    _format(axes, grid="y", numbers="both")
    _name_axes(axes, plot)


def _name_axes(axes: Any, plot: Plot) -> None:
    axes.set_xlabel(plot.written(plot.x_label, 60))
    axes.set_ylabel(plot.written(plot.y_label, 60))


def _format(axes: Any, *, grid: str, numbers: str = "") -> None:
    """Draw the lines of *grid*; write short numbers on its axes, or those of
    *numbers*.
    """
    axes.grid(axis=grid, color=GRID, linewidth=0.8)
    axes.tick_params(length=0)
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if (numbers or grid) in (name, "both"):
            axis.set_major_formatter(FuncFormatter(lambda value, _: _number(value)))


def _moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment.replace(tzinfo=None)


def _name(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    """Return *value* short enough for an axis.

    >>> [_number(value) for value in (0, 0.25, 12.5, 1234.5, 2_500_000, 7_000_000_000)]
    ['0', '0.25', '12.5', '1,234', '2.5M', '7B']
    """
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:,.4g}{letter}"
    if abs(value) >= 1:
        return (
            f"{value:,.0f}"
            if abs(value) >= 1000
            else f"{value:.2f}".rstrip("0").rstrip(".")
        )
    return f"{value:.3g}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
