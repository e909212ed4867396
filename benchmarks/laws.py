"""Run every law on many generated cases, and count them.

Run: ``python benchmarks/laws.py [CASES] [--seed FIRST] [--schemas FILE] [--law NAME]``;
by default 100,000 cases in all.

The laws of accepting (valid calls, single errors, the same error in all members, cuts,
anything) take generated schemas of every kind, tools in the shapes of MCP servers, or
the schemas of real tools in FILE (JSON Lines, each with a ``schema``), closed and open
in turn; those of versions, migrations and compatibility
are the hypothesis tests of their modules, at random.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
MODULES = (
    "contract/test_versions",
    "contract/test_migration",
    "compatibility/test_comparison",
)


def load(name: str) -> ModuleType:
    """Return the test module *name*, a path below `tests`."""
    spec = importlib.util.spec_from_file_location(
        name.replace("/", "."), ROOT / "tests" / f"{name}.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hypothesis_laws() -> Iterator[tuple[str, Any]]:
    """Yield every hypothesis test of the modules, with its name."""
    for name in MODULES:
        for key, test in vars(load(name)).items():
            if key.startswith("test_") and hasattr(test, "hypothesis"):
                yield key, test


def law_names() -> list[str]:
    """Return the names of the laws of accepting."""
    from tests.contract.laws import LAWS

    return [law.__name__ for law in LAWS]


def run_accepting(
    wanted: int, seed: int, schemas: list[dict[str, Any]], law_name: str | None
) -> tuple[int, int]:
    """Run the laws of accepting, or that of *law_name*, until *wanted* calls were
    tried; return how many were, and how many broke a law.
    """
    from tests.contract.generated import Case
    from tests.contract.laws import LAWS

    laws = [law for law in LAWS if law_name in (None, law.__name__)]
    tried = broken = 0
    start = time.perf_counter()
    counts = dict.fromkeys((law.__name__ for law in laws), 0)
    while tried < wanted:
        case = Case.of(seed, schemas)
        for law in laws if case is not None else ():
            assert case is not None
            try:
                counts[law.__name__] += law(case)
            except Exception as error:
                broken += 1
                print(
                    f"BROKEN: seed {seed}, {law.__name__}: {error!r:.300}", flush=True
                )
        tried = sum(counts.values())
        seed += 1
    for name, count in counts.items():
        print(f"{count:7d} cases  {name}")
    print(
        f"{tried} calls in {time.perf_counter() - start:.0f} s, seeds up to "
        f"{seed - 1}, {broken} broken",
        flush=True,
    )
    return tried, broken


def run_hypothesis(share: int) -> tuple[int, int]:
    """Run each hypothesis law on *share* cases; return how many cases there were, and
    how many laws broke.
    """
    from hypothesis import HealthCheck, settings

    ran = broken = 0
    options: dict[str, Any] = {
        "deadline": None,
        "database": None,
        "suppress_health_check": list(HealthCheck),
    }
    for name, law in hypothesis_laws():
        count, inner = 0, law.hypothesis.inner_test

        def counted(*args: Any, _inner: Any = inner, **kwargs: Any) -> None:
            nonlocal count
            count += 1
            _inner(*args, **kwargs)

        law.hypothesis.inner_test = counted
        start, verdict = time.perf_counter(), "holds"
        try:
            settings(max_examples=share, **options)(law)()
        except BaseException as error:
            broken, verdict = broken + 1, f"BROKEN: {error!r:.300}"
        ran += count
        print(
            f"{count:7d} cases  {time.perf_counter() - start:7.1f} s  {verdict:8s} "
            f"{name}",
            flush=True,
        )
    return ran, broken


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", type=int, nargs="?", default=100_000)
    parser.add_argument(
        "--seed",
        type=int,
        default=100_000,
        help="the first seed of the laws of accepting",
    )
    parser.add_argument(
        "--accepting", action="store_true", help="only the laws of accepting"
    )
    parser.add_argument(
        "--law",
        choices=law_names(),
        help="only this law of accepting; implies --accepting",
    )
    parser.add_argument(
        "--schemas", type=Path, help="a JSON Lines file with schemas of real tools"
    )
    options = parser.parse_args()
    if options.law:
        options.accepting = True
    lines = (
        options.schemas.read_text(encoding="utf-8").splitlines()
        if options.schemas
        else []
    )
    schemas = list(
        {
            json.dumps(json.loads(line)["schema"]): json.loads(line)["schema"]
            for line in lines
        }.values()
    )
    ran, broken = run_accepting(
        options.cases if options.accepting else options.cases // 2,
        options.seed,
        schemas,
        options.law,
    )
    if not options.accepting:
        more, failed = run_hypothesis(
            max(1, options.cases // 2 // max(1, sum(1 for _ in hypothesis_laws())))
        )
        ran, broken = ran + more, broken + failed
    print(f"{ran} cases, {broken} laws broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
