"""Measure everyday operations in this checkout and in another revision, in turn.

    python -m benchmarks.against REV [--rounds 7] [--skills 1000] [--only NAME ...]

REV is checked out into a separate worktree. Both revisions are installed with their
dependencies into new environments, because each package that hooks into the start of
Python slows down a command. Then each measure of `measures.py` runs in a separate
process: here, there, here, there. A ratio is the CPU time here divided by the CPU time there, in
the same round; its median, minimum and maximum are printed. The ratios do not depend on
an estimate of the machine's speed. A ratio whose spread includes 1 does not show a
difference.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import NamedTuple

from benchmarks.against.measures import MEASURES

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("measures.py")


class Side(NamedTuple):
    """One revision: its checkout, and the path of its Python."""

    root: Path
    python: str


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision", metavar="REV")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--skills", type=int, default=1000)
    parser.add_argument("--only", nargs="+", choices=list(MEASURES), default=[])
    options = parser.parse_args()
    names = options.only or list(MEASURES)
    with tempfile.TemporaryDirectory(prefix="skillruntime-against-") as scratch:
        place = Path(scratch)
        revision = place / "revision"
        _git("worktree", "add", "--detach", "--quiet", str(revision), options.revision)
        try:
            there = installed(revision, place / "there")
            here = installed(ROOT, place / "here")
            table = compared(here, there, names, options, place)
        finally:
            _git("worktree", "remove", "--force", str(revision))
    print_table(table, options.revision)


def installed(root: Path, environment: Path) -> Side:
    """Return the checkout *root*, installed with its dependencies into a new
    *environment*.
    """
    venv.create(environment, with_pip=True)
    python = str(environment / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, f"{root}[standard,agents]"], check=True)
    return Side(root, python)


def compared(
    here: Side,
    there: Side,
    names: list[str],
    options: argparse.Namespace,
    scratch: Path,
) -> dict[str, list[tuple[float, float]]]:
    """Return the CPU seconds of each measure, here and there, round by round."""
    table: dict[str, list[tuple[float, float]]] = {}
    for name in names:
        pairs = []
        for number in range(options.rounds):
            seconds = []
            for label, side in (("here", here), ("there", there)):
                place = scratch / f"{name}-{number}-{label}"
                place.mkdir()
                seconds.append(measured(side, name, place, options.skills))
            pairs.append((seconds[0], seconds[1]))
        table[name] = pairs
        print(f"{name}: {len(pairs)} rounds", file=sys.stderr)
    return table


def measured(side: Side, name: str, place: Path, skills: int) -> float:
    """Return the CPU seconds of the measure *name* with the library of *side*."""
    ran = subprocess.run(
        [side.python, str(SCRIPT), name, str(place), str(skills)],
        capture_output=True,
        text=True,
        cwd=place,
        env={
            **os.environ,
            "PYTHONPATH": str(side.root),
            # Otherwise each process compiles every file that has changed.
            "PYTHONDONTWRITEBYTECODE": "",
            "XDG_CACHE_HOME": str(place / "cache"),
            "SKILLRUNTIME_CACHE": str(place / "cache"),
        },
        check=False,
    )
    if ran.returncode:
        raise SystemExit(f"{name} in {side.root} failed:\n{ran.stderr[-2000:]}")
    return float(json.loads(ran.stdout.splitlines()[-1]))


def print_table(table: dict[str, list[tuple[float, float]]], revision: str) -> None:
    """Print the ratios, with the CPU milliseconds of both sides."""
    print(f"| measure | here / {revision} | spread | here, ms | there, ms |")
    print("|---|---|---|---|---|")
    for name, pairs in table.items():
        ratios = [mine / other for mine, other in pairs]
        here = statistics.median(mine for mine, _ in pairs) * 1000
        there = statistics.median(other for _, other in pairs) * 1000
        print(
            f"| {MEASURES[name]} | {statistics.median(ratios):.2f} "
            f"| {min(ratios):.2f} to {max(ratios):.2f} | {here:.2f} | {there:.2f} |"
        )


def _git(*arguments: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *arguments], check=True)


if __name__ == "__main__":
    main()
