"""Fields that differ from the format are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillruntime.catalog import discover
from tests.catalog.conftest import WriteSkill

TEXT = """---
name: pdf
description: Reads PDFs. Use when a PDF comes.
version: 1.10
inputs:
  path: {type: string}
allowed-tools: [Read, "Bash(git:*)"]
user-invocable: no
metadata:
  tags: [forms]
  stars: 5
author: somebody
---
# Steps
"""


def test_each_deviating_field_is_read(tmp_path: Path, write_skill: WriteSkill) -> None:
    """Without a finding: these are for authors, who run `validate`."""
    write_skill("pdf", text=TEXT)
    catalog = discover(tmp_path / "skills")

    skill = catalog.activate("pdf")

    assert catalog.diagnostics == ()
    assert (catalog["pdf"].version, catalog["pdf"].user_invocable) == ("1.10", False)
    assert catalog["pdf"].read_frontmatter().allowed_tools == ("Read", "Bash(git:*)")
    assert dict(catalog["pdf"].read_frontmatter().metadata) == {
        "tags": '["forms"]',
        "stars": "5",
    }
    assert skill.diagnostics == ()


def test_a_standard_field_gives_no_diagnostic(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """A key in another case is reported at discovery, not again."""
    text = (
        "---\n"
        "name: pdf\n"
        "Description: Reads\n"
        "license: MIT\n"
        "allowed-tools: Read\n"
        "metadata:\n"
        "  a: 1\n"
        "---\n"
        "body"
    )
    write_skill("pdf", text=text)
    catalog = discover(tmp_path / "skills")

    assert [each.rule for each in catalog.diagnostics] == ["key-case"]
    assert catalog.activate("pdf").diagnostics == ()


@pytest.mark.parametrize(
    ("word", "hidden"),
    [("true", True), ("Yes", True), ("on", True), ("false", False), ("", False)],
)
def test_every_yaml_boolean_is_accepted(
    tmp_path: Path, write_skill: WriteSkill, word: str, hidden: bool
) -> None:
    """YAML 1.1 has yes and on next to true; the plain reader and the whole one
    agree.
    """
    for name, extra in (("plain", ""), ("whole", "x: &anchor 1\n")):
        text = (
            "---\n"
            f"name: {name}\n"
            "description: Reads\n"
            f"disable-model-invocation: {word}\n"
            f"{extra}---\n"
        )
        write_skill(name, text=text)

    catalog = discover(tmp_path / "skills")

    assert [each.model_invocable for each in catalog.values()] == [not hidden] * 2
    assert catalog.diagnostics == ()
