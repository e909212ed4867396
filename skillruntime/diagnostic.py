"""One thing that discovery or linting has to say about a skill: data, never an exception."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["Diagnostic", "Severity"]


class Severity(StrEnum):
    """How bad it is: an error costs the skill (or its strict validity), a warning does not, advice is advice."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding: which rule, how severe, where, what, and what would be right.

    ``path`` is the file or directory it is about; ``line`` and ``column`` count from 1.

    >>> str(Diagnostic("name-mismatch", Severity.WARNING, "skills/pdf/SKILL.md", "name 'PDF' differs", line=2))
    "skills/pdf/SKILL.md:2: warning: name 'PDF' differs [name-mismatch]"
    """

    rule: str
    severity: Severity
    path: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str | None = None

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        hint = f"; {self.hint}" if self.hint else ""
        return f"{where}: {self.severity.value}: {self.message}{hint} [{self.rule}]"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a JSON object, without the fields that are empty."""
        fields = ("rule", "severity", "path", "line", "column", "message", "hint")
        document = {field: getattr(self, field) for field in fields}
        document["severity"] = self.severity.value
        return {field: value for field, value in document.items() if value is not None}
