"""What one conversation has activated, where its files lie, and what it was refused."""

from __future__ import annotations

import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

from skillruntime.catalog.skill import Skill
from skillruntime.contract.response import SkillResponse
from skillruntime.runtime.workspace import Workspace

if TYPE_CHECKING:
    from skillruntime.runtime.call import CallOptions
    from skillruntime.runtime.runtime import SkillRuntime

__all__ = ["SkillSession"]

_REMEMBERED = 256  # refused calls, the oldest forgotten first


class SkillSession:
    """One conversation with a `SkillRuntime`.

    It owns a workspace: the host's directory, or a temporary one that is removed when the session is closed.
    """

    def __init__(self, runtime: SkillRuntime, *, workspace: str | os.PathLike[str] | Workspace | None = None) -> None:
        self.runtime = runtime
        self.workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)
        self._active: dict[str, Skill] = {}
        self._refused: OrderedDict[str, int] = OrderedDict()

    @property
    def active(self) -> Mapping[str, Skill]:
        """The skills activated so far, by name, in the order of their first activation."""
        return MappingProxyType(self._active)

    def activate(self, name: str, *, to_tool_name: Callable[[str], str] = str) -> str:
        """Return the skill's instructions, files and callable tools, as a model reads them.

        *to_tool_name* says under which name the model calls them, where that is not their own.

        The second activation is one line, unless the skill's text has changed since.

        Raises:
            SkillNotFoundError: no such skill; the closest names are in its suggested action.
        """
        skill = self.runtime.catalog.activate(name)
        before = self._active.get(skill.name)
        self._active[skill.name] = skill
        if before is not None and before.body == skill.body:
            return f"{skill.name!r} is already active; its instructions stand above."
        return render_activation(skill, to_tool_name)

    async def call(self, name: str, arguments: Any, **options: Unpack[CallOptions]) -> SkillResponse:
        """Call a skill within this session: as `SkillRuntime.call`."""
        return await self.runtime.call(name, arguments, session=self, **options)

    def call_blocking(self, name: str, arguments: Any, **options: Unpack[CallOptions]) -> SkillResponse:
        """Call a skill within this session: as `SkillRuntime.call_blocking`."""
        return self.runtime.call_blocking(name, arguments, session=self, **options)

    def count_refusal(self, name: str, arguments: Any, version: str | None) -> int:
        """Remember that this very call was refused, and return how many times it has been."""
        key = _identity(name, arguments, version)
        times = self._refused.pop(key, 0) + 1
        self._refused[key] = times
        if len(self._refused) > _REMEMBERED:
            self._refused.popitem(last=False)
        return times

    def close(self) -> None:
        """Remove the session's temporary workspace; a workspace that the host gave stays."""
        self.workspace.close()

    def __enter__(self) -> SkillSession:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def render_activation(skill: Skill, to_tool_name: Callable[[str], str] = str) -> str:
    """Return an activated skill as a model reads it: the instructions, then the files, then the callable tools.

    The scripts of a skill with callable tools are not listed: they are called, not read.
    """
    parts = [f'<skill name="{skill.name}">', skill.body.strip(), "</skill>"]
    contracts = skill.contracts
    resources = [item for item in skill.resources() if not (contracts and item.path.startswith("scripts/"))]
    if resources:
        parts.append("Files, read with the skill's name and this path:")
        parts += [f"- {resource.path} ({resource.bytes:,} bytes)" for resource in resources]
    if contracts:
        parts.append("Callable:")
        parts += [f"- {to_tool_name(name)}: {contract.description}" for name, contract in contracts.items()]
    return "\n".join(parts)


def _identity(name: str, arguments: Any, version: str | None) -> str:
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):
        text = repr(type(arguments))
    return hashlib.sha256(repr((name, version, text)).encode("utf-8", "surrogatepass")).hexdigest()
