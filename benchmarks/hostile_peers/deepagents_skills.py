"""The kit's adapter for deepagents' skills and its local shell."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepagents.backends import FilesystemBackend, LocalShellBackend
from deepagents.middleware.skills import SkillsMiddleware


@dataclass
class Loaded:
    root: Path
    middleware: SkillsMiddleware
    skills: list[Any]
    files: FilesystemBackend


def load(root: Path) -> Loaded:
    files = FilesystemBackend(root_dir=root, virtual_mode=True)
    middleware = SkillsMiddleware(backend=files, sources=["/"])
    state: dict[str, Any] = {"messages": []}
    update = middleware.before_agent(state, None, {}) or {}
    return Loaded(root, middleware, update.get("skills_metadata", []), files)


def listing(loaded: Loaded) -> str:
    return loaded.middleware._format_skills_list(loaded.skills)


def instructions(loaded: Loaded, skill: str) -> str:
    return str(loaded.files.read(f"/{skill}/SKILL.md"))


def read(loaded: Loaded, skill: str, path: str) -> str:
    return str(loaded.files.read(f"/{skill}/{path}"))


def run(loaded: Loaded, skill: str, workspace: Path, seconds: float) -> str:
    shell = LocalShellBackend(root_dir=workspace, virtual_mode=True)
    script = loaded.root / skill / "scripts" / "run.py"
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(script))}"
    return str(shell.execute(command, timeout=int(seconds)).output)
