"""Draw a token report as an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillruntime.tokens.report_page import KINDS

if TYPE_CHECKING:
    from skillruntime.tokens.report import TokenReport

__all__ = ["plot"]

_SHOWN = 20
_COLOURS = {
    "metadata": "#c2570c",
    "body": "#2563c9",
    "schema": "#0f8a6d",
    "resource": "#9aa5b4",
}


def plot(report: TokenReport) -> bytes:
    """Return a PNG with the costs of a conversation, and below them those of the
    largest skills.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    from io import BytesIO

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    largest = sorted(report.skills, key=lambda skill: (skill.body, skill.name))[
        -_SHOWN:
    ]
    height = 2.6 + 0.32 * max(len(largest), 3)
    figure = Figure(figsize=(9, height), layout="constrained")
    FigureCanvasAgg(figure)
    ratios = [2.0, 0.32 * max(len(largest), 3)]
    above, below = figure.subplots(2, 1, height_ratios=ratios)
    _draw_sessions(above, report)
    left = [0] * len(largest)
    names = [skill.name[:40] for skill in largest]
    for kind in KINDS[:3]:
        tokens = [getattr(skill, kind.tier) for skill in largest]
        below.barh(
            range(len(names)),
            tokens,
            left=left,
            color=_COLOURS[kind.tier],
            label=kind.name,
        )
        left = [start + own for start, own in zip(left, tokens, strict=True)]
    below.set_yticks(range(len(names)), names)
    below.set_title(
        "The skills with the longest instructions, without files", loc="left"
    )
    if largest:
        # Below the axes, because a bar may be anywhere in them.
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
    below.set_xlabel("tokens")
    below.margins(x=0.05)
    _plain(below)
    image = BytesIO()
    figure.savefig(image, format="png", dpi=150)
    return image.getvalue()


def _draw_sessions(axes: Any, report: TokenReport) -> None:
    rows = [("everything at once", report.eager)]
    for number in sorted({min(number, len(report.skills)) for number in (1, 3, 10)}):
        rows.insert(1, (f"with {number} loaded", report.session(number)))
    rows.append(("the list of skills alone", report.catalog))
    rows = [*rows[:1], *sorted(rows[1:], key=lambda row: -row[1])]
    names = [name for name, _ in rows]
    bars = axes.barh(names, [tokens for _, tokens in rows], color=_COLOURS["body"])
    axes.bar_label(bars, [f"{tokens:,}" for _, tokens in rows], padding=4)
    number = len(report.skills)
    axes.set_title(
        f"Tokens of {number:,} skill{'s' * (number != 1)} ({report.model}, "
        f"{report.method})",
        loc="left",
    )
    axes.margins(x=0.15)
    _plain(axes)


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter("{x:,.0f}")
