"""A loader without any care, as the control of the kit: what attacks it must be seen to
have got through.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import yaml


def load(root: Path) -> Path:
    """Return the directory of the skills."""
    return root


def listing(loaded: Path) -> str:
    """Return every name and description as they are written."""
    entries = []
    for file in sorted(loaded.glob("*/SKILL.md")):
        try:
            front = yaml.safe_load(file.read_text("utf-8").split("---")[1])
            entries.append(f"- {front['name']}: {front['description']}")
        except Exception:
            continue
    return "\n".join(entries)


def instructions(loaded: Path, skill: str) -> str:
    """Return the file as it is."""
    return (loaded / skill / "SKILL.md").read_text("utf-8")


def read(loaded: Path, skill: str, path: str) -> str:
    """Return the file that the path resolves to."""
    return (loaded / skill / path).read_text("utf-8")


def run(loaded: Path, skill: str, workspace: Path, seconds: float) -> str:
    """Run the script with the rights of the host."""
    script = loaded / skill / "scripts" / "run.py"
    done = subprocess.run(
        [sys.executable, script],
        cwd=workspace,
        input="{}",
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    return done.stdout


def accept(schema: Any, payload: Any) -> Any:
    """Validate with the reference engine."""
    jsonschema.validate(payload, schema)
    return payload
