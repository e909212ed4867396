"""Work that is not done, shown by a loader that raises when it is touched."""

from __future__ import annotations

import gzip
import json
import os
import pkgutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import pytest
import yaml

from skillruntime import discover
from tests import needs

SYSTEM_CALLS = ("fstat", "listdir", "lstat", "open", "read", "scandir", "stat")
# What a start without an edit, and without two skills of one name, does not import.
NOT_FOR_A_WARM_START = {
    "fnmatch",
    "hashlib",
    "json",
    "pathlib",
    "skillruntime.catalog.discovery.collisions",
    "skillruntime.catalog.discovery.directory_contents",
    "skillruntime.catalog.discovery.places",
    "skillruntime.catalog.discovery.root_diagnostics",
    "skillruntime.catalog.discovery.skill_file",
    "skillruntime.catalog.visibility",
    "skillruntime.contract",
    "skillruntime.lazy_patterns",
    "unicodedata",
    "yaml",
}
READS_FILES = {
    "skillruntime.catalog.discovery.skill_file",
    "skillruntime.catalog.visibility",
    "skillruntime.lazy_patterns",
}
READER = "skillruntime.catalog.frontmatter.frontmatter"
# Nanoseconds; the change time of a directory is the one time that no program can set.
TICK = 50_000_000
# Heads as authors write them: each is read without YAML.
SHAPES = (
    "name: {name}\ndescription: Plain text, with a comma.",
    'name: {name}\ndescription: "In quotes: with a colon."',
    "name: {name}\ndescription: 'It''s in single quotes.'",
    "name: {name}\ndescription: >-\n  Folded\n  text.\nversion: 1.10",
    "name: {name}\ndescription: |\n  A block\n  of text.\nlicense: MIT",
    "name: {name}\ndescription: Text.\nallowed-tools: Read, Bash(git:*)",
    "name: {name}\ndescription: Text.\ntags: [a, 'b, c',\n  d]",
    "name: {name}\ndescription: Text.\ntags:\n  - a\n  - b",
    "name: {name}\ndescription: Text.\ntags:\n- a\n- b",
    "name: {name}\ndescription: Text.\nmetadata:\n  author: me\n  version: '3'",
    'name: {name}\ndescription: Text.\nmetadata: {{"a": {{"b": [1, "x]"]}}}}',
    "name: {name}\ndescription: 中文说明。\nuser-invocable: false",
    "# a comment\nname: {name}\ndescription: Text.\n\nenv:\n  KEY:\n    required: true",
)


def touched(*arguments: object, **options: object) -> NoReturn:
    """Stand in for a loader that must not be needed."""
    raise AssertionError("the loader was touched")


def made(root: Path) -> Path:
    """Make a skill of each shape below *root*."""
    for number, shape in enumerate(SHAPES):
        name = f"skill-{number}"
        directory = root / name
        directory.mkdir(parents=True)
        head = shape.format(name=name)
        text = f"---\n{head}\n---\n# {name}\n\nDo it.\n"
        (directory / "SKILL.md").write_text(text, encoding="utf-8")
    return root


def settle(root: Path) -> None:
    """Make every file an hour old, and wait until each directory is older than a tick
    of the clock: what is younger is read again.
    """
    for path in root.rglob("SKILL.md"):
        os.utime(path, (1_700_000_000.5, 1_700_000_000.5))
    newest = max(path.stat().st_ctime_ns for path in (root, *root.iterdir()))
    while time.time_ns() - newest <= TICK:
        time.sleep(0.001)


def test_usual_frontmatter_is_read_without_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cold start, at which PyYAML would take nine tenths of the time."""
    monkeypatch.setattr(yaml, "parse", touched)

    catalog = discover(made(tmp_path), use_index=False)

    assert len(catalog) == len(SHAPES)
    assert catalog.diagnostics == ()


def test_a_warm_start_parses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All metadata is from the index, that of a file that needs YAML too."""
    root = made(tmp_path / "skills")
    anchor = "---\nname: anchor\ndescription: &a Text.\n---\n"
    (root / "anchor").mkdir()
    (root / "anchor" / "SKILL.md").write_text(anchor, encoding="utf-8")
    settle(root)
    cold = discover(root)
    monkeypatch.setattr(yaml, "parse", touched)
    monkeypatch.setattr(f"{READER}.cut", touched)
    monkeypatch.setattr(f"{READER}.parse_cut", touched)

    warm = discover(root)

    assert len(warm) == len(SHAPES) + 1
    assert dict(warm) == dict(cold)


def test_a_tenth_of_real_frontmatter_needs_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each two hundred files with a whole frontmatter, eight are not YAML and are
    read field by field, and eleven need the YAML library; the others need neither.
    """
    shapes = needs.data("frontmatter_shapes/frontmatters.jsonl.gz")
    with gzip.open(shapes, "rt", encoding="utf-8") as file:
        heads = [json.loads(line)["frontmatter"] for line in file][:1000]
    for number, head in enumerate(heads):
        directory = tmp_path / f"skill-{number}"
        directory.mkdir()
        data = head.encode("utf-8", "surrogatepass")
        (directory / "SKILL.md").write_bytes(data)
    slowly: list[str] = []
    real = pkgutil.resolve_name(f"{READER}.parse_cut")

    def counting(parts: Any, path: str) -> Any:
        if parts.block:
            slowly.append(path)
        return real(parts, path)

    monkeypatch.setattr(f"{READER}.parse_cut", counting)

    discover(tmp_path, use_index=False)

    assert 0 < len(slowly) < len(heads) / 10


def counted(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]
) -> Counter[str]:
    """Return how often *work* calls each of `SYSTEM_CALLS`."""
    calls: Counter[str] = Counter()

    def counting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return real(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for name in SYSTEM_CALLS:
            patch.setattr(os, name, counting(name, getattr(os, name)))
        work()
    return calls


def called_functions(work: Callable[[], object]) -> int:
    """Return the number of calls of functions in Python that *work* makes."""
    calls = 0

    def listen(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        if event == "call":
            calls += 1

    sys.setprofile(listen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def plain_skills(root: Path, number: int) -> Path:
    """Make *number* skills with two fields below *root*."""
    for name in (f"skill-{each}" for each in range(number)):
        (root / name).mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: Reads a file.\n---\nRead it.\n"
        (root / name / "SKILL.md").write_text(text, encoding="utf-8")
    settle(root)
    return root


def test_a_warm_start_looks_once_at_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One `lstat` for each skill; no file of a skill is opened, no directory listed."""
    few, many = (plain_skills(tmp_path / str(each), each) for each in (10, 60))
    for root in (few, many):
        discover(root)

    first = counted(monkeypatch, lambda: discover(few))
    second = counted(monkeypatch, lambda: discover(many))

    second.subtract(first)
    assert {name: calls for name, calls in second.items() if calls} == {"lstat": 50}


def test_a_cold_start_opens_and_reads_each_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory of a valid skill is not listed."""
    few, many = (plain_skills(tmp_path / str(each), each) for each in (10, 60))

    first = counted(monkeypatch, lambda: discover(few, use_index=False))
    second = counted(monkeypatch, lambda: discover(many, use_index=False))

    second.subtract(first)
    assert {name: calls for name, calls in second.items() if calls} == {
        "open": 50,
        "fstat": 50,
        "read": 50,
    }


def test_a_skill_costs_no_call_warm_and_few_calls_cold(tmp_path: Path) -> None:
    """A warm start calls no function in Python for a skill, so that only the file
    system decides its time; a cold start calls twelve.
    """
    few, many = (plain_skills(tmp_path / str(each), each) for each in (10, 60))
    cold = [
        called_functions(lambda: discover(root, use_index=False))  # noqa: B023
        for root in (few, few, many)
    ]
    for root in (few, many):
        discover(root)

    warm = [called_functions(lambda: discover(root)) for root in (few, many)]  # noqa: B023

    assert warm[0] == warm[1]
    assert cold[2] - cold[1] <= 50 * 12


@pytest.mark.processes
@pytest.mark.parametrize("start", ["cold", "warm"])
def test_a_start_imports_no_more_than_it_needs(tmp_path: Path, start: str) -> None:
    """Imports take most of the time of a start with a hundred skills."""
    root = plain_skills(tmp_path / "skills", 3)
    if start == "warm":
        discover(root)
    code = (
        "import sys; from skillruntime import discover; discover(sys.argv[1]); "
        "print(*sys.modules)"
    )
    command = [sys.executable, "-S", "-c", code, str(root)]
    # Without `site`, which may import what an installed package adds to each start.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    ran = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    )

    needless = NOT_FOR_A_WARM_START & set(ran.stdout.split())
    assert needless <= (READS_FILES if start == "cold" else set())
