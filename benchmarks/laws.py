"""Run every law of versions, migrations and compatibility on many generated cases, and count them.

Run: ``python benchmarks/laws.py [CASES]``; by default 100,000 cases, shared out evenly among the laws, at random.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
MODULES = ("test_versions", "test_migration", "test_compatibility")


def load(name: str) -> ModuleType:
    """Return the test module *name*, which is no package to import from."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / "contract" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def laws() -> Iterator[tuple[str, Any]]:
    """Yield every hypothesis test of the three modules, with its name."""
    for name in MODULES:
        for key, test in vars(load(name)).items():
            if key.startswith("test_") and hasattr(test, "hypothesis"):
                yield key, test


def main() -> int:
    from hypothesis import HealthCheck, settings

    total = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    found, broken, ran = list(laws()), 0, 0
    share = -(-total // len(found))
    options: dict[str, Any] = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
    for name, law in found:
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
        print(f"{count:7d} cases  {time.perf_counter() - start:7.1f} s  {verdict:8s} {name}", flush=True)
    print(f"{ran} cases, {broken} laws broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
