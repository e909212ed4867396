"""How long does deriving a script's contract take, as a multiple of parsing the same
script?

What any reader needs is the measure: for Python ``ast.parse``, for another script
reading the file and splitting it into lines. Both are CPU time in one process after one
pass over all scripts, so that imports and expressions of the library are warm; each
takes the least of several rounds, none of them remembered. Modules beside a script that
are read for it count.
"""

from __future__ import annotations

import ast
import gc
import re
import statistics
import sys
import sysconfig
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.derive_sample import scripts_under
from skillruntime.derive import derive

__all__ = ["Ratio", "print_ratios", "ratios"]

ROUNDS = 5
WRITTEN = Path(__file__).with_name("derive_written_scripts.txt")


@dataclass(frozen=True, slots=True, order=True)
class Ratio:
    """The CPU milliseconds of one script, and of parsing it."""

    times: float
    milliseconds: float
    parsing: float
    framework: str
    path: Path


def ratios(paths: list[Path]) -> Iterator[Ratio]:
    """Yield the ratio of each script below *paths*; without any, of installed packages
    and of the project's own.
    """
    warnings.simplefilter(
        "ignore"
    )  # CPython warns of other people's escapes while it parses
    with TemporaryDirectory() as directory:
        scripts = dict.fromkeys(_scripts(paths or _everywhere(Path(directory))))
        for path, _ in scripts:
            _derived(path, path.read_text("utf-8", "replace"))()
        for path, framework in scripts:
            text = path.read_text("utf-8", "replace")
            parsing = min(_cpu(_parsed(path, text)) for _ in range(ROUNDS))
            # Each round is another source, with as many empty lines at its end: the
            # same one is remembered.
            took = min(
                _cpu(_derived(path, text + "\n" * number))
                for number in range(1, ROUNDS + 1)
            )
            yield Ratio(took / parsing, took, parsing, framework, path)


def _written_scripts(directory: Path) -> Iterator[Path]:
    """Write the scripts of `WRITTEN` below *directory*, and yield them; each starts
    after a line ``=== NAME``.
    """
    for part in re.split(r"^=== ", WRITTEN.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = part.partition("\n")
        path = directory / name.strip()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        yield path


def print_ratios(found: list[Ratio]) -> None:
    """Print a line for each framework, and the scripts that take longest for what they
    are.
    """
    groups: dict[str, list[Ratio]] = defaultdict(list)
    for each in found:
        groups[each.framework].append(each)
        if each.path.suffix in ("", ".py") and each.framework != "argparse":
            groups["Python, others"].append(each)
    print(
        f"{'CPU time / parse':16} {'scripts':>7} {'median':>7} {'p75':>6} {'p95':>6} "
        f"{'worst':>6} {'together':>8}"
    )
    for name, group in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        times = sorted(each.times for each in group)
        together = sum(each.milliseconds for each in group) / sum(
            each.parsing for each in group
        )
        print(
            f"{name:16} {len(times):7} {statistics.median(times):7.1f} "
            f"{times[int(len(times) * 0.75)]:6.1f} "
            f"{times[int(len(times) * 0.95)]:6.1f} {times[-1]:6.1f} {together:8.1f}"
        )
    for each in sorted(found, reverse=True)[:10]:
        print(f"  {each.times:.0f} x {each.parsing:.3f} ms: {each.path}")


def _everywhere(directory: Path) -> list[Path]:
    own = Path(__file__).parents[1] / "tests" / "derive" / "scripts"
    paths = [Path(sysconfig.get_path(name)) for name in ("purelib", "stdlib")]
    list(_written_scripts(directory))
    others = [Path("/usr/lib/python3"), Path("/usr/share")]
    return [own, directory, *paths, *(each for each in others if each.is_dir())]


def _scripts(paths: list[Path]) -> Iterator[tuple[Path, str]]:
    for path in paths:
        for script in scripts_under(path):
            yield script.path, script.framework


def _derived(path: Path, text: str) -> Callable[[], object]:
    name = path.name if path.suffix else f"{path.name}.py"
    return lambda: derive(text, path=name)


def _parsed(path: Path, text: str) -> Callable[[], object]:
    if path.suffix in (".sh", ".bash", ".js", ".mjs", ".cjs"):
        return lambda: path.read_text("utf-8", "replace").splitlines()
    return lambda: ast.parse(text)


def _cpu(work: Callable[[], object]) -> float:
    gc.collect(0)
    start = time.process_time_ns()
    work()
    return (time.process_time_ns() - start) / 1e6
