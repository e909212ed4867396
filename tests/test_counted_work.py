"""Work that is not done, shown by a loader that raises when it is touched."""

from __future__ import annotations

import gzip
import json
import os
import pkgutil
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from skillruntime import discover
from tests import needs

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
