"""What the user chose: how far repairs go, whether results are checked, and what differs for single tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

__all__ = ["Options", "read_tool_options"]

POLICIES = ("strict", "safe", "lenient")
OUTPUT_CHECKS = ("off", "report", "refuse")


@dataclass(frozen=True, slots=True)
class Options:
    """The choices for one server.

    ``policy`` is how far repairs go; ``"off"`` for a single tool lets its calls pass unchecked. ``check_output``
    compares results with the tool's ``outputSchema``. ``fold`` shows clients schemas that every provider takes.
    ``log_values`` writes arguments to the log. ``tools`` holds the choices that differ for single tools, by name.
    """

    policy: str = "safe"
    check_output: str = "off"
    fold: bool = False
    log_values: bool = False
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def of(self, tool: str) -> Options:
        """Return the choices for *tool*.

        >>> Options(tools={"write": {"policy": "strict"}}).of("write").policy
        'strict'
        """
        return replace(self, **self.tools[tool]) if tool in self.tools else self


def read_tool_options(path: Path) -> dict[str, dict[str, Any]]:
    """Return the choices by tool that the JSON file at *path* holds: ``{"tools": {"write": {"policy": "strict"}}}``.

    Raises:
        ValueError: it is not such a file; the message says where.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
    tools = document.get("tools") if isinstance(document, dict) else None
    if not isinstance(tools, dict):
        raise ValueError(f'{path}: expected {{"tools": {{NAME: {{"policy": ...}}}}}}')
    if more := next((key for key in document if key not in ("tools", "$schema")), None):
        raise ValueError(f"{path}: {more} is not read; options for all tools are options of the command")
    # What is not checked here would fail at the first call, in front of the model.
    allowed = {"policy": (*POLICIES, "off"), "check_output": OUTPUT_CHECKS}
    for name, choices in tools.items():
        if not isinstance(choices, dict):
            raise ValueError(f"{path}: tools.{name} is not an object")
        for key, value in choices.items():
            if key not in allowed:
                raise ValueError(f"{path}: tools.{name}.{key} is not an option; options are {', '.join(allowed)}")
            if value not in allowed[key]:
                raise ValueError(f"{path}: tools.{name}.{key} is {value!r}; it can be {', '.join(allowed[key])}")
    return tools
