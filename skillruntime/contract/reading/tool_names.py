"""The names of tools as models write them, and the keys under which they write a tool's
name and its arguments.
"""

from __future__ import annotations

import re

# The key of the tool's name: OpenAI, Anthropic and Gemini write `name`, ReAct `action`,
# parallel calls `recipient_name`.
NAME_KEYS = frozenset(
    {
        "name",
        "tool",
        "tool_name",
        "toolName",
        "function",
        "function_name",
        "action",
        "recipient_name",
    }
)
# The key of the arguments: `arguments` (OpenAI), `input` (Anthropic), `args` (Gemini,
# LangChain), `action_input` (ReAct).
ARGUMENT_KEYS = frozenset(
    {
        "arguments",
        "parameters",
        "args",
        "input",
        "params",
        "kwargs",
        "tool_input",
        "toolInput",
        "action_input",
        "tool_args",
        "tool_arguments",
    }
)


def is_name_of(name: str, tool: str) -> bool:
    """Return whether a model that writes *name* means *tool*: neither case and
    separators matter, nor a missing prefix.

    Where both have a prefix it must be the same.

    >>> is_name_of("functions.get_weather:0", "get-weather")
    True
    >>> is_name_of("get_news", "get_weather")
    False
    >>> is_name_of("extract", "pdf-processing/extract")
    True
    >>> is_name_of("docx/extract", "pdf/extract")
    False
    """
    # Kimi numbers its calls: `functions.get_weather:0`.
    name = re.sub(r":\d+$", "", name)
    name = _NAMESPACE.sub("", name)
    if folded(name) == folded(tool):
        return True
    parts_of_name = _PREFIX.split(name)
    parts_of_tool = _PREFIX.split(tool)
    if len(parts_of_name) > 1 and len(parts_of_tool) > 1:
        return False
    return folded(parts_of_name[-1]) == folded(parts_of_tool[-1])


# OpenAI's harmony and Gemini's Python have a namespace for all tools.
_NAMESPACE = re.compile(r"^(?:functions|default_api)\.")
_PREFIX = re.compile(r"[./:]|__")


def folded(text: str) -> str:
    """Return *text* without case and separators."""
    return re.sub(r"[\W_]", "", text).casefold()
