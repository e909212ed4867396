"""How often `compare` gives the right verdict, on a table written by hand, and how long
it takes.

Run: ``python benchmarks/compatibility.py [--json]``. Every pair is compared cold (its
schemas are compiled again) and warm (contracts read once, as a registry would hold
them).
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.compatibility_pairs import CONTRACT, INPUT, OUTPUT
from skillruntime.compatibility import NO_COUNTEREXAMPLE, Bump, compare
from skillruntime.contract import Contract

ROUNDS = 5


def pairs() -> list[tuple[str, str, Any, Any, str, str]]:
    """Return every row as (side, name, old contract, new contract, expected bump,
    expected by set theory).
    """
    rows = [
        ("input", name, {"input": old}, {"input": new}, *expected)
        for name, old, new, *expected in INPUT
    ]
    rows += [
        ("output", name, {"output": old}, {"output": new}, *expected)
        for name, old, new, *expected in OUTPUT
    ]
    return rows + [("contract", *row) for row in CONTRACT]


def best(action: Callable[[], Any]) -> float:
    """Return the microseconds of the fastest of several rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        action()
        times.append((time.perf_counter() - start) * 1e6)
    return min(times)


def main() -> None:
    rows, wrong, breaking, shown, warm, cold = pairs(), [], 0, 0, [], []
    for side, name, old, new, bump, set_theory in rows:
        before, after = Contract.from_dict(old), Contract.from_dict(new)
        verdict = compare(before, after)
        if (str(verdict.bump), str(verdict.set_theory)) != (bump, set_theory):
            wrong.append(
                f"{side}: {name}: {verdict.bump}/{verdict.set_theory}, not "
                f"{bump}/{set_theory}"
            )
        for change in verdict.changes:
            if change.side in ("input", "output") and Bump.MAJOR in (
                change.practical,
                change.set_theory,
            ):
                breaking += 1
                shown += change.counterexample is not NO_COUNTEREXAMPLE
        warm.append(best(lambda before=before, after=after: compare(before, after)))
        cold.append(best(lambda old=old, new=new: compare(old, new)))
    result = {
        "pairs": len(rows),
        "right": len(rows) - len(wrong),
        "wrong": wrong,
        "breaking_changes": breaking,
        "with_counterexample": shown,
        "compare_us": {
            "median": round(statistics.median(warm), 1),
            "p95": round(sorted(warm)[int(len(warm) * 0.95)], 1),
        },
        "with_reading_us": {"median": round(statistics.median(cold), 1)},
        "python": platform.python_version(),
    }
    if "--json" in sys.argv:
        print(json.dumps(result, indent=2))
        return
    print(f"verdicts right         {result['right']} of {result['pairs']}")
    print(f"breaking with counterexample  {shown} of {breaking}")
    print(
        f"compare, median        {result['compare_us']['median']:8.1f} us (p95 "
        f"{result['compare_us']['p95']} us)"
    )
    print(
        "  with Contract.from_dict of both "
        f"{result['with_reading_us']['median']:8.1f} us"
    )
    for line in wrong:
        print("wrong:", line)


if __name__ == "__main__":
    main()
