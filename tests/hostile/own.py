"""The adapter of this library: how the kit loads, lists, reads, runs and checks with
it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillruntime.catalog import discover
from skillruntime.contract import Contract
from skillruntime.runtime import SkillRuntime, SkillSession

__all__ = ["accept", "instructions", "listing", "load", "read", "run", "succeeded"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the kit hands back to each function."""

    runtime: SkillRuntime
    session: SkillSession


def load(root: Path) -> Loaded:
    """Return a session over the untrusted skills below *root*, whose scripts the host
    approves.
    """
    level = os.environ.get("SKILLRUNTIME_HOSTILE_SANDBOX", "auto")
    runtime = SkillRuntime(
        discover(root),
        approve=lambda request: True,
        sandbox=level,
        workspace=root.parent / "workspace",
    )
    return Loaded(runtime, runtime.session(workspace=root.parent / "workspace"))


def listing(loaded: Loaded) -> str:
    """Return what a model reads of all skills, and the names that it can call."""
    names = loaded.runtime.callable_names()
    return (
        loaded.session.render_catalog(4000).text
        + "\n"
        + "\n".join(f"callable: {name}" for name in names)
    )


def instructions(loaded: Loaded, skill: str) -> str:
    """Return what a model reads of one skill."""
    return loaded.session.activate(skill)


def read(loaded: Loaded, skill: str, path: str) -> str:
    """Return what a model reads of one file."""
    return loaded.session.read_resource(skill, path)


def run(loaded: Loaded, skill: str, workspace: Path, seconds: float) -> str:
    """Return the envelope of a call of the skill."""
    return loaded.session.call_sync(skill, {}, timeout=seconds).to_json()


def directory(loaded: Loaded, skill: str) -> Path:
    """Return where the script of the skill works: not the workspace, which it cannot
    reach.
    """
    runtime = loaded.runtime
    target = runtime._callables.target(skill, None)
    accepted = target.contract.accept({})
    files, _ = runtime._calls._files_of(target, loaded.session.workspace, accepted)
    return files.open()


def succeeded(text: str) -> bool:
    """Return whether the envelope says that the call went well."""
    return '"status": "success"' in text or '"status":"success"' in text


def accept(schema: Any, payload: Any) -> Any:
    """Return the arguments that a contract with *schema* accepts."""
    return (
        Contract.from_dict({"version": "1.0.0", "input": schema})
        .accept(payload)
        .arguments
    )
