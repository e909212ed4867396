"""Small skills, written to a temporary directory, for the tests of this package."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import SkillCatalog, discover

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"text": {"type": "string"}},
}


@pytest.fixture
def write_skill(tmp_path: Path) -> Callable[..., SkillCatalog]:
    """A function that writes a skill with a script and a contract, and returns the
    catalog it is in.
    """

    def write(
        source: str | None = None,
        *,
        name: str = "sample",
        script: str = "scripts/run.py",
        trusted: bool = True,
        body: str = "Do it.",
        **contract: Any,
    ) -> SkillCatalog:
        directory = tmp_path / "skills" / name
        (directory / "scripts").mkdir(parents=True, exist_ok=True)
        text = (
            "---\n"
            f"name: {name}\n"
            "description: A sample. Use when testing.\n"
            "---\n"
            f"{body}\n"
        )
        (directory / "SKILL.md").write_text(text, encoding="utf-8")
        document = {
            "version": "1.2.0",
            "input": SCHEMA,
            "run": {"script": script},
            **contract,
        }
        (directory / "contract.json").write_text(json.dumps(document), encoding="utf-8")
        if source is not None:
            (directory / script).write_text(source, encoding="utf-8")
        return discover(tmp_path / "skills", trusted=trusted)

    return write
