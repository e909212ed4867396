"""The callable that a test is about."""

from __future__ import annotations

import ast
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillruntime.testing.skill_tests.inputs.calls import resolved_schema
from skillruntime.testing.skill_tests.inputs.made_files import Fixtures
from skillruntime.testing.skill_tests.inputs.script_literals import (
    Literals,
    read_literals,
    read_modules,
)
from skillruntime.testing.skill_tests.inputs.script_members import document_with_members
from skillruntime.testing.skill_tests.inputs.shown_documents import json_documents
from skillruntime.testing.skill_tests.options import SkillTests

if TYPE_CHECKING:
    from skillruntime.catalog.skill import Skill
    from skillruntime.contract.contract import Contract
    from skillruntime.runtime.runtime import SkillRuntime

__all__ = ["Subject"]


@dataclass(frozen=True)
class Subject:
    """The tested callable, with the options of the test and its end
    (``time.monotonic``). What its source shows is read at the first request.
    """

    runtime: SkillRuntime
    skill: Skill
    contract: Contract
    name: str
    tests: SkillTests
    ends: float
    fixtures: Fixtures
    samples: Mapping[str, bytes] = field(default_factory=dict)
    instructions: str = ""
    """The texts that may contain calls."""

    @property
    def is_over(self) -> bool:
        """Whether the time of the callable is over."""
        return time.monotonic() > self.ends

    @property
    def script(self) -> Path:
        """The path of its script."""
        return self.skill.directory / str(self.contract.run.get("script"))

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The schema of its arguments, without references."""
        return resolved_schema(self.contract)

    @cached_property
    def parameters(self) -> Mapping[str, Mapping[str, Any]]:
        """The schemas of its parameters, by name."""
        properties = self.schema.get("properties", {})
        return {
            name: part if isinstance(part, dict) else {}
            for name, part in properties.items()
        }

    @cached_property
    def options(self) -> Sequence[str]:
        """The names of the parameters that a call may leave out."""
        required = self.schema.get("required", ())
        return [name for name in self.parameters if name not in required]

    @cached_property
    def modules(self) -> Sequence[ast.Module]:
        """The syntax trees of its script and of the skill's modules that it imports."""
        return [*read_modules(self.script)]

    @cached_property
    def literals(self) -> Literals:
        """The values with which its source compares."""
        return read_literals(self.modules)

    @cached_property
    def members_document(self) -> bytes | None:
        """A JSON document with the members that its source reads, if there are any."""
        return document_with_members(self.modules)

    @cached_property
    def json_documents(self) -> Sequence[bytes]:
        """The JSON documents that its script may read, the best first."""
        return json_documents(self.modules, self.instructions)
