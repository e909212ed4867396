"""The kit's adapter for the skills of strands-agents, which lists skills and runs no
scripts itself.
"""

from __future__ import annotations

from pathlib import Path

from strands.vended_plugins.skills import AgentSkills, Skill


def load(root: Path) -> dict[str, Skill]:
    return {skill.name: skill for skill in Skill.from_directory(root)}


def listing(loaded: dict[str, Skill]) -> str:
    return AgentSkills(skills=list(loaded.values()))._generate_skills_xml()


def instructions(loaded: dict[str, Skill], skill: str) -> str:
    return loaded[skill].instructions
