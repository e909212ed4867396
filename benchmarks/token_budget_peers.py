"""How other frameworks list the same skills to a model: their own code, called where it is installed.

Each returns the listing, which grows with the number of skills, and the standing instruction around it, which does
not. What is not public in a framework is reached into, because it is only measured here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

__all__ = ["PEERS", "Listing"]

Entries = list[tuple[str, str, str]]  # name, description, path of the SKILL.md


@dataclass(frozen=True)
class Listing:
    listing: str
    standing: str
    version: str


def skills_ref(entries: Entries) -> Listing:
    """The reference library of the format, with the location of each skill."""
    module = importlib.import_module("skills_ref")
    return Listing(module.to_prompt([Path(path).parent for _, _, path in entries]), "", version("skills-ref"))


def deepagents(entries: Entries) -> Listing:
    """deepagents' SkillsMiddleware: a list with the path of each skill."""
    module = importlib.import_module("deepagents.middleware.skills")
    plain = {"allowed_tools": [], "license": None, "compatibility": None, "metadata": {}}
    skills = [{"name": name, "description": description, "path": path, **plain} for name, description, path in entries]
    listing = module.SkillsMiddleware._format_skills_list(SimpleNamespace(sources=[]), skills)
    standing = module.SKILLS_SYSTEM_PROMPT.format(skills_locations="", skills_load_warnings="", skills_list="")
    return Listing(listing, standing, version("deepagents"))


def google_adk(entries: Entries) -> Listing:
    """google-adk's skill toolset: XML, names and descriptions."""
    prompt = importlib.import_module("google.adk.skills.prompt")
    toolset = importlib.import_module("google.adk.tools.skill_toolset")
    skills = [SimpleNamespace(name=name, description=description) for name, description, _ in entries]
    return Listing(prompt.format_skills_as_xml(skills), toolset.DEFAULT_SKILL_SYSTEM_INSTRUCTION, version("google-adk"))


def agent_framework(entries: Entries) -> Listing:
    """agent-framework's skills provider: indented XML, names and descriptions."""
    module = importlib.import_module("agent_framework._skills")
    skills = [
        SimpleNamespace(frontmatter=SimpleNamespace(name=name, description=description))
        for name, description, _ in entries
    ]
    create = module.SkillsProvider._create_instructions
    before, opening, rest = create(prompt_template=None, skills=skills).partition("<available_skills>")
    listing, closing, after = rest.partition("</available_skills>")
    return Listing(opening + listing + closing, before + after, version("agent-framework-core"))


PEERS: dict[str, Callable[[Entries], Listing]] = {
    "skills-ref (reference)": skills_ref,
    "deepagents": deepagents,
    "google-adk": google_adk,
    "agent-framework": agent_framework,
}
