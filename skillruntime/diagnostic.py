"""Describe one finding of discovery or linting about a skill. A finding is data, never
an exception.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["Diagnostic", "Severity"]


class Severity(StrEnum):
    """An error makes the skill unusable or invalid, a warning does not, advice is
    optional.
    """

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding: the rule, its severity, the place, the message, and a hint at the
    correction.

    ``path`` is the file or directory in question; ``line`` and ``column`` count from 1;
    ``related`` lists the files of other skills that the message names; a view for one
    caller may hide these skills.

    >>> print(Diagnostic("name-form", Severity.WARNING, "SKILL.md", "no name", line=2))
    SKILL.md:2: warning: no name [name-form]
    """

    rule: str
    severity: Severity
    path: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str | None = None
    related: tuple[str, ...] = ()

    def __str__(self) -> str:
        # Editors and terminals turn path:line:column into a link.
        where = self.path
        for number in (self.line, self.column):
            if number is not None:
                where += f":{number}"
        hint = f"; {self.hint}" if self.hint else ""
        return f"{where}: {self.severity.value}: {self.message}{hint} [{self.rule}]"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a JSON object without its empty fields."""
        fields = ("rule", "severity", "path", "line", "column", "message", "hint")
        document = {field: getattr(self, field) for field in fields}
        document["severity"] = self.severity.value
        return {field: value for field, value in document.items() if value is not None}
