"""How other frameworks list the same skills to a model: their own code, called where it
is installed.

Each returns the listing, which grows with the number of skills, and the standing
instruction around it, which does not. What is not public in a framework is reached
into, because it is only measured here.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

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
    return Listing(
        module.to_prompt([Path(path).parent for _, _, path in entries]),
        "",
        version("skills-ref"),
    )


def deepagents(entries: Entries) -> Listing:
    """deepagents' SkillsMiddleware: a list with the path of each skill."""
    module = importlib.import_module("deepagents.middleware.skills")
    plain = {
        "allowed_tools": [],
        "license": None,
        "compatibility": None,
        "metadata": {},
    }
    skills = [
        {"name": name, "description": description, "path": path, **plain}
        for name, description, path in entries
    ]
    listing = module.SkillsMiddleware._format_skills_list(
        SimpleNamespace(sources=[]), skills
    )
    standing = module.SKILLS_SYSTEM_PROMPT.format(
        skills_locations="", skills_load_warnings="", skills_list=""
    )
    return Listing(listing, standing, version("deepagents"))


def google_adk(entries: Entries) -> Listing:
    """google-adk's skill toolset: XML, names and descriptions."""
    prompt = importlib.import_module("google.adk.skills.prompt")
    toolset = importlib.import_module("google.adk.tools.skill_toolset")
    skills = [
        SimpleNamespace(name=name, description=description)
        for name, description, _ in entries
    ]
    return Listing(
        prompt.format_skills_as_xml(skills),
        toolset.DEFAULT_SKILL_SYSTEM_INSTRUCTION,
        version("google-adk"),
    )


def agent_framework(entries: Entries) -> Listing:
    """agent-framework's skills provider: indented XML, names and descriptions."""
    module = importlib.import_module("agent_framework._skills")
    skills = [
        SimpleNamespace(frontmatter=SimpleNamespace(name=name, description=description))
        for name, description, _ in entries
    ]
    create = module.SkillsProvider._create_instructions
    before, opening, rest = create(prompt_template=None, skills=skills).partition(
        "<available_skills>"
    )
    listing, closing, after = rest.partition("</available_skills>")
    return Listing(
        opening + listing + closing, before + after, version("agent-framework-core")
    )


def agno(entries: Entries) -> Listing:
    """agno's Skills: XML in a system prompt, names and descriptions, without scripts
    and references here.
    """
    module = importlib.import_module("agno.skills")
    skills = [
        module.Skill(name=name, description=text, instructions="", source_path="")
        for name, text, _ in entries
    ]
    return Listing(
        module.Skills(
            [SimpleNamespace(load=lambda: skills)]
        ).get_system_prompt_snippet(),
        "",
        version("agno"),
    )


def strands(entries: Entries) -> Listing:
    """strands' plugin: XML, with the path of each skill."""
    module = importlib.import_module("strands.vended_plugins.skills")
    skills = [
        module.Skill(name=name, description=description, path=Path(path).parent)
        for name, description, path in entries
    ]
    return Listing(
        module.AgentSkills(skills=skills)._generate_skills_xml(),
        "",
        version("strands-agents"),
    )


def pydantic_ai(entries: Entries) -> Listing:
    """pydantic-ai-skills: what an agent's first request holds, as pydantic-ai writes it
    from the files.
    """
    package = importlib.import_module("pydantic_ai_skills")
    agent = importlib.import_module("pydantic_ai").Agent
    model = importlib.import_module("pydantic_ai.models.function").FunctionModel
    messages = importlib.import_module("pydantic_ai.messages")
    sent: list[str] = []

    def answer(history: list[Any], _: Any) -> Any:
        sent.append(history[0].instructions)
        return messages.ModelResponse([messages.TextPart("done")])

    with TemporaryDirectory() as directory:
        for name, description, _ in entries:
            folder = Path(directory, name)
            folder.mkdir()
            document = (
                "---\n"
                f"name: {json.dumps(name)}\n"
                f"description: {json.dumps(description)}\n"
                "---\n"
                "\n"
                f"# {name}\n"
            )
            (folder / "SKILL.md").write_text(document, encoding="utf-8")
        agent(
            model(answer),
            capabilities=[package.SkillsCapability(directories=[directory])],
        ).run_sync("go")
    return Listing(sent[0], "", version("pydantic-ai-skills"))


PEERS: dict[str, Callable[[Entries], Listing]] = {
    "skills-ref (reference)": skills_ref,
    "deepagents": deepagents,
    "google-adk": google_adk,
    "agent-framework": agent_framework,
    "pydantic-ai-skills": pydantic_ai,
    "agno": agno,
    "strands-agents": strands,
}
