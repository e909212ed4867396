"""A finished run: the call, its response, and its files before and after."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillruntime.errors import ErrorCode
from skillruntime.testing.skill_tests.expected.answers import masked, without_places
from skillruntime.testing.skill_tests.inputs.case import Case
from skillruntime.testing.skill_tests.inputs.made_files import texts_of
from skillruntime.testing.skill_tests.search.reached_lines import Step

if TYPE_CHECKING:
    from skillruntime.contract.contract import Contract
    from skillruntime.contract.response import SkillResponse

__all__ = ["Make", "Run"]


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run. ``files`` are the bytes of each file before the call, ``made``
    the paths of the files that were made up for it, ``after`` the sizes of the files
    after it, and ``changed`` the digests of the new, changed and removed ones, all by
    path in the workspace.
    """

    case: Case
    contract: Contract
    response: SkillResponse[Any]
    files: Mapping[str, bytes]
    made: frozenset[str]
    after: Mapping[str, int]
    changed: Mapping[str, str]
    places: tuple[str, ...]
    """Directories that the answer may name: the skill's directory and the workspace."""
    timeout: float
    has_own_timeout: bool
    in_repository: bool
    """Whether the workspace was a made Git repository, which no case can repeat."""
    steps: frozenset[Step] = frozenset()
    """What the script executed; empty if it was not traced."""

    @property
    def has_ended_well(self) -> bool:
        """Whether the call returned a result."""
        return self.response.ok

    @property
    def has_started(self) -> bool:
        """Whether the script was started."""
        return "sandbox" in (self.response.metadata or {})

    @property
    def stderr(self) -> str:
        """What the script wrote to stderr, or the end of it."""
        return str((self.response.metadata or {}).get("stderr", ""))

    @property
    def written(self) -> str:
        """The output of the script besides its result."""
        messages = [error.message for error in self.response.errors]
        texts = [self.stderr, *messages]
        if not self.response.ok:
            texts += texts_of(self.response.data)
        return "\n".join(texts)

    @property
    def answer(self) -> str:
        """Its result, errors and files as a text that is the same for a like answer."""
        messages = [error.message for error in self.response.errors]
        answer = [self.response.data, messages, [*self.changed.values()]]
        placeless = without_places(answer, self.places)
        return masked(json.dumps(placeless, ensure_ascii=False, default=str))

    @property
    def codes(self) -> set[ErrorCode]:
        """The codes of its errors."""
        return {error.code for error in self.response.errors}

    @property
    def first_message(self) -> str:
        """The message of its first error."""
        errors = self.response.errors
        if not errors:
            return "no result"
        return errors[0].message

    @property
    def advice(self) -> str:
        """The message of its first error, and the next step; empty without an error."""
        errors = self.response.errors
        if not errors:
            return ""
        return f"{errors[0].message}\n{errors[0].suggested_action or ''}"


Make = Callable[[Sequence[Case]], Awaitable[list[Run] | None]]
"""Makes calls at the same time and returns their runs in this order, or None if no more
calls are allowed.
"""
