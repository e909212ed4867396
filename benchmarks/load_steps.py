"""Further steps of `load.py`, each run in a process of its own: edits, rendering,
packages, hostile files.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

__all__ = ["STEPS"]

EDITS = 9
PACKAGES = 300


def cpu(work: Callable[[], object]) -> float:
    started = time.process_time()
    kept = work()
    seconds = time.process_time() - started
    del kept
    return seconds


def edited(root: str) -> dict[str, float]:
    """Measure starts after one of the skills was edited, and unchanged ones in turns
    with them.
    """
    from skillruntime.catalog import discover

    discover(root)
    names = sorted(os.listdir(root))  # noqa: PTH208
    step = max(1, len(names) // EDITS)
    names = names[::step][:EDITS]
    edits, warm = [], []
    for number, name in enumerate(names):
        path = Path(root, name, "SKILL.md")
        path.write_bytes(path.read_bytes() + b"\n")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        edits.append(cpu(lambda: discover(root)))
        warm.append(cpu(lambda: discover(root)))
    more = [edit - statistics.median(warm) for edit in edits]
    return {"median": statistics.median(more), "worst": max(more)}


def rendered(root: str) -> dict[str, float]:
    """Measure the list of skills for a model within 4,000 tokens, exactly counted;
    again, it is kept.
    """
    from skillruntime.catalog import discover
    from skillruntime.tokens import count

    def counted(text: str) -> int:
        return count(text).tokens

    catalog = discover(root)
    counted("the tables of the encoding are read once")
    first = cpu(lambda: catalog.render(4_000, count=counted))
    return {"first": first, "again": cpu(lambda: catalog.render(4_000, count=counted))}


def installed(root: str) -> dict[str, float]:
    """Measure the search of 300 distributions, four of them with skills, and Python's
    own scan of them.
    """
    from importlib.metadata import distributions

    from skillruntime.catalog import installed_roots

    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder, "lib", "python3.11", "site-packages")
        for number in range(PACKAGES):
            name = f"package{number}"
            (site / name).mkdir(parents=True)
            info = site / f"{name}-1.{number}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.{number}\n"
            )
            lines = [
                f"{name}/module{part}.py,sha256={'a' * 43},1000" for part in range(200)
            ]
            if number % 75 == 0:
                (site / name / ".agents" / "skills" / name).mkdir(parents=True)
                (site / name / ".agents" / "skills" / name / "SKILL.md").write_text(
                    "---\nname: x\ndescription: X\n---\n"
                )
                lines.append(
                    f"{name}/.agents/skills/{name}/SKILL.md,sha256={'a' * 43},30"
                )
            (info / "RECORD").write_text("\n".join(lines))
        before, sys.path[:] = [*sys.path], [str(site)]
        ours = [cpu(installed_roots) for _ in range(9)]
        sys.path[:] = before
        bare = [
            cpu(lambda: [each.name for each in distributions(path=[str(site)])])
            for _ in range(9)
        ]
        scan = [cpu(lambda: list(distributions(path=[str(site)]))) for _ in range(9)]
    return {
        "seconds": statistics.median(ours),
        "worst": max(ours),
        "scan": min(scan),
        "names": min(bare),
    }


def hostile(root: str) -> dict[str, float]:
    """Measure `discover` and `load_skill` of hostile files of 100 KB, the worst of all
    shapes, the least of three.
    """
    sys.path.insert(
        0, str(Path(__file__).parents[1])
    )  # for what it shares with the tests
    from skillruntime import SkillRuntime, discover
    from tests.linear_time import SHAPES

    head = "---\nname: pdf\ndescription: "
    places = {
        "": "",
        head: "\n---\nRead.\n",
        f"{head}d\n": "\n---\nRead.\n",
        f"{head}d\n---\n": "",
    }
    worst = {"discover": 0.0, "load": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES.values():
            for before, after in places.items():
                data = f"{before}{shape(100_000)}".encode("utf-8", "surrogatepass")[
                    : 100_000 - len(after)
                ]
                Path(folder, "SKILL.md").write_bytes(data + after.encode())
                discovered, loaded = [], []
                for _ in range(3):
                    discovered.append(cpu(lambda: discover(folder, use_index=False)))
                    catalog = discover(folder, use_index=False)
                    session = SkillRuntime(catalog).session()
                    for name in catalog:
                        loaded.append(cpu(partial(session.activate, name)))
                worst["discover"] = max(worst["discover"], min(discovered))
                worst["load"] = max(worst["load"], min(loaded, default=0))
    return worst


STEPS: dict[str, Callable[[str], dict[str, float]]] = {
    "edited": edited,
    "rendered": rendered,
    "installed": installed,
    "hostile": hostile,
}
