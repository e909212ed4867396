"""The results of ``token_budget.py`` as one HTML page: no script, nothing fetched,
light and dark, and for paper.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from html import escape
from typing import Any

__all__ = ["TIERS", "page"]

# Okabe and Ito's colours, which are distinct for every kind of colour vision; lighter
# ones on a dark ground. In the order of the stacks: tier, light, dark.
TIERS = (
    ("names and descriptions", "#0072b2", "#56b4e9"),
    ("bodies", "#e69f00", "#f0b63a"),
    ("frame, tools and notices", "#009e73", "#2fc79b"),
    ("question, calls and answers", "#8c8c8c", "#9c9c9c"),
    ("errors and retries", "#d55e00", "#ff8f52"),
)
STRATEGIES = {
    "progressive": "progressive disclosure",
    "budgeted": "catalog within 4,000",
    "tool_per_skill": "one tool per skill",
    "eager": "loading everything",
}
WIDTH = 720


def short(tokens: float) -> str:
    """Return a number of tokens for a label: 950, 12.3k, 1.45M."""
    if tokens >= 999_500:
        return f"{tokens / 1e6:.3g}M"
    if tokens >= 1_000:
        return f"{tokens / 1e3:.3g}k"
    return f"{tokens:.3g}"


def page(result: dict[str, Any]) -> str:
    """Return the whole page."""
    corpus, method = result["corpus"], result["method"]
    three = result["conversations"][1]
    ours, eager = (
        three["strategies"][key]["last_request"] for key in ("progressive", "eager")
    )
    start = corpus["catalog"]
    sure = "exact" if result["exact"] else "an estimate"
    figures = [
        figure(
            f"With {three['activations']} of {corpus['skills']:,} skills in use a "
            f"request carries {short(ours)} tokens, not {short(eager)}",
            "Tokens of the last request of a scripted conversation, and of all its "
            "requests together: each carries again what stands in the context.",
            totals(three),
        ),
        figure(
            "Progressive disclosure adds at most "
            f"{max(one['added_share'] for one in result['conversations']):.1%} to the "
            "catalog and the activated bodies",
            "The same conversation by tier, for "
            f"{', '.join(str(one['activations']) for one in result['conversations'])} "
            "different activations, with one activation repeated and one call refused "
            "for every three. Green is all that progressive disclosure adds to the "
            "catalog's names and descriptions and the activated bodies: instructions, "
            "its tools' definitions, calls to load, notices." + extra_requests(three),
            legend([tier for tier, _, _ in TIERS]) + tiers(result["conversations"]),
        ),
        figure(
            "Every way of listing skills grows with their number; a budget holds it",
            "Tokens in every request before anything is activated, for 10 to 10,000 "
            "skills (both axes logarithmic). Above the corpus's own size its skills "
            "are repeated under further names.",
            growth(result["growth"]),
        ),
        figure(
            "The compact catalog costs "
            f"{next(r for r in result['styles'] if r['name'] == 'compact')['above_per_skill']} "
            "tokens a skill above name and description",
            "Tokens a skill that a listing adds to the bare names and descriptions of "
            "the same skills; what a framework says once around its listing is not in "
            "the bars but in the table below. Line: our target.",
            styles(result["styles"]) + styles_table(result["styles"]),
        ),
        figure(
            "Half of the bodies are under "
            f"{result['distribution']['body']['median']:,} tokens; "
            f"{result['distribution']['bodies_over_5000']} are over the 5,000 that "
            "the format recommends",
            "Number of skills by the tokens of their body (logarithmic axis), and the "
            "largest by name.",
            histogram(
                [skill["body"] for skill in result["skills"]],
                result["distribution"]["body"],
            )
            + largest(result["distribution"]["body"]["largest"]),
        ),
    ]
    if "errors" in result:
        errors = result["errors"]
        carried = three["strategies"]["progressive"]
        figures.append(
            figure(
                f"Repair corrects {errors['repaired']:,} of {errors['calls']:,} "
                "repairable calls; each saves an error, a retry and a request",
                "Tokens for each damaged call of the set given: the error that the "
                "model receives, and the call that it must repeat. "
                f"{errors['wrong']:,} were repaired to something else than was meant. "
                "A retry is also one more request, which carries the context again: "
                f"{carried['total'] // carried['requests']:,} tokens on average in "
                f"the conversation with {three['activations']} activations; that is "
                "not in the bars.",
                legend(
                    ["error", "repeated call", "note on the repair"],
                    classes=["t4", "t3", "t2"],
                )
                + error_costs(errors),
            )
        )
    body = "\n".join(figures)
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>What skills cost in tokens</title>
<style>{style()}</style>
<main>
<h1>What skills cost in tokens</h1>
<p class="lead">{corpus["skills"]:,} skills measured: their catalog is {start:,}
tokens, their bodies {corpus["body"]:,}.
All figures are tokens of {escape(result["model"])}, counted offline: texts with
{escape(method)} ({sure}), the frames of
messages and tool definitions by an estimate.</p>
{targets(result["targets"])}
{body}
<section><h2>Method</h2>
<ul>
<li>Every text is the one a model would read: the catalog as rendered, a body as
activated, the envelope as answered.
What a model writes itself in a conversation is a fixed script, the same under every
strategy.</li>
<li>“One tool per skill”: each skill a tool with its name, description and schema in
every request; a skill without a
contract of its own stands in with a schema of two parameters. “Loading everything”:
every name, description and body in the
system prompt.</li>
<li>Tool definitions are framed as the OpenAI Cookbook does for its models; no provider
publishes how it serialises them,
so that part is an estimate.</li>
<li>Skills to activate are taken evenly from the smallest body to the largest.</li>
</ul></section>
</main>
</html>
"""


def extra_requests(conversation: dict[str, Any]) -> str:
    """Say it where progressive disclosure sends more in all, because loading a skill is
    a request of its own.
    """
    ours, tools = (
        conversation["strategies"][key] for key in ("progressive", "tool_per_skill")
    )
    if tools["total"] >= ours["total"]:
        return ""
    larger = tools["last_request"] / ours["last_request"] - 1
    return (
        " Loading a skill is a request of its own: one tool per skill sends less in "
        f"all ({tools['requests']} requests instead of {ours['requests']}), though "
        f"each of its requests is {larger:.0%} larger and it loads no instructions "
        "before it calls."
    )


def style() -> str:
    light = "".join(
        f"--t{number}:{colour};" for number, (_, colour, _) in enumerate(TIERS)
    )
    dark = "".join(
        f"--t{number}:{colour};" for number, (_, _, colour) in enumerate(TIERS)
    )
    fills = "".join(
        f".t{number}{{fill:var(--t{number});background:var(--t{number})}}"
        for number in range(len(TIERS))
    )
    strokes = "".join(
        f".l{number}{{stroke:var(--t{number})}}.n{number}{{fill:var(--t{number})}}"
        for number in range(len(TIERS))
    )
    return f"""
:root{{--ground:#fff;--ink:#1b1f24;--soft:#57606a;--rule:#d8dee4;{light}}}
@media (prefers-color-scheme:dark){{
 :root{{--ground:#14181d;--ink:#e8ebee;--soft:#a3adb8;--rule:#363d45;{dark}}}}}
@media (max-width:600px){{td:first-child{{white-space:normal}}}}
@media print{{:root{{--ground:#fff;--ink:#000;--soft:#444;--rule:#ccc;{light}}}
 body{{font-size:10pt}}
 .t0,.t1,.t2,.t3,.t4{{
  print-color-adjust:exact;-webkit-print-color-adjust:exact}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--ground);color:var(--ink);
 font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif}}
main{{max-width:820px;margin:0 auto;padding:2.5rem 1.25rem 4rem}}
h1{{font-size:1.9rem;line-height:1.2;margin:0 0 .6rem}}
h2{{font-size:1.15rem;line-height:1.35;margin:0 0 .3rem}}
.lead{{font-size:1.05rem;margin:0 0 1.6rem}}
section{{margin:2.8rem 0 0;break-inside:avoid}}
p.note{{color:var(--soft);margin:0 0 .9rem;font-size:.92rem}}
svg{{display:block;width:100%;height:auto;overflow:visible}}
svg text{{fill:var(--ink);font:13px system-ui,-apple-system,"Segoe UI",sans-serif}}
svg .soft{{fill:var(--soft)}}
svg .strong{{font-weight:600;paint-order:stroke;stroke:var(--ground);
 stroke-width:5px;stroke-linejoin:round}}
svg .on-t0,svg .on-t4{{fill:var(--ground);font-size:12px}}
svg .on-t1,svg .on-t2,svg .on-t3{{fill:#14181d;font-size:12px}}
svg .axis{{stroke:var(--rule);stroke-width:1}}
svg .mark{{stroke:var(--soft);stroke-width:1;stroke-dasharray:4 3}}
svg .line{{fill:none;stroke-width:2.2}} svg .edge{{stroke:var(--ground);stroke-width:1}}
{fills}{strokes}
.legend{{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.86rem;
 margin:0 0 .6rem;padding:0;list-style:none}}
.legend i{{display:inline-block;width:.8em;height:.8em;margin-right:.4em;
 border-radius:2px;vertical-align:-.05em}}
table{{border-collapse:collapse;font-size:.9rem;width:100%;margin:.8rem 0 0}}
th,td{{text-align:left;padding:.3rem .8rem .3rem 0;
 border-bottom:1px solid var(--rule);vertical-align:top}}
th{{font-weight:600;vertical-align:bottom}}
td.n,th.n{{text-align:right;font-variant-numeric:tabular-nums}} td.n{{white-space:nowrap}}
.wide{{overflow-x:auto}} .wide table{{font-size:.84rem}}
.nowrap,td:first-child{{white-space:nowrap}}
ul{{padding-left:1.2rem}} li{{margin:.3rem 0}}
.sub{{font-size:.92rem;margin:1.2rem 0 .2rem;font-weight:600}}
"""


def figure(title: str, note: str, drawing: str) -> str:
    return (
        f"<section><h2>{escape(title)}</h2><p "
        f'class="note">{escape(note)}</p>{drawing}</section>'
    )


def targets(rows: Sequence[dict[str, Any]]) -> str:
    cells = ""
    for row in rows:
        verdict = "✓ met" if row["met"] else "✗ not met"
        cells += (
            f"<tr><td>{escape(row['name'])}</td>"
            f'<td class="n">{row["measured"]:,} {escape(row["unit"])}</td>'
            f"<td>{escape(row['target'])}</td><td class='nowrap'>{verdict}</td></tr>"
        )
    return table(
        "<tr><th>what</th><th "
        f'class="n">measured</th><th>target</th><th></th></tr>{cells}'
    )


def table(rows: str) -> str:
    return f'<div class="wide"><table>{rows}</table></div>'


def legend(names: Sequence[str], classes: Sequence[str] | None = None) -> str:
    keys = classes or [f"t{number}" for number in range(len(names))]
    items = "".join(
        f'<li><i class="{key}"></i>{escape(name)}</li>'
        for name, key in zip(names, keys, strict=True)
    )
    return f'<ul class="legend">{items}</ul>'


def svg(height: float, content: str, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(label)}">{content}</svg>'
    )


def text(
    x: float, y: float, words: str, *, anchor: str = "start", kind: str = ""
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'class="{kind}">{escape(words)}</text>'
    )


def bars(
    rows: Sequence[tuple[str, Sequence[tuple[str, float]], str]],
    *,
    left: int = 190,
    right: int = 150,
    most: float = 0,
) -> str:
    """Return horizontal bars: each row a name, its parts (class and value) and the text
    at its end.
    """
    most = most or max(sum(value for _, value in parts) for _, parts, _ in rows)
    scale = (WIDTH - left - right) / most
    drawn = []
    for number, (name, parts, label) in enumerate(rows):
        y = number * 30 + 4
        drawn.append(text(left - 10, y + 15, name, anchor="end"))
        x = float(left)
        for key, value in parts:
            width = value * scale
            drawn.append(
                f'<rect x="{x:.2f}" y="{y}" width="{max(width, 0):.2f}" height="21" '
                f'class="{key}"/>'
            )
            if len(parts) > 1 and width > 44:
                drawn.append(
                    text(
                        x + width / 2,
                        y + 15,
                        short(value),
                        anchor="middle",
                        kind=f"on-{key}",
                    )
                )
            x += width
        drawn.append(text(x + 8, y + 15, label, kind="strong"))
    drawn.append(
        f'<line x1="{left}" x2="{left}" y1="0" y2="{len(rows) * 30}" class="axis"/>'
    )
    return "".join(drawn)


def totals(conversation: dict[str, Any]) -> str:
    rows = []
    for key, name in STRATEGIES.items():
        one = conversation["strategies"][key]
        label = (
            f"{short(one['last_request'])} tokens; {short(one['total'])} in "
            f"{one['requests']} requests"
        )
        rows.append(
            (
                name,
                [
                    (
                        "t0" if key in ("progressive", "budgeted") else "t3",
                        one["last_request"],
                    )
                ],
                label,
            )
        )
    return svg(
        30 * len(rows) + 4,
        bars(rows, left=200, right=270),
        "tokens in the last request, by strategy",
    )


def tiers(conversations: Sequence[dict[str, Any]]) -> str:
    rows = []
    for key in ("progressive", "tool_per_skill"):
        for conversation in conversations:
            one = conversation["strategies"][key]
            parts = [
                (f"t{number}", one["tiers"].get(tier, 0))
                for number, (tier, _, _) in enumerate(TIERS)
            ]
            number = conversation["activations"]
            name = (
                f"{'progressive' if key == 'progressive' else 'tool per skill'}, "
                f"{number} skill{'s' * (number != 1)}"
            )
            rows.append(
                (
                    name,
                    parts,
                    f"{short(one['total'])} tokens, {one['requests']} requests",
                )
            )
    details = "".join(
        f'<tr><td>{escape(STRATEGIES[key])}</td><td class="n">{one["activations"]}</td>'
        + "".join(
            f'<td class="n">{one["strategies"][key]["tiers"].get(tier, 0):,}</td>'
            for tier, _, _ in TIERS
        )
        + "</tr>"
        for key in STRATEGIES
        for one in conversations
    )
    heads = "".join(f'<th class="n">{escape(tier)}</th>' for tier, _, _ in TIERS)
    rows_of_table = (
        f'<tr><th>tokens sent</th><th class="n">activations</th>{heads}</tr>{details}'
    )
    return svg(
        len(rows) * 30 + 6, bars(rows, left=168, right=214), "tokens sent by tier"
    ) + table(rows_of_table)


def growth(rows: Sequence[dict[str, Any]]) -> str:
    series = [
        ("eager", "loading everything", 4),
        ("tool_per_skill", "one tool per skill", 3),
        ("reference", "reference listing", 1),
        ("compact", "compact catalog", 0),
        ("budgeted", "compact, 8,000 token budget", 2),
    ]
    left, right, top, height = 62, 222, 10, 330
    xs = [row["skills"] for row in rows]
    values = [row[key] for row in rows for key, _, _ in series if row.get(key)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(number: float) -> float:
        return left + (math.log10(number) - math.log10(xs[0])) / math.log10(
            xs[-1] / xs[0]
        ) * (WIDTH - left - right)

    def y(number: float) -> float:
        return top + (high - math.log10(number)) / (high - low) * height

    drawn = []
    for power in range(low, high + 1):
        drawn.append(
            f'<line x1="{left}" x2="{WIDTH - right}" y1="{y(10**power):.1f}" '
            f'y2="{y(10**power):.1f}" class="axis"/>'
        )
        drawn.append(
            text(
                left - 8, y(10**power) + 4, short(10**power), anchor="end", kind="soft"
            )
        )
    drawn += [
        text(x(number), top + height + 20, f"{number:,}", anchor="middle", kind="soft")
        for number in xs
    ]
    drawn.append(
        text(
            (left + WIDTH - right) / 2,
            top + height + 42,
            "skills",
            anchor="middle",
            kind="soft",
        )
    )
    drawn.append(text(left - 8, top - 14, "tokens", anchor="end", kind="soft"))
    ends = []
    for key, name, colour in series:
        points = [(x(row["skills"]), y(row[key])) for row in rows if row.get(key)]
        if not points:
            continue
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        drawn.append(f'<polyline points="{path}" class="line l{colour}"/>')
        drawn += [
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="2.6" class="n{colour}"/>'
            for px, py in points
        ]
        ends.append(
            [points[-1][1], f"{name} {short(rows[-1][key])}", points[-1][1], colour]
        )
    ends.sort(key=lambda end: end[0])
    for above, below in itertools.pairwise(ends):
        below[0] = max(below[0], above[0] + 17)
    for at, words, point, colour in ends:
        drawn.append(
            f'<line x1="{WIDTH - right + 4}" x2="{WIDTH - right + 12}" '
            f'y1="{point:.1f}" y2="{at:.1f}" class="l{colour}"/>'
        )
        drawn.append(text(WIDTH - right + 16, at + 4, words))
    inner = f'<g transform="translate(0,16)">{"".join(drawn)}</g>'
    heads = "".join(f'<th class="n">{escape(name)}</th>' for _, name, _ in series)
    cells = "".join(
        f'<tr><td class="n">{row["skills"]:,}</td>'
        + "".join(
            f'<td class="n">{row[key]:,}</td>' if row.get(key) else "<td></td>"
            for key, _, _ in series
        )
        + "</tr>"
        for row in rows
    )
    rows_of_table = f'<tr><th class="n">skills</th>{heads}</tr>{cells}'
    return svg(
        top + height + 68,
        inner,
        "tokens before anything is activated, by number of skills",
    ) + table(rows_of_table)


def styles(rows: Sequence[dict[str, Any]]) -> str:
    ordered = sorted(rows, key=lambda row: row["above_per_skill"])
    left, right = 190, 110
    most = max(row["above_per_skill"] for row in ordered)
    drawn = bars(
        [
            (
                row["name"],
                [("t0" if row["ours"] else "t3", max(row["above_per_skill"], 0))],
                f"{row['above_per_skill']:+.1f} tokens",
            )
            for row in ordered
        ],
        left=left,
        right=right,
        most=most,
    )
    at = left + 5 / most * (WIDTH - left - right)
    bottom = len(ordered) * 30
    mark = f'<line x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{bottom + 4}" class="mark"/>'
    drawn = (
        mark + drawn + text(at, bottom + 18, "target 5", anchor="middle", kind="soft")
    )
    return legend(["ours", "other libraries"], classes=["t0", "t3"]) + svg(
        bottom + 26, drawn, "tokens a skill above name and description"
    )


def styles_table(rows: Sequence[dict[str, Any]]) -> str:
    cells = "".join(
        f'<tr><td>{escape(row["name"])}</td><td class="n">{row["tokens"]:,}</td><td '
        f'class="n">{row["above_per_skill"]:+.2f}</td><td '
        f'class="n">{row.get("standing", "")}</td></tr>'
        for row in rows
    )
    return table(
        '<tr><th>listing</th><th class="n">tokens in all</th><th class="n">tokens a '
        'skill above name and description</th><th class="n">tokens of the standing '
        f"instruction</th></tr>{cells}"
    )


def histogram(values: Sequence[int], summary: dict[str, Any]) -> str:
    left, right, top, height = 44, 20, 52, 190
    low, high = math.log10(max(min(values), 10)), math.log10(max(values))
    number = 28
    bins = [0] * number
    for value in values:
        bins[
            min(
                int((math.log10(max(value, 10)) - low) / (high - low) * number),
                number - 1,
            )
        ] += 1
    most = max(bins)
    width = (WIDTH - left - right) / number

    def x(value: float) -> float:
        return left + (math.log10(value) - low) / (high - low) * (WIDTH - left - right)

    drawn = []
    for at, many in enumerate(bins):
        tall = many / most * height
        drawn.append(
            f'<rect x="{left + at * width + 0.7:.1f}" y="{top + height - tall:.1f}" '
            f'width="{width - 1.4:.1f}" height="{tall:.1f}" class="t1"/>'
        )
    drawn.append(
        f'<line x1="{left}" x2="{WIDTH - right}" y1="{top + height}" '
        f'y2="{top + height}" class="axis"/>'
    )
    drawn.append(text(left - 6, top + 5, str(most), anchor="end", kind="soft"))
    drawn.append(text(left - 6, top + height, "0", anchor="end", kind="soft"))
    drawn.append(text(left - 6, top - 14, "skills", anchor="end", kind="soft"))
    ticks = [
        tick
        for tick in (30, 100, 300, 1_000, 3_000, 10_000, 30_000)
        if low <= math.log10(tick) <= high
    ]
    drawn += [
        text(x(tick), top + height + 18, f"{tick:,}", anchor="middle", kind="soft")
        for tick in ticks
    ]
    drawn.append(
        text(
            WIDTH - right,
            top + height + 38,
            "tokens of the body",
            anchor="end",
            kind="soft",
        )
    )
    marks = [
        (summary["median"], f"median {summary['median']:,}", "end", 0),
        (summary["p90"], f"90 % under {summary['p90']:,}", "end", 18),
        (5_000, "5,000 recommended", "start", 0),
    ]
    for value, words, anchor, lower in marks:
        if low <= math.log10(value) <= high:
            shift = 6 if anchor == "start" else -6
            drawn.append(
                f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" '
                f'y1="{top - 38 + lower}" y2="{top + height}" class="mark"/>'
            )
            drawn.append(
                text(
                    x(value) + shift,
                    top - 28 + lower,
                    words,
                    anchor=anchor,
                    kind="strong",
                )
            )
    return svg(
        top + height + 46, "".join(drawn), "number of skills by tokens of the body"
    )


def largest(rows: Sequence[dict[str, Any]]) -> str:
    drawn = bars(
        [
            (row["name"], [("t1", row["tokens"])], f"{row['tokens']:,} tokens")
            for row in rows
        ],
        left=270,
        right=120,
    )
    return '<p class="sub">The largest bodies</p>' + svg(
        len(rows) * 30 + 4, drawn, "the largest bodies, in tokens"
    )


def error_costs(errors: dict[str, Any]) -> str:
    calls = max(errors["calls"], 1)
    rows = []
    for name, error, retry, note in (
        ("without repair", errors["error"], errors["retry"], 0),
        ("with repair", errors["error_left"], errors["retry_left"], errors["note"]),
    ):
        parts = [("t4", error / calls), ("t3", retry / calls), ("t2", note / calls)]
        rows.append(
            (name, parts, f"{(error + retry + note) / calls:.0f} tokens a call")
        )
    return svg(64, bars(rows, left=130, right=160), "tokens for each invalid call")
