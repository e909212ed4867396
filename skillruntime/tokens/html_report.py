"""A `TokenReport` as one HTML page: no script, nothing fetched, light and dark, readable from 390 pixels on.

It states what the skills cost, and judges nothing.
"""

# ruff: noqa: E501  templates of HTML and CSS read better whole
from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from skillruntime.tokens.report import SkillCost, TokenReport
from skillruntime.tokens.strategy import cheaper_from, strategies

__all__ = ["to_html"]

# Above this a page takes a phone seconds to scroll; --json has every skill.
_MOST_SKILLS = 300
_MOST_SAVINGS = 50
# Logarithmic steps: of 34,434 real skills half have bodies below 1,500 tokens, and the largest above 30,000.
_BINS = (250, 500, 1_000, 2_000, 5_000, 10_000)


def to_html(report: TokenReport, *, activations: Sequence[int] = (1, 3, 10), title: str = "Skills in tokens") -> str:
    """Return the page; the three ways of giving skills to a model are compared for each number of *activations*."""
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{_amount(len(report.skills), "skill")}. {_method(report)}</p>',
        _figures(report),
        _ways(report, activations),
        _distribution(report),
        _skills(report),
        _savings(report),
        _unreadable(report),
    ]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    body = "\n".join(part for part in parts if part)
    return f'<!doctype html>\n<html lang="en"><head>{head}<title>{escape(title)}</title><style>{_style()}</style></head>\n<body><main>\n{body}\n</main></body></html>\n'


def _figures(report: TokenReport) -> str:
    bodies = [skill.body for skill in report.skills] or [0]
    figures = (
        (report.catalog, "in every request: the catalog, with each name and description"),
        (round(statistics.median(bodies)), "when a skill is loaded: the median of the instructions"),
        (report.total("schema"), "the definitions of all callable tools"),
        (report.total("resource"), "all files, read only when they are needed"),
    )
    cells = "".join(f"<div><b>{tokens:,}</b><span>{escape(words)}</span></div>" for tokens, words in figures)
    return f'<section class="figures">{cells}</section>'


def _ways(report: TokenReport, activations: Sequence[int]) -> str:
    if not report.skills:
        return ""
    used = sorted({min(number, len(report.skills)) for number in activations if number > 0})
    compared = [(number, strategies(report, number)) for number in used]
    blocks = []
    for number, ways in compared:
        # Each block has its own scale: a conversation with ten skills would flatten that with one.
        most = max(way.sent for way in ways)
        bars = "".join(
            _bar(
                way.name,
                way.sent,
                most,
                f"{_amount(way.requests, 'request')}, the first with {way.first:,} tokens, the last with {way.last:,}",
            )
            for way in ways
        )
        blocks.append(f"<h3>{_amount(number, 'skill')} used</h3>{bars}")
    return f"""<section><h2>Three ways to give these skills to a model</h2>
<p>{_both_halves(report)}</p>
{"".join(blocks)}
<p class="soft">Tokens that all requests of one conversation send together, each skill used once: a request carries again what the
ones before it carried. Progressive disclosure loads the instructions of a skill with tools in a request of its own; with one tool per skill they come with the tool's first
result. Questions, calls and answers are the same in all three and left out. Prompt caching, which lowers the price of what is repeated, is not counted.</p></section>"""


def _both_halves(report: TokenReport) -> str:
    """Return when progressive disclosure is cheaper, and when one tool per skill is."""
    first, tools, _ = strategies(report, 0)
    number = len(report.skills)
    turn = cheaper_from(report)
    start = f"its first request carries {first.first:,} tokens, that of one tool per skill {tools.first:,}"
    if turn is None:
        return (
            f"Progressive disclosure sends less than one tool per skill, however many of the {number:,} skills a conversation uses: {start}. "
            "One tool per skill is cheaper for a few skills with small parameters, and where most of the skills are used."
        )
    if turn == 0:
        return (
            f"One tool per skill sends less than progressive disclosure, however many of the {number:,} skills a conversation uses: progressive disclosure carries more from the start ({start}) "
            "and adds a request for each load. It is cheaper with more skills, or with larger parameters."
        )
    return (
        f"<b>Progressive disclosure</b> is cheaper while a conversation uses fewer than {_amount(turn, 'skill')}: {start}. "
        f"<b>One tool per skill</b> is cheaper from {_amount(turn, 'skill')} on: it needs no requests to load instructions."
    )


def _distribution(report: TokenReport) -> str:
    if len(report.skills) < 10:  # a histogram of nine is the list of nine
        return ""
    edges = [0, *_BINS]
    labels = [f"{low:,} to {high - 1:,}" for low, high in zip(edges, _BINS, strict=False)] + [f"from {_BINS[-1]:,}"]
    counts = [0] * len(labels)
    for skill in report.skills:
        counts[sum(skill.body >= edge for edge in _BINS)] += 1
    bars = "".join(_bar(f"{label} tokens", count, max(counts), "") for label, count in zip(labels, counts, strict=True))
    return f"<section><h2>Skills by the size of their instructions</h2>{bars}</section>"


def _skills(report: TokenReport) -> str:
    ordered = sorted(report.skills, key=lambda skill: (-skill.body, skill.name))
    most = max((skill.body for skill in ordered), default=1)
    bars = "".join(_bar(skill.name, skill.body, most, _details(skill)) for skill in ordered[:_MOST_SKILLS])
    left = len(ordered) - _MOST_SKILLS
    more = f'<p class="soft">and {left:,} smaller ones (skillruntime tokens --json has all)</p>' if left > 0 else ""
    return f'<section><h2>Each skill</h2><p class="soft">Tokens of the instructions; below, name and description, files and tools.</p>{bars}{more}</section>'


def _details(skill: SkillCost) -> str:
    parts = [f"name and description {skill.metadata:,}"]
    if skill.resources:
        parts.append(f"{_amount(len(skill.resources), 'file')} {skill.resource:,}")
    if skill.schemas:
        parts.append(f"{_amount(len(skill.schemas), 'tool')} {skill.schema:,}")
    if skill.sections and len(skill.sections) > 1 and skill.body:
        largest = skill.sections[0]
        parts.append(f"largest section “{largest.title}” {largest.tokens / skill.body:.0%}")
    return " · ".join(parts)


def _savings(report: TokenReport) -> str:
    advice = report.advice
    if not advice:
        return ""
    items = "".join(
        f"<li><b>{one.tokens:,}</b> tokens {escape(one.when)}: <bdi>{escape(one.skill)}</bdi>: {escape(one.message)}; {escape(one.hint)}</li>"
        for one in advice[:_MOST_SAVINGS]
    )
    left = len(advice) - _MOST_SAVINGS
    more = f'<p class="soft">and {left:,} more</p>' if left > 0 else ""
    return f"<section><h2>Possible savings</h2><ul>{items}</ul>{more}</section>"


def _unreadable(report: TokenReport) -> str:
    if not report.unreadable:
        return ""
    items: Iterable[str] = (
        f"<li><bdi>{escape(name)}</bdi>: {escape(reason)}</li>" for name, reason in report.unreadable
    )
    return f"<section><h2>Not read</h2><ul>{''.join(items)}</ul></section>"


def _bar(label: str, value: int, most: int, details: str) -> str:
    """Return a labelled bar; a block of its own, so that long names wrap instead of widening the page."""
    width = 100 * value / most if most else 0
    # <bdi> keeps a name with right-to-left marks from reordering the figures beside it.
    return (
        f'<div class="row"><div class="head"><bdi>{escape(label)}</bdi><b>{value:,}</b></div>'
        f'<div class="bar"><i style="width:{width:.1f}%"></i></div>'
        + (f'<div class="soft">{escape(details)}</div>' if details else "")
        + "</div>"
    )


def _method(report: TokenReport) -> str:
    sure = "counted exactly" if report.exact else "an estimate"
    return f"All figures are tokens of {escape(report.model)}: {escape(report.method)}, {sure}. Catalog style: {escape(report.style)}."


def _amount(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _style() -> str:
    return (Path(__file__).parent / "html_report.css").read_text("utf-8")
