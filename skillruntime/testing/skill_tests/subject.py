"""The callable that a test is about."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skillruntime.testing.skill_tests.inputs.made_files import Fixtures
from skillruntime.testing.skill_tests.options import SkillTests

if TYPE_CHECKING:
    from skillruntime.catalog.skill import Skill
    from skillruntime.contract.contract import Contract
    from skillruntime.runtime.runtime import SkillRuntime

__all__ = ["Subject"]


@dataclass(frozen=True, slots=True)
class Subject:
    """The tested callable, with the options of the test and its end
    (``time.monotonic``).
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
