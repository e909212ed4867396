"""``python -m tests.hostile``: run every hostile case against a loader and print a
table.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import Counter
from pathlib import Path

from tests.hostile.kit import (
    MEMORY,
    SECONDS,
    Verdict,
    all_cases,
    attacks_page,
    run_case,
    write_cases,
)

_OWN = "tests.hostile.own"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile", description=__doc__
    )
    parser.add_argument(
        "--adapter",
        default=_OWN,
        metavar="MODULE",
        help=f"what is attacked (default: {_OWN})",
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only cases whose name contains TEXT"
    )
    parser.add_argument(
        "--write",
        type=Path,
        metavar="DIRECTORY",
        help="write the skills and their manifest, and stop",
    )
    parser.add_argument(
        "--page", action="store_true", help="print docs/security-attacks.md, and stop"
    )
    parser.add_argument(
        "--all", action="store_true", help="show the contained cases too"
    )
    options = parser.parse_args()
    if options.page:
        sys.stdout.write(attacks_page())
        return 0
    if options.write is not None:
        sys.stdout.write(f"{write_cases(options.write)}\n")
        return 0
    adapter = importlib.import_module(options.adapter)
    verdicts = []
    for case in all_cases():
        if options.only in case.name:
            verdict = run_case(case, adapter)
            verdicts.append(verdict)
            if options.all or verdict.outcome in ("leaked", "failed"):
                sys.stdout.write(_row(verdict) + "\n")
                sys.stdout.flush()
    sys.stdout.write("\n" + _table(verdicts))
    return (
        1 if any(verdict.outcome in ("leaked", "failed") for verdict in verdicts) else 0
    )


def _row(verdict: Verdict) -> str:
    detail = verdict.detail.encode("unicode_escape").decode("ascii")[:150]
    return (
        f"{verdict.outcome:12}{verdict.seconds:5.1f} s {verdict.megabytes:6.0f} MB "
        f" {verdict.case.name}: {detail}"
    )


def _table(verdicts: list[Verdict]) -> str:
    """Return the counts by kind; the limits are below."""
    outcomes = ("contained", "leaked", "failed", "not offered")
    lines = [
        "| kind | " + " | ".join(outcomes) + " |",
        "|---" * (len(outcomes) + 1) + "|",
    ]
    for kind in ("script", "skill", "schema"):
        counts = Counter(
            verdict.outcome for verdict in verdicts if verdict.case.kind == kind
        )
        lines.append(
            f"| {kind} | "
            + " | ".join(str(counts[outcome]) for outcome in outcomes)
            + " |"
        )
    lines.append(f"\nEach case within {SECONDS:g} s and {MEMORY // 1024**2} MiB.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
