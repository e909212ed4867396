"""Offer a skill's scripts as tools without a written contract. A tool's name follows
from the script's file name, and its contract is derived at the first request. The
scripts are not run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillruntime.catalog.contracts.derivation_cache import derive_known
from skillruntime.catalog.contracts.started_scripts import started_files
from skillruntime.catalog.contracts.visible_contract import visible_document
from skillruntime.catalog.resources import SCRIPT_SUFFIXES, Resource
from skillruntime.contract.contract import Contract
from skillruntime.derive.command_line import tool_name
from skillruntime.derive.first_look import looks_like_tool
from skillruntime.errors import InvalidSkillError, ResourceNotFoundError
from skillruntime.lazy_patterns import lazy_pattern

if TYPE_CHECKING:
    from skillruntime.derive import Derivation

__all__ = ["MAX_SCRIPTS", "DerivedContracts", "derive_scripts"]

MAX_SCRIPTS = 64
"""The maximum number of scripts of one skill that are read."""

MAX_SCRIPT_BYTES = 400_000
"""The maximum size of a script in bytes; a longer one is data, or generated."""

_log = logging.getLogger("skillruntime.catalog")
_ASIDE = lazy_pattern(
    r"(^|/)(__init__|__main__|setup|conftest|test_[^/]*|[^/]*_test)\.\w+$"
    r"|(^|/)(tests?|lib|node_modules)/"
)


Read = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class _Script:
    """A script that looks like a tool: its path in the skill, and its bytes."""

    path: str
    source: bytes


class DerivedContracts:
    """The contracts of one skill's scripts, by ``skill/tool``, without hidden
    characters.

    All scripts are read at construction, so that all contracts describe the same state
    of the files; each contract is derived at the first request. With *one_line* the
    texts in the contracts are single lines.
    """

    def __init__(
        self, resources: Iterable[Resource], read: Read, *, skill: str, one_line: bool
    ) -> None:
        self._skill = skill
        self._one_line = one_line
        self._unread = {
            f"{skill}/{tool}": script
            for tool, script in _scripts_by_tool(resources, read).items()
        }
        # The instructions are only needed to derive contracts.
        self._instructions = _instructions(read) if self._unread else ""
        self._contracts: dict[str, Contract | None] = {}
        self.names: tuple[str, ...] = tuple(self._unread)
        """The names of the callables, one for each script that looks like a tool; a few
        of them may have no contract.
        """

    def find(self, name: str) -> Contract | None:
        """Return the contract of the callable *name*; None if the script's interface
        cannot be read, or does not make a usable schema.
        """
        script = self._unread.get(name)
        if script is not None:
            self._contracts[name] = self._derived(name, script)
            # Another thread may have been faster.
            self._unread.pop(name, None)
        return self._contracts.get(name)

    def all(self) -> dict[str, Contract]:
        """Return every contract."""
        contracts: dict[str, Contract] = {}
        for name in self.names:
            contract = self.find(name)
            if contract is not None:
                contracts[name] = contract
        return contracts

    def _derived(self, name: str, script: _Script) -> Contract | None:
        try:
            derived, is_usable = derive_known(
                script.source,
                path=script.path,
                instructions=self._instructions,
                skill=self._skill,
            )
            if derived is None:
                return None
            document = visible_document(derived, one_line=self._one_line)
            if is_usable:
                # Since the contract was compiled, only texts such as descriptions were
                # changed, which cannot make it unusable.
                return Contract.from_known_dict(document, name=name)
            return Contract.from_dict(document, name=name)
        except InvalidSkillError:
            return None
        except Exception:
            # If a script makes the reader fail, only its own tool is missing, not the
            # skill.
            _log.exception("no contract could be derived for the script %s", name)
            return None


def derive_scripts(
    resources: Iterable[Resource], read: Read, *, skill: str = ""
) -> dict[str, Derivation]:
    """Return the interfaces of the scripts in ``scripts/``, next to SKILL.md, or
    started by SKILL.md, by the name of the tool.

    *resources* are the files of *skill*; *read* returns the bytes of the file at a
    path, or raises `ResourceNotFoundError`. Tests, packages' own files, modules that
    are only imported, and scripts whose interface cannot be read are left out.
    """
    from skillruntime.derive import derive

    scripts = _scripts_by_tool(resources, read)
    instructions = _instructions(read) if scripts else ""
    derivations: dict[str, Derivation] = {}
    for tool, script in scripts.items():
        derivation = derive(
            script.source, path=script.path, instructions=instructions, skill=skill
        )
        if derivation is not None:
            derivations[tool] = derivation
    return derivations


def _scripts_by_tool(resources: Iterable[Resource], read: Read) -> dict[str, _Script]:
    """Return the scripts that look like tools, by the name of the tool."""
    scripts: dict[str, _Script] = {}
    for path in _scripts(resources, read):
        try:
            source = read(path)
        except ResourceNotFoundError:
            continue
        except InvalidSkillError as error:  # differs from the lockfile or package
            _log.warning("%s", error)
            continue
        if not looks_like_tool(source, path):
            continue
        name = tool_name(path)
        number = 2
        while name in scripts:
            name = f"{tool_name(path)}-{number}"
            number += 1
        scripts[name] = _Script(path, source)
    return scripts


def _scripts(resources: Iterable[Resource], read: Read) -> list[str]:
    """Return the paths of the files that may be tools: the files in ``scripts/`` and
    next to SKILL.md, then the files that SKILL.md starts. This is the only such list.

    The started files come last, so that they do not change the names of the others.
    """
    usual: list[str] = []
    others: list[str] = []
    for resource in resources:
        path = resource.path
        is_script = path.endswith(SCRIPT_SUFFIXES)
        if not is_script or resource.bytes > MAX_SCRIPT_BYTES:
            continue
        if _is_in_usual_place(path) and _ASIDE.search(path) is None:
            usual.append(path)
        else:
            others.append(path)
    # Most skills have no other scripts; do not read their SKILL.md.
    if others:
        others = started_files(_instructions(read), others)
    return (usual + others)[:MAX_SCRIPTS]


def _is_in_usual_place(path: str) -> bool:
    directory, _, _ = path.rpartition("/")
    return directory in ("", "scripts") or directory.startswith("scripts/")


def _instructions(read: Read) -> str:
    """Return the text of SKILL.md; an empty string if it cannot be read."""
    for name in ("SKILL.md", "skill.md"):
        try:
            return read(name).decode("utf-8", "replace")
        except ResourceNotFoundError:
            continue
        except InvalidSkillError as error:  # differs from the lockfile or package
            _log.warning("%s", error)
            break
    return ""
