"""The bundled skills and small ones, for the tests of the adapters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillruntime.adapters.tools.tool_names import to_tool_name
from skillruntime.catalog import SkillCatalog, discover

__all__ = ["SKILLS", "bundled", "counting", "to_tool_name"]

SKILLS = Path(__file__).parents[2] / "skills"


@pytest.fixture(scope="session")
def bundled() -> SkillCatalog:
    """The real skills of this repository."""
    return discover(SKILLS, trusted=True)


@pytest.fixture
def counting(tmp_path: Path) -> SkillCatalog:
    """One trusted skill whose script counts letters, with a reference file to read."""
    directory = tmp_path / "skills" / "counting"
    (directory / "scripts").mkdir(parents=True)
    (directory / "references").mkdir()
    (directory / "references" / "rules.md").write_text(
        "Spaces count.", encoding="utf-8"
    )
    (directory / "SKILL.md").write_text(
        "---\n"
        "name: counting\n"
        "description: Counts letters. Use when letters matter.\n"
        "---\n"
        "Call it with a text.\n",
        encoding="utf-8",
    )
    (directory / "scripts" / "count.py").write_text(
        "import json, sys\n"
        "print(json.dumps({'letters': len(json.load(sys.stdin)['text'])}))",
        encoding="utf-8",
    )
    contract = {
        "version": "1.0.0",
        "description": "Count the letters of a text",
        "run": {"script": "scripts/count.py"},
        "input": {
            "type": "object",
            "required": ["text"],
            "additionalProperties": False,
            "properties": {"text": {"type": "string"}},
        },
    }
    (directory / "contract.json").write_text(json.dumps(contract), encoding="utf-8")
    return discover(tmp_path / "skills", trusted=True)
