"""How fast texts are counted, as ratios to bare tiktoken in the same run (target: at
most 2).

    python benchmarks/token_counting.py PATH

PATH is a directory or a .tar.gz with SKILL.md files.
"""

from __future__ import annotations

import itertools
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

from skillruntime.tokens import count, load


def texts(path: Path) -> list[str]:
    if path.is_dir():
        return [
            file.read_text("utf-8", "replace")
            for file in sorted(path.rglob("SKILL.md"))
            if file.is_file()
        ]
    with tarfile.open(path) as archive:
        files = [
            archive.extractfile(member)
            for member in archive
            if member.name.endswith("SKILL.md") and member.isfile()
        ]
        return [file.read().decode("utf-8", "replace") for file in files if file]


def best(run: Callable[[], object], times: int = 5) -> float:
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        spent.append(time.perf_counter() - start)
    return min(spent)


def main() -> None:
    files = texts(Path(sys.argv[1]))
    lines = [line for text in files for line in text.splitlines() if line][:20_000]
    encode = load("o200k_base").encode_ordinary
    for name, many in (
        ("whole files", files),
        ("single lines", lines),
        ("all files as one text", ["".join(files)]),
    ):
        bare = best(lambda many=many: [len(encode(text)) for text in many])  # type: ignore[misc]
        cold = min(once(many) for _ in range(5))
        warm = best(lambda many=many[-4000:]: [count(text) for text in many])  # type: ignore[misc]
        size = sum(map(len, many)) / 1e6
        print(
            f"{name} ({len(many):,}, {size:.1f} M characters): bare {bare:.3f} s, ",
            end="",
        )
        print(f"ours {cold / bare:.2f} x, seen before {warm / bare:.3f} x")


def once(many: list[str]) -> float:
    """Count texts that are not cached yet: a last line of its own makes each one
    new.
    """
    number = next(FRESH)
    fresh = [f"{text}\n{number}" for text in many]
    start = time.perf_counter()
    for text in fresh:
        count(text)
    return time.perf_counter() - start


FRESH = itertools.count()

if __name__ == "__main__":
    main()
