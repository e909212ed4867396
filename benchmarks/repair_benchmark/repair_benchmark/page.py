"""The tables, and the page with them: what this library is not the best at comes
first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from repair_benchmark.cases import (
    SETS,
    cases,
    data_version,
    kind_of_answer,
    rows,
    tools,
)
from repair_benchmark.running import Judged, Result

OURS = "skillruntime"
TEMPLATE = Path(__file__).parent / "page.md"
KINDS = {
    "answer": ("A", ("right", "refused", "wrong")),
    "answer or refusal": ("B", ("right", "refused", "wrong")),
    "refusal": ("C", ("refused", "wrong")),
}
IN_WORDS = {
    "answer": "only the answer",
    "answer or refusal": "the answer or a refusal",
    "refusal": "only a refusal",
}


def tables(results: list[Result]) -> str:
    """Return the Markdown tables of all sets."""
    return "\n".join(_table(results, name) for name in SETS)


def page(results: list[Result], not_run: dict[str, str]) -> str:
    """Return the page: the template with the tables and the figures in its text.

    Raises:
        ValueError: the page is about this library, and it was not run.
    """
    if not any(result.engine.name == OURS for result in results):
        raise ValueError(f"the page needs {OURS}, which was not run")
    threads = rows("threads")
    ended = cases("recorded")
    recorded = rows("recorded")
    servers = {f"{each['server']} {each['version']}" for each in tools()}
    reasons = "; ".join(f"{name} ({why})" for name, why in not_run.items())
    return TEMPLATE.read_text(encoding="utf-8").format(
        version=data_version(),
        not_best="\n".join(f"- {line}" for line in not_best(results)),
        tables=tables(results),
        engines=_engine_table(results),
        not_run=reasons or "none",
        threads=len(threads),
        links=len({each["thread"] for each in threads}),
        recorded=len(recorded),
        ended=len(ended),
        unanswerable=sum(kind_of_answer(each) == "refusal" for each in ended),
        recorded_cut=len(recorded) - len(ended),
        servers=", ".join(sorted(servers)),
        tools=len(tools()),
    )


def not_best(results: list[Result]) -> list[str]:
    """Return a sentence for each thing in which another engine does better."""
    ours = next(result for result in results if result.engine.name == OURS)
    others = [result for result in results if result is not ours]
    lines = []
    for name in SETS:
        lines += _better_counts(ours, others, name)
    lines += _answered_by_others(ours, others)
    faster = _smaller(ours, others, lambda result: result.microseconds)
    if faster:
        figures = _listed(faster, lambda result: f"{result.microseconds:.0f} µs")
        own = f"{ours.microseconds:.0f} µs"
        lines.append(f"**Time**: a call takes {own} (median). Faster: {figures}.")
    # Engines with the same packages have the same size.
    one_each = {result.engine.packages: result for result in reversed(others)}
    lighter = _smaller(ours, list(one_each.values()), lambda result: result.size)
    if lighter:
        figures = _listed(lighter, lambda result: f"{result.size / 1e6:.1f} MB")
        own = f"{ours.size / 1e6:.1f} MB"
        lines.append(f"**Size**: with its dependencies {own}. Smaller: {figures}.")
    return lines


def _better_counts(ours: Result, others: list[Result], name: str) -> list[str]:
    lines = []
    own = ours.counts(name)
    for kind in KINDS:
        for outcome in ("right", "wrong"):
            sign = 1 if outcome == "wrong" else -1
            key = (kind, outcome)
            better = [
                result
                for result in others
                if sign * result.counts(name)[key] < sign * own[key]
            ]
            if better:
                figures = ", ".join(
                    f"{result.engine.name} {result.counts(name)[key]:,}"
                    for result in better
                )
                lines.append(
                    f"**{name.capitalize()}**, {outcome} where {IN_WORDS[kind]} is "
                    f"right: {own[key]:,}; better: {figures}."
                )
    return lines


def _answered_by_others(ours: Result, others: list[Result]) -> list[str]:
    """Return a sentence for each set of which this library refuses cases that another
    engine puts right.
    """
    right_by: dict[str, list[str]] = defaultdict(list)
    for result in others:
        for each in result.judged:
            if each.outcome == "right":
                right_by[each.case["id"]].append(result.engine.name)
    lines = []
    for name in SETS:
        lost = [
            each
            for each in ours.judged
            if each.set_name == name
            and each.outcome != "right"
            and each.case["id"] in right_by
        ]
        if lost:
            lines.append(_lost(name, lost, right_by))
    return lines


def _lost(name: str, lost: list[Judged], right_by: dict[str, list[str]]) -> str:
    head = f"**{name.capitalize()}**, refused and put right by another engine: "
    if not any("kind" in each.case for each in lost):
        parts = []
        for each in lost:
            engines = ", ".join(right_by[each.case["id"]])
            if kind_of_answer(each.case) == "answer or refusal":
                engines += "; a refusal is right too"
            parts.append(f"{each.case['id']} ({engines})")
        return head + "; ".join(parts) + "."
    counts = Counter(
        engine for each in lost for engine in set(right_by[each.case["id"]])
    )
    figures = ", ".join(f"{engine} {count}" for engine, count in _sorted(counts))
    kinds = Counter(each.case["kind"] for each in lost)
    what = ", ".join(f"{kind} {count}" for kind, count in _sorted(kinds))
    return f"{head}{len(lost)} ({what}): {figures}."


def _sorted(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return the names and numbers of *counts*: the largest first, then by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _smaller(
    ours: Result, others: list[Result], figure: Callable[[Result], float]
) -> list[Result]:
    found = [result for result in others if figure(result) < figure(ours)]
    return sorted(found, key=lambda result: (figure(result), result.engine.name))


def _listed(results: Iterable[Result], figure: Callable[[Result], str]) -> str:
    return ", ".join(f"{result.engine.name} {figure(result)}" for result in results)


def _table(results: list[Result], name: str) -> str:
    found = cases(name)
    numbers = Counter(kind_of_answer(case) for case in found)
    columns = []
    said = []
    for kind, (letter, outcomes) in KINDS.items():
        if numbers[kind]:
            columns += [(kind, outcome) for outcome in outcomes]
            said.append(f"{letter} {numbers[kind]:,}")
    heads = [f"{KINDS[kind][0]} {outcome}" for kind, outcome in columns]
    lines = [
        f"**{name.capitalize()}**, {len(found):,} {SETS[name]}: {', '.join(said)}.",
        "",
        f"| | {' | '.join(heads)} |",
        "|---" * (len(heads) + 1) + "|",
    ]
    for result in results:
        counts = result.counts(name)
        cells = []
        for kind, outcome in columns:
            count = f"{counts[kind, outcome]:,}"
            cells.append(f"**{count}**" if outcome == "wrong" else count)
        lines.append(f"| {result.engine.name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _engine_table(results: list[Result]) -> str:
    lines = [
        "| | version | what is called | what it is made for | µs | MB |",
        "|---|---|---|---|---|---|",
    ]
    for result in results:
        engine = result.engine
        cells = [
            engine.name,
            result.version,
            engine.called,
            engine.purpose,
            f"{result.microseconds:.0f}",
            f"{result.size / 1e6:.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
