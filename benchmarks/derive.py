"""How many scripts give a whole contract, how fast, and whether what is read is true.

    python benchmarks/derive.py                       the test scripts, checked against their real parsers
    python benchmarks/derive.py PATH                  the scripts under PATH, read only
    python benchmarks/derive.py PATH --ask            and their real argparse parsers asked: this runs the scripts

A script is whole where every argument was read with all that is declared of it, and none is reported as unread. It is
wrong where the reading says what the parser does not, or leaves out what it does not report.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.derive_truth import ask, compare
from skillruntime.contract.derive import Derivation, derive
from skillruntime.errors import InvalidSkillError

OWN = Path(__file__).parents[1] / "tests" / "contract" / "scripts"
ELSEWHERE = {"node_modules", ".git", ".venv", "venv", "__pycache__"}
SUFFIXES = (".py", ".sh", ".bash", ".js", ".mjs", ".cjs")


@dataclass
class Tally:
    """What came of the scripts of one framework."""

    scripts: int = 0
    whole: int = 0
    asked: int = 0
    wrong: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures."""
        times = sorted(self.milliseconds)
        return {
            "scripts": self.scripts,
            "whole": self.whole,
            "whole_share": round(self.whole / self.scripts, 4) if self.scripts else None,
            "asked": self.asked,
            "wrong": len(self.wrong),
            "unusable": len(self.unusable),
            "ms_median": round(statistics.median(times), 2) if times else None,
            "ms_p95": round(times[int(len(times) * 0.95)], 2) if times else None,
            "ms_max": round(times[-1], 2) if times else None,
        }


def scripts_under(path: Path) -> Iterator[Path]:
    """Yield the scripts below *path*, without tests, packages' own files and virtual environments."""
    if path.is_file():
        yield path
        return
    for each in sorted(path.rglob("*")):
        is_script = each.suffix.lower() in SUFFIXES and each.name not in ("__init__.py", "conftest.py")
        if is_script and each.is_file() and not ELSEWHERE & set(each.parts):
            yield each


def declares(text: str) -> str:
    """The framework that a script names, for those of which nothing was read."""
    for word in ("argparse", "typer", "click", "sys.argv", "getopts", "parseArgs", "commander", "yargs"):
        if word in text:
            return {"getopts": "shell"}.get(word, word)
    return "other"


def timed(text: str, name: str) -> tuple[Derivation | None, float]:
    """Return what is read, and the milliseconds of the best of three readings, none of them remembered."""
    best = float("inf")
    found = None
    for round_ in range(3):
        start = time.perf_counter()
        found = derive(text + "\n" * round_, path=name)
        best = min(best, (time.perf_counter() - start) * 1000)
    return found, best


def main() -> int:
    """Read, compare, print a table or JSON; the exit code is 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", nargs="?", type=Path, help="a directory of skills, or one script")
    parser.add_argument("--ask", action="store_true", help="run the argparse scripts up to where they parse")
    parser.add_argument("--json", action="store_true", help="print figures only, as JSON")
    options = parser.parse_args()
    asks = options.ask or options.path is None
    tallies: dict[str, Tally] = defaultdict(Tally)
    derive("import argparse\nargparse.ArgumentParser().parse_args()", path="warm.py")
    for script in scripts_under(options.path or OWN):
        text = script.read_text("utf-8", "replace")
        found, milliseconds = timed(text, script.name)
        tally = tallies[found.framework if found else f"{declares(text)} (nothing read)"]
        tally.scripts += 1
        tally.milliseconds.append(milliseconds)
        if found is None:
            continue
        tally.whole += found.complete
        try:
            found.to_contract()
        except InvalidSkillError as error:
            tally.unusable.append(f"{script}: {error}")
        truth = ask(script) if asks and found.framework == "argparse" else None
        if truth is not None:
            tally.asked += 1
            missing, wrong = compare(truth, dict(found.document))
            if wrong or (missing and found.complete):
                tally.wrong.append(f"{script}: {wrong or missing}")
    figures = {name: tally.to_dict() for name, tally in sorted(tallies.items(), key=lambda pair: -pair[1].scripts)}
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        print_table(figures)
        for tally in tallies.values():
            for line in (*tally.wrong, *tally.unusable):
                print("!", line)
    return int(any(tally.wrong or tally.unusable for tally in tallies.values()))


def print_table(figures: dict[str, dict[str, Any]]) -> None:
    """Print the figures, a framework a line."""
    print(
        f"{'framework':28} {'scripts':>7} {'whole':>6} {'share':>7} {'asked':>6} {'wrong':>6} {'median':>8} {'p95':>8}"
    )
    for name, each in figures.items():
        share = f"{each['whole_share']:.1%}"
        print(
            f"{name:28} {each['scripts']:7} {each['whole']:6} {share:>7} {each['asked']:6} {each['wrong']:6}"
            f" {each['ms_median']:6.2f}ms {each['ms_p95']:6.2f}ms"
        )


if __name__ == "__main__":
    sys.exit(main())
