"""The main plots of ``token_budget.py`` as PNG for the README: on white, and on a dark
ground.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot
from token_budget_page import STRATEGIES, TIERS, short

__all__ = ["plots"]

GROUNDS = {
    "": ("#ffffff", "#1b1f24", "#57606a", "#d8dee4"),
    "-dark": ("#14181d", "#e8ebee", "#a3adb8", "#363d45"),
}


def plots(result: dict[str, Any], folder: Path) -> None:
    """Write ``token-tiers.png`` and ``token-growth.png`` into *folder*, each also as
    ``...-dark.png``.
    """
    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, (ground, ink, soft, rule) in GROUNDS.items():
        with mpl.rc_context(
            {
                "figure.facecolor": ground,
                "axes.facecolor": ground,
                "savefig.facecolor": ground,
                "text.color": ink,
                "axes.labelcolor": soft,
                "axes.edgecolor": rule,
                "xtick.color": soft,
                "ytick.color": soft,
                "grid.color": rule,
                "font.size": 11,
                "axes.spines.top": False,
                "axes.spines.right": False,
            }
        ):
            dark = bool(suffix)
            tiers(result, folder / f"token-tiers{suffix}.png", dark=dark)
            growth(result, folder / f"token-growth{suffix}.png", dark=dark)


def colour(number: int, *, dark: bool) -> str:
    return TIERS[number][2 if dark else 1]


def tiers(result: dict[str, Any], path: Path, *, dark: bool) -> None:
    """What a request carries with three skills in use, by tier; loading everything, far
    off the scale, in words.
    """
    conversation = result["conversations"][1]
    figure, axes = pyplot.subplots(figsize=(9, 3), layout="constrained")
    names = ["tool_per_skill", "progressive", "budgeted"]
    for row, key in enumerate(names):
        one = conversation["strategies"][key]
        left = 0
        for number, (tier, _, _) in enumerate(TIERS):
            width = one["held"].get(tier, 0)
            shown = tier if row == 0 else None
            axes.barh(
                row,
                width,
                left=left,
                height=0.6,
                color=colour(number, dark=dark),
                label=shown,
            )
            left += width
        words = f"{short(one['last_request'])} tokens"
        axes.annotate(
            words,
            (left, row),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontweight="bold",
        )
    axes.set_yticks(range(len(names)), [STRATEGIES[key] for key in names])
    axes.tick_params(axis="y", length=0, labelcolor=axes.title.get_color())
    axes.margins(x=0.18)
    axes.spines["bottom"].set_visible(False)
    axes.set_xticks([])
    eager = short(conversation["strategies"]["eager"]["last_request"])
    in_use = (
        f"{conversation['activations']} of {result['corpus']['skills']:,} skills in use"
    )
    axes.set_title(
        f"A request, {in_use} (everything loaded: {eager})",
        loc="left",
        fontweight="bold",
        fontsize=12,
    )
    handles = axes.get_legend_handles_labels()
    figure.legend(
        *handles,
        loc="outside lower left",
        ncols=5,
        frameon=False,
        fontsize=9,
        handlelength=1,
    )
    figure.savefig(path, dpi=160)
    pyplot.close(figure)


def growth(result: dict[str, Any], path: Path, *, dark: bool) -> None:
    """Tokens before anything is activated, by number of skills: both axes logarithmic,
    each line named at its end.
    """
    rows = result["growth"]
    series = [
        ("eager", "loading everything", 4),
        ("reference", "reference listing (XML)", 1),
        ("tool_per_skill", "one tool per skill", 3),
        ("compact", "compact catalog", 0),
        ("budgeted", "compact, budget 8,000", 2),
    ]
    figure, axes = pyplot.subplots(figsize=(9, 4.2), layout="constrained")
    ends = []
    for key, name, number in series:
        points = [(row["skills"], row[key]) for row in rows if row.get(key)]
        if not points:
            continue
        axes.plot(
            *zip(*points, strict=True),
            color=colour(number, dark=dark),
            linewidth=2,
            marker="o",
            markersize=3.5,
        )
        ends.append((points[-1][1], f"{name}: {short(points[-1][1])}", number))
    axes.set(
        xscale="log", yscale="log", xlabel="skills", ylabel="tokens in every request"
    )
    axes.set_xticks(
        [row["skills"] for row in rows], [f"{row['skills']:,}" for row in rows]
    )
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: short(value))
    axes.grid(axis="y", linewidth=0.7)
    axes.set_axisbelow(True)
    at = float("inf")
    for value, words, _ in sorted(ends, reverse=True):
        at = min(value, at / 1.75)
        axes.annotate(
            words,
            (rows[-1]["skills"], value),
            xytext=(rows[-1]["skills"] * 1.25, at),
            va="center",
            annotation_clip=False,
            fontsize=10,
        )
    axes.set_title(
        "Tokens before anything is activated",
        loc="left",
        fontweight="bold",
        fontsize=12,
    )
    figure.savefig(path, dpi=160, bbox_inches="tight", pad_inches=0.15)
    pyplot.close(figure)
