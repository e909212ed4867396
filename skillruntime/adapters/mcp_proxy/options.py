"""The user's choices: how far repairs go, whether results are checked, and the
exceptions for single tools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

__all__ = ["Options", "read_tool_options"]

_ALLOWED = {
    "policy": ("strict", "safe", "lenient", "off"),
    "check_output": ("off", "report", "refuse"),
}


@dataclass(frozen=True, slots=True)
class Options:
    """The choices for one server.

    ``policy`` is how far repairs go; ``"off"`` for a single tool lets its calls pass
    unchecked. ``check_output`` compares results with the tool's ``outputSchema``.
    ``fold`` shows clients schemas that every provider takes. ``log_values`` writes
    arguments to the log. ``aliases`` are other names that models write for a tool's
    parameters, only for single tools: ``{"path": ["file_path", "file"]}``. ``tools``
    holds the choices that differ for single tools, by name.
    """

    policy: str = "safe"
    check_output: str = "off"
    fold: bool = False
    log_values: bool = False
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check({"policy": self.policy, "check_output": self.check_output}, "")
        _check_tools(self.tools)

    def of(self, tool: str) -> Options:
        """Return the choices for *tool*.

        >>> Options(tools={"write": {"policy": "strict"}}).of("write").policy
        'strict'
        """
        if tool not in self.tools:
            return self
        return replace(self, **self.tools[tool], tools={})


def read_tool_options(path: Path) -> dict[str, dict[str, Any]]:
    """Read the choices for single tools from the JSON file at *path*: ``{"tools":
    {"write": {"policy": "strict"}}}``.

    Raises:
        ValueError: the file is not of this form; the message names the place.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        tools = None
        if isinstance(document, dict):
            tools = document.get("tools")
        if not isinstance(tools, dict):
            raise ValueError('expected {"tools": {NAME: {"policy": ...}}}')
        for key in document:
            # `"policy"` beside `"tools"` would look as if it applied to all tools.
            if key not in ("tools", "$schema"):
                raise ValueError(
                    f"{key} is not read; options for all tools are options of the "
                    "command"
                )
        _check_tools(tools)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from None
    return tools


def _check_tools(tools: Mapping[str, Any]) -> None:
    for name, choices in tools.items():
        if not isinstance(choices, Mapping):
            raise ValueError(f"tools.{name} is not an object")
        _check(choices, f"tools.{name}.")


def _check(choices: Mapping[str, Any], where: str) -> None:
    # A fault that is not found here would fail at the first call, in front of the
    # model.
    for key, value in choices.items():
        if key == "aliases":
            if not isinstance(value, Mapping) or not all(
                isinstance(each, list) for each in value.values()
            ):
                raise ValueError(
                    f"{where}aliases is not an object with an array of names for each "
                    "parameter"
                )
            continue
        if key not in _ALLOWED:
            raise ValueError(
                f"{where}{key} is not an option; options are "
                f"{', '.join((*_ALLOWED, 'aliases'))}"
            )
        if value not in _ALLOWED[key]:
            raise ValueError(
                f"{where}{key} is {value!r}; it can be {', '.join(_ALLOWED[key])}"
            )
