"""The kit's adapter for agno's skills: ``python -m tests.hostile --adapter
agno_skills``.
"""

from __future__ import annotations

from pathlib import Path

from agno.skills import LocalSkills, Skills


def load(root: Path) -> Skills:
    return Skills(loaders=[LocalSkills(str(root), validate=False)])


def listing(loaded: Skills) -> str:
    return loaded.get_system_prompt_snippet()


def instructions(loaded: Skills, skill: str) -> str:
    return loaded._get_skill_instructions(skill)


def read(loaded: Skills, skill: str, path: str) -> str:
    return loaded._get_skill_reference(skill, path)


def run(loaded: Skills, skill: str, workspace: Path, seconds: float) -> str:
    return loaded._get_skill_script(skill, "run.py", execute=True, timeout=int(seconds))
