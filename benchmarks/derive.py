"""How many scripts give a whole contract, how fast, and whether what is read is true.

    python benchmarks/derive.py
        the test scripts, checked against their real parsers
    python benchmarks/derive.py PATH
        the scripts under PATH, read only
    python benchmarks/derive.py PATH --ask
        and their real argparse parsers asked: this runs the scripts
    python benchmarks/derive.py PATH --causes
        and why what is not whole is not
    python benchmarks/derive.py [PATH ...] --speed
        how long it takes, as a multiple of parsing the same script

A script is whole where every argument was read with all that is declared of it, and
none is reported as unread. It is wrong where the reading says what the parser does not,
or leaves out what it does not report. Its parser is also given the words of up to 60
calls, and what it reads differently is printed. It stands alone where it imports
nothing of the package it lies in but modules next to it. What counts as a script, and
as standing alone, is decided before it is read, by `benchmarks.derive_sample`.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.derive_calls import Call, call_faults, sample_calls
from benchmarks.derive_sample import Script, scripts_under
from benchmarks.derive_speed import print_ratios, ratios
from benchmarks.derive_truth import ask, compare
from skillruntime.derive import Derivation, derive
from skillruntime.errors import InvalidSkillError

OWN = Path(__file__).parents[1] / "tests" / "derive" / "scripts"
LINES = (300, 1000, 1500)
"""Lengths of scripts up to which the time is printed."""


@dataclass
class Tally:
    """What came of the scripts of one framework."""

    scripts: int = 0
    whole: int = 0
    alone: int = 0
    alone_whole: int = 0
    nothing: int = 0
    asked: int = 0
    calls: int = 0
    read_otherwise: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    causes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    times: list[tuple[float, int]] = field(default_factory=list)

    def add(
        self, script: Script, found: Derivation | None, milliseconds: float, lines: int
    ) -> None:
        """Count one script."""
        whole = found is not None and found.complete
        self.scripts += 1
        self.whole += whole
        self.alone += script.stands_alone
        self.alone_whole += whole and script.stands_alone
        self.nothing += found is None
        self.times.append((milliseconds, lines))
        for cause in (
            {_cause(each.reason) for each in found.unread}
            if found
            else {"nothing is read"}
        ):
            self.causes[cause].append(str(script.path))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures."""
        times = [time_ for time_, _ in self.times]
        return {
            "scripts": self.scripts,
            "whole": self.whole,
            "whole_share": _share(self.whole, self.scripts),
            "alone": self.alone,
            "alone_whole_share": _share(self.alone_whole, self.alone),
            "nothing_read": self.nothing,
            "asked": self.asked,
            "wrong": len(self.wrong),
            "calls": self.calls,
            "read_otherwise": len(self.read_otherwise),
            "unusable": len(self.unusable),
            "ms": _spread(times),
            "ms_by_lines": {
                str(most): _spread(
                    [time_ for time_, lines in self.times if lines <= most]
                )
                for most in LINES
            },
        }


def timed(script: Script, text: str, name: str) -> tuple[Derivation | None, float]:
    """Return what is read, and the milliseconds of the best of three readings, none of
    them remembered.
    """
    best = float("inf")
    found = None
    for round_ in range(3):
        start = time.perf_counter()
        found = derive(text + "\n" * round_, path=name)
        best = min(best, (time.perf_counter() - start) * 1000)
    return found, best


def measure(paths: list[Path], *, asks: bool) -> dict[str, Tally]:
    """Read the scripts under *paths*, and ask the parsers of those that use
    argparse.
    """
    tallies: dict[str, Tally] = defaultdict(Tally)
    read: list[tuple[Script, Derivation, list[Call]]] = []
    derive("import argparse\nargparse.ArgumentParser().parse_args()", path="warm.py")
    for script in chain.from_iterable(map(scripts_under, paths)):
        text = script.path.read_text("utf-8", "replace")
        found, milliseconds = timed(
            script,
            text,
            script.path.name if script.path.suffix else f"{script.path.name}.py",
        )
        tally = tallies[script.framework]
        tally.add(script, found, milliseconds, text.count("\n") + 1)
        if found is None:
            continue
        try:
            found.to_contract()
        except InvalidSkillError as error:
            tally.unusable.append(f"{script.path}: {error}")
        # Where the words are one list, there is nothing to compare.
        is_list = found.document["run"]["command_line"]["parser"] == "places"
        if found.framework == script.framework == "argparse" and not is_list:
            read.append((script, found, sample_calls(found) if asks else []))
    with ThreadPoolExecutor(2) as threads:
        for (script, found, calls), truth in zip(
            read, threads.map(_ask, read) if asks else (), strict=False
        ):
            if truth is None:
                continue
            tally = tallies["argparse"]
            tally.asked += 1
            tally.calls += len(calls)
            missing, wrong = compare(truth, dict(found.document))
            if wrong or (missing and found.complete):
                tally.wrong.append(f"{script.path}: {wrong or missing}")
            if found.complete and (
                faults := call_faults(found, calls, truth["parsed"])
            ):
                tally.read_otherwise.append(f"{script.path}: {faults[:3]}")
    return tallies


def main() -> int:
    """Read, compare, print a table or JSON; the exit code is 1 where anything is
    wrong.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="path",
        help="a directory of skills, or one script",
    )
    parser.add_argument(
        "--ask",
        action="store_true",
        help="run the argparse scripts up to where they parse",
    )
    parser.add_argument(
        "--causes",
        action="store_true",
        help="print why scripts are not whole, most frequent first",
    )
    parser.add_argument(
        "--speed",
        action="store_true",
        help="print ratios to the parser's own time, and nothing else",
    )
    parser.add_argument(
        "--json", action="store_true", help="print figures only, as JSON"
    )
    options = parser.parse_args()
    if options.speed:
        print_ratios(list(ratios(options.paths)))
        return 0
    tallies = measure(options.paths or [OWN], asks=options.ask or not options.paths)
    figures = {
        name: tally.to_dict()
        for name, tally in sorted(tallies.items(), key=lambda pair: -pair[1].scripts)
    }
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        print_table(figures)
        for tally in tallies.values():
            for line in (*tally.wrong, *tally.unusable, *tally.read_otherwise):
                print("!", line)
    if options.causes:
        for name, tally in tallies.items():
            for cause, paths in sorted(
                tally.causes.items(), key=lambda pair: -len(pair[1])
            ):
                print(
                    f"{name}: {len(paths)} {cause}: "
                    f"{', '.join(paths[:3])}{' ...' if paths[3:] else ''}"
                )
    return int(any(tally.wrong or tally.unusable for tally in tallies.values()))


def print_table(figures: dict[str, dict[str, Any]]) -> None:
    """Print the figures, a framework a line, and the times of the most frequent one by
    length.
    """
    print(
        f"{'framework':12} {'scripts':>7} {'whole':>6} {'share':>7} {'alone':>6} "
        f"{'share':>7} {'asked':>6} {'wrong':>6} {'median':>8} {'p95':>8} {'max':>8}"
    )
    for name, each in figures.items():
        share, alone = (
            f"{each[key]:.1%}" if each[key] is not None else ""
            for key in ("whole_share", "alone_whole_share")
        )
        print(
            f"{name:12} {each['scripts']:7} {each['whole']:6} {share:>7} "
            f"{each['alone']:6} {alone:>7} {each['asked']:6} {each['wrong']:6} "
            f"{each['ms']['median']:6.2f}ms {each['ms']['p95']:6.2f}ms "
            f"{each['ms']['max']:6.2f}ms"
        )
    for name, each in list(figures.items())[:1]:
        if each["calls"]:
            print(
                f"{name}: {each['calls']} calls, {each['read_otherwise']} scripts "
                "that read one otherwise"
            )
        for most, spread in each["ms_by_lines"].items():
            if spread["max"] is not None:
                print(
                    f"{name}, up to {most} lines: p95 {spread['p95']:.2f} ms, max "
                    f"{spread['max']:.2f} ms"
                )


def _ask(read: tuple[Script, Derivation, list[Call]]) -> dict[str, Any] | None:
    return ask(read[0].path, words=[call.words for call in read[2]])


def _cause(reason: str) -> str:
    return re.sub(
        r"\S+ may add some|a function that cannot be read may add some",
        "a foreign function may add some",
        reason,
    )


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _spread(times: list[float]) -> dict[str, float | None]:
    ordered = sorted(times)
    if not ordered:
        return {"median": None, "p95": None, "max": None}
    p95 = ordered[int(len(ordered) * 0.95)]
    return {
        "median": round(statistics.median(ordered), 2),
        "p95": round(p95, 2),
        "max": round(ordered[-1], 2),
    }


if __name__ == "__main__":
    sys.exit(main())
