"""Write a token report as one self-contained HTML page without a script, for light and
dark mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from skillruntime.tokens.costs import SkillCost
from skillruntime.tokens.report_bars import (
    LOADED,
    Kind,
    Report,
    conversation_costs,
    largest_first,
    loaded_tokens,
    skills_text,
)

__all__ = ["report_page", "report_summary"]

SHOWN = 30
"""Skills that have a bar; all are in the table."""

_ADVICE = 20
# The Agent Skills format recommends fewer for the instructions of a skill.
_RECOMMENDED = 5_000


def report_page(report: Report) -> str:
    """Return the page, complete from ``<!doctype html>`` on."""
    title = f"Tokens of {skills_text(len(report.skills))}"
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{escape(title)}</h1>",
        _how_counted(report),
        *_on_costs(report),
        *_on_skills(report),
        *_on_savings(report),
        *_on_unreadable(report),
        "</main>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)


def report_summary(report: Report) -> str:
    """Return the beginning of the page, the costs of a session, for a notebook."""
    return "\n".join(
        [
            f'<div class="skillruntime-tokens"><style>{_scoped(_STYLE)}</style>',
            _how_counted(report),
            *_on_costs(report),
            "</div>",
        ]
    )


def _how_counted(report: Report) -> str:
    precision = "exact" if report.exact else "an estimate"
    return (
        f'<p class="note">In tokens of {escape(report.model)}, {precision}: '
        f"{escape(report.method)}.</p>"
    )


def _on_costs(report: Report) -> Iterator[str]:
    """Yield the part of the page about the costs of a conversation."""
    if not report.skills:
        yield "<p>No skills were found.</p>"
        return
    yield "<h2>What a conversation pays</h2>"
    yield (
        "<p>A model reads the list of all skills in every request. It reads the "
        "instructions of a skill only when it loads that skill. The last bar is what "
        "every request would cost if all instructions were always there.</p>"
    )
    rows = conversation_costs(report)
    most = max(tokens for _, tokens in rows)
    yield '<div class="bars">'
    for name, tokens in rows:
        share = ""
        if report.eager:
            share = f" <span>{tokens / report.eager:.0%}</span>"
        yield _row(escape(name), f"{tokens:,}{share}", [("body", tokens)], most)
    yield "</div>"
    if len(report.skills) > 1:
        yield '<p class="note">With the instructions of an average skill.</p>'


def _on_skills(report: Report) -> Iterator[str]:
    """Yield the part about the costs of each skill: bars for the largest, a table of
    all.
    """
    if not report.skills:
        return
    yield "<h2>What each skill costs</h2>"
    yield f'<ul class="key">{"".join(map(_key, LOADED))}</ul>'
    longest = sum(skill.body > _RECOMMENDED for skill in report.skills)
    if longest:
        have = "has" if longest == 1 else "have"
        yield (
            f"<p>{skills_text(longest)} {have} instructions of more than "
            f"{_RECOMMENDED:,} tokens; the Agent Skills format recommends fewer.</p>"
        )
    largest = largest_first(report.skills)
    most = loaded_tokens(largest[0])
    yield '<div class="bars">'
    for skill in largest[:SHOWN]:
        parts = [(kind.tier, getattr(skill, kind.tier)) for kind in LOADED]
        name = f'<span title="{escape(skill.path)}">{escape(skill.name)}</span>'
        yield _row(name, f"{loaded_tokens(skill):,}", parts, most)
    yield "</div>"
    if report.total("resource"):
        yield (
            '<p class="note">Without the files of the skills: a conversation pays only '
            "for those that it reads.</p>"
        )
    if len(largest) > SHOWN:
        yield (
            f'<p class="note">The {SHOWN} largest of {len(largest):,}; the table has '
            "all.</p>"
        )
    is_open = "" if len(largest) > SHOWN else " open"
    yield f"<details{is_open}><summary>All figures</summary>"
    yield from _table(report, largest)
    yield "</details>"


def _table(report: Report, skills: Sequence[SkillCost]) -> Iterator[str]:
    yield '<div class="wide"><table><thead><tr><th>skill</th>'
    yield "".join(f"<th>{kind.name}</th>" for kind in LOADED)
    yield "<th>together</th><th>files</th></tr></thead><tbody>"
    for skill in skills:
        numbers = [getattr(skill, kind.tier) for kind in LOADED]
        numbers += [sum(numbers), skill.resource]
        yield f"<tr><td>{escape(skill.name)}</td>{_cells(numbers)}</tr>"
    totals = [report.total(kind.tier) for kind in LOADED]
    totals += [sum(totals), report.total("resource")]
    yield (
        f"</tbody><tfoot><tr><td>{skills_text(len(skills))}</td>"
        f"{_cells(totals)}</tr></tfoot></table></div>"
    )


def _on_savings(report: Report) -> Iterator[str]:
    advice = report.advice
    if not advice:
        return
    yield "<h2>Possible savings</h2><ul>"
    for saving in advice[:_ADVICE]:
        yield (
            f"<li><b>{saving.tokens:,} tokens</b> {escape(saving.when)}: "
            f"<b>{escape(saving.skill)}</b>: {escape(saving.message)}. "
            f"{escape(saving.hint[:1].upper() + saving.hint[1:])}.</li>"
        )
    yield "</ul>"
    if len(advice) > _ADVICE:
        yield f'<p class="note">and {len(advice) - _ADVICE:,} smaller ones.</p>'


def _on_unreadable(report: Report) -> Iterator[str]:
    if not report.unreadable:
        return
    yield "<h2>Not counted</h2><ul>"
    for name, reason in report.unreadable:
        yield f"<li>{escape(name)}: {escape(reason)}</li>"
    yield "</ul>"


def _row(name: str, figure: str, parts: Sequence[tuple[str, int]], most: int) -> str:
    """Return a line of a chart: *name*, a bar of *parts* by tier, and *figure*; a bar
    of *most* tokens takes the whole width.
    """
    drawn = "".join(_rectangles(parts, most))
    return (
        f'<div class="row"><div class="name">{name}</div>'
        f'<svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">'
        f'{drawn}</svg><div class="figure">{figure}</div></div>'
    )


def _rectangles(parts: Iterable[tuple[str, int]], most: int) -> Iterator[str]:
    start = 0.0
    for tier, tokens in parts:
        width = 1000 * tokens / max(most, 1)
        if tokens:
            yield (
                f'<rect class="{tier}" x="{start:.1f}" width="{width:.1f}" height="10"/>'
            )
        start += width


def _key(kind: Kind) -> str:
    return (
        f'<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="{kind.tier}" '
        f'width="10" height="10"/></svg><b>{kind.name}</b> {kind.when}</li>'
    )


def _cells(numbers: Iterable[int]) -> str:
    return "".join(f"<td>{number:,}</td>" for number in numbers)


def _scoped(style: str) -> str:
    """Return *style* for use inside another page: its rules apply below one element
    only.
    """
    return style.replace(":root", ".skillruntime-tokens").replace("body{", ".no{")


_STYLE = """
:root{--text:#1c1f24;--faint:#5b6470;--line:#d9dde3;--page:#fff;
--metadata:#c2570c;--body:#2563c9;--schema:#0f8a6d}
@media (prefers-color-scheme:dark){:root{--text:#e6e9ee;--faint:#a0a9b6;
--line:#363d47;--page:#14171b;--metadata:#f0944d;--body:#6ea2f5;--schema:#45c3a2}}
body{margin:0;background:var(--page);color:var(--text);
font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.7rem;line-height:1.2;margin:0}
h2{font-size:1.2rem;margin:2.2rem 0 .4rem}
.note,.key,.figure span{color:var(--faint)}
.bars{margin:1rem 0}
.row{display:grid;grid-template-columns:14rem 1fr 8rem;gap:.75rem;
align-items:center;padding:.2rem 0}
.row svg{width:100%;height:.9rem}
.name{overflow-wrap:anywhere;line-height:1.25}
.figure{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.key{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.4rem}
.key svg{width:.75rem;height:.75rem;margin-right:.4rem}
.key b{color:var(--text)}
rect.metadata{fill:var(--metadata)}rect.body{fill:var(--body)}
rect.schema{fill:var(--schema)}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:.25rem .5rem;border-bottom:1px solid var(--line)}
th{color:var(--faint);font-weight:500;vertical-align:bottom}
th:first-child,td:first-child{text-align:left;padding-left:0}
tfoot td{font-weight:600;border-bottom:0}
summary{cursor:pointer;margin:1rem 0 .5rem}
li{margin:.3rem 0;overflow-wrap:anywhere}
@media (max-width:40rem){.row{grid-template-columns:1fr auto;gap:.1rem .75rem;
padding:.35rem 0}.row svg{grid-row:2;grid-column:1/3}
th,td{padding:.25rem .35rem;font-size:.85rem}}
"""
