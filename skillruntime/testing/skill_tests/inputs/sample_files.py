"""Find the samples that a skill bundles, such as ``assets/sample_data.json``: they have
the members that its scripts expect, which a made file cannot have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from skillruntime.catalog.directory_walk import walk

__all__ = ["read_samples", "sample_for"]

_LEFT_OUT = frozenset({"node_modules", "scripts", "tests"})
_SUFFIXES = frozenset(
    [
        ".csv",
        ".diff",
        ".docx",
        ".html",
        ".json",
        ".jsonl",
        ".log",
        ".md",
        ".patch",
        ".pdf",
        ".png",
        ".pptx",
        ".sarif",
        ".toml",
        ".tsv",
        ".txt",
        ".xlsx",
        ".xml",
        ".yaml",
        ".yml",
    ]
)
_MARKS = frozenset({"demo", "example", "fixture", "sample"})
_COMMON = frozenset({"data", "file", "input", "output", "result", "results", "test"})
_MOST_FILES = 50
_MOST_BYTES = 500_000
_WORD = re.compile(r"[a-z]{3,}")


def read_samples(skill_directory: Path) -> dict[str, bytes]:
    """Return the small documents of a skill that are neither scripts nor tests, by
    their path.
    """
    found: dict[str, bytes] = {}
    for directory, directories, names in walk(str(skill_directory)):
        directories[:] = sorted(
            name
            for name in directories
            if name not in _LEFT_OUT and not name.startswith(".")
        )
        for name in sorted(names):
            path = Path(directory, name)
            if path.suffix.lower() not in _SUFFIXES:
                continue
            if path.is_symlink() or not path.is_file():
                continue
            if path.stat().st_size > _MOST_BYTES or len(found) == _MOST_FILES:
                continue
            found[path.relative_to(skill_directory).as_posix()] = path.read_bytes()
    return found


def sample_for(name: str, samples: Mapping[str, bytes]) -> bytes | None:
    """Return the sample to use for a file called *name*: it has the same suffix, and
    the most words in common with the name, or is called a sample.

    >>> samples = {"assets/sample_sales.csv": b"1", "assets/expected.csv": b"2"}
    >>> sample_for("sales.csv", samples), sample_for("towns.csv", samples)
    (b'1', b'1')
    >>> sample_for("sales.json", samples)
    """
    if name in samples:
        return samples[name]
    suffix = PurePosixPath(name).suffix.lower()
    wanted = _words_in(name) - _COMMON
    best: bytes | None = None
    most = 0
    for path, data in samples.items():
        if PurePosixPath(path).suffix.lower() != suffix:
            continue
        words = _words_in(path)
        shared = 2 * len(words & wanted) + len(words & _MARKS)
        if shared > most:
            best = data
            most = shared
    return best


def _words_in(path: str) -> set[str]:
    """Return the words of a path without its suffix, each without a plural's s."""
    words = _WORD.findall(PurePosixPath(path).with_suffix("").as_posix().lower())
    return {word.removesuffix("s") for word in words}
