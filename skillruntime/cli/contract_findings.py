"""What ``skillruntime validate`` says of a skill's contract files: their fields, their scripts, and advice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillruntime.cli.contract_source import parse_document
from skillruntime.contract import check_document, lint_contract
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import SkillRuntimeError

if TYPE_CHECKING:
    from skillruntime.catalog import Skill

__all__ = ["CHECKED", "contract_findings"]

CHECKED = frozenset(
    {
        *("contract-value", "contract-misplaced", "contract-unknown"),
        *("contract-schema", "contract-impossible", "contract-migration"),
    }
)
"""The rules of `check_document`: an error of one of them explains why a contract cannot be used."""

_SUFFIXES = (".json", ".yaml", ".yml")


def contract_findings(skill: Skill) -> list[Diagnostic]:
    """Return the findings of every contract file of *skill*, those of one file together."""
    found: list[Diagnostic] = []
    for name in _files(skill.directory):
        try:
            # Through the skill: it follows no link out of its directory, and bounds what it reads.
            document = parse_document(skill.read_resource_bytes(name), name)
        except SkillRuntimeError:
            continue  # catalog.validate has reported a file that cannot be read
        # As catalog.validate writes the paths, so that the findings of one file can be compared.
        path = str(skill.directory / name)
        faults = [*check_document(document, path=path), *_script(document, skill, path)]
        found += faults
        # Advice on a contract that does not work would bury the errors.
        if isinstance(document, dict) and not any(each.severity is Severity.ERROR for each in faults):
            found += lint_contract(document, path=path)
    return found


def _files(directory: Path) -> list[str]:
    own = [f"contract{suffix}" for suffix in _SUFFIXES if (directory / f"contract{suffix}").is_file()]
    tools = directory / "contracts"
    is_own = tools.is_dir() and not tools.is_symlink()
    several = sorted(file.name for file in tools.iterdir() if file.suffix in _SUFFIXES) if is_own else []
    # Of contract.json and contract.yaml the first is read: the other one is reported as "contract-twice".
    return [*own[:1], *(f"contracts/{name}" for name in several)]


def _script(document: Any, skill: Skill, path: str) -> list[Diagnostic]:
    run = document.get("run") if isinstance(document, dict) else None
    script = run.get("script") if isinstance(run, dict) else None
    if not isinstance(script, str) or not script:
        return []
    root = skill.directory.resolve()
    try:
        file = (root / script).resolve()
        is_file = file.is_file()
    except (OSError, ValueError, RuntimeError):  # too long, a NUL byte, a loop of links
        file, is_file = root / "-", False
    if not file.is_relative_to(root):
        message = f"/run/script: {script!r} is outside the skill's directory"
        hint = "name a script of the skill, such as scripts/main.py"
    elif not is_file:
        there = [each.path for each in skill.resources() if each.path.startswith("scripts/")]
        message = f"/run/script: there is no file {script!r} in the skill"
        hint = f"the files in scripts/ are {', '.join(there[:8])}" if there else "the skill has no scripts/"
    else:
        return []
    return [Diagnostic("contract-script", Severity.ERROR, path, message, hint=hint)]
