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
        *("arguments", "parameters", "args", "input", "params", "kwargs"),
        *("tool_input", "toolInput", "action_input", "tool_args", "tool_arguments"),
    }
)


def is_name_of(name: str, tool: str) -> bool:
    """Whether a model that writes *name* means *tool*: the style of writing does not
    matter, nor a missing prefix.

    Where both have a prefix it must be the same.

    >>> is_name_of("functions.get_weather:0", "get-weather"), is_name_of("get_news", "get_weather")
    (True, False)
    >>> is_name_of("extract", "pdf-processing/extract"), is_name_of("docx/extract", "pdf/extract")
    (True, False)
    """
    # Kimi numbers its calls: `functions.get_weather:0`; harmony and Gemini's Python
    # have a namespace for all tools.
    name = _NAMESPACE.sub("", re.sub(r":\d+$", "", name))
    one, two = _PREFIX.split(name), _PREFIX.split(tool)
    if len(one) > 1 and len(two) > 1:
        return folded(name) == folded(tool)
    return folded(name) == folded(tool) or folded(one[-1]) == folded(two[-1])


_NAMESPACE = re.compile(r"^(?:functions|default_api)\.")
_PREFIX = re.compile(r"[./:]|__")


def folded(text: str) -> str:
    """Return *text* without case and separators."""
    return re.sub(r"[\W_]", "", text).casefold()
