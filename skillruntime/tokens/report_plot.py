"""Draw a token report as an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillruntime.tokens.report_bars import (
    LOADED,
    conversation_costs,
    largest_first,
    skills_text,
)

if TYPE_CHECKING:
    from skillruntime.tokens.costs import SkillCost
    from skillruntime.tokens.report import TokenReport

__all__ = ["plot"]

_SHOWN = 20
_BAR = 0.36  # the height of a bar with its space, in inches
_AROUND = 1.7  # the height of titles, axes and legend
_COLOURS = {"metadata": "#c2570c", "body": "#2563c9", "schema": "#0f8a6d"}


def plot(report: TokenReport) -> bytes:
    """Return a PNG with the costs of a conversation, and below them those of the
    largest skills.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    from io import BytesIO

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    largest = largest_first(report.skills)[:_SHOWN]
    costs = conversation_costs(report)
    heights = [_BAR * len(costs), _BAR * max(len(largest), 1)]
    figure = Figure(figsize=(9, _AROUND + sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, height_ratios=heights)
    _draw_costs(above, costs)
    above.set_title(
        f"Tokens of {skills_text(len(report.skills))} ({report.model}, "
        f"{report.method})",
        loc="left",
        parse_math=False,
    )
    _draw_skills(below, largest)
    title = "What each skill costs, without files"
    if len(largest) < len(report.skills):
        title = f"What the {_SHOWN} largest skills cost, without files"
    below.set_title(title, loc="left")
    below.set_xlabel("tokens")
    if largest:
        # Below the axes, because a bar may be anywhere in them.
        figure.legend(loc="outside lower center", ncols=len(LOADED), frameon=False)
    image = BytesIO()
    figure.savefig(image, format="png", dpi=150)
    return image.getvalue()


def _draw_costs(axes: Any, costs: list[tuple[str, int]]) -> None:
    tokens = [number for _, number in costs]
    bars = axes.barh(range(len(costs)), tokens, color=_COLOURS["body"])
    axes.bar_label(bars, [f"{number:,}" for number in tokens], padding=4)
    _plain(axes, [name for name, _ in costs], most=max(tokens))


def _draw_skills(axes: Any, skills: list[SkillCost]) -> None:
    left = [0] * len(skills)
    for kind in LOADED:
        tokens = [getattr(skill, kind.tier) for skill in skills]
        axes.barh(
            range(len(skills)),
            tokens,
            left=left,
            color=_COLOURS[kind.tier],
            label=kind.name,
        )
        left = [start + own for start, own in zip(left, tokens, strict=True)]
    _plain(axes, [skill.name[:40] for skill in skills], most=max(left, default=0))


def _plain(axes: Any, names: list[str], *, most: int) -> None:
    """Name the bars, the first one at the top, and leave a margin beside the longest,
    of *most* tokens.
    """
    # A name is not a formula, whatever signs it has.
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(max(len(names), 1) - 0.4, -0.6)
    # Stated, because matplotlib leaves no margin beside a bar whose last part is empty.
    axes.set_xlim(0, 1.12 * max(most, 1))
    axes.spines[["top", "right"]].set_visible(False)
    axes.locator_params("x", integer=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
