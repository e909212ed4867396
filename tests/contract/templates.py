"""How open models write a call, as functions from a tool's name and its arguments to
the text; see `laws.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

__all__ = ["FORMS"]


def _plain(value: Any) -> str:
    """Return *value* as the templates write it: a string as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _as_jinja(value: Any) -> str:
    """Return *value* as Qwen3-Coder's template writes it: containers as JSON, other
    values as Python does.
    """
    return (
        json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict | list)
        else str(value)
    )


def qwen3_coder(name: str, arguments: dict[str, Any]) -> str:
    parameters = "".join(
        f"<parameter={key}>\n{_as_jinja(value)}\n</parameter>\n"
        for key, value in arguments.items()
    )
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


def glm(name: str, arguments: dict[str, Any]) -> str:
    parameters = "".join(
        f"<arg_key>{key}</arg_key>\n<arg_value>{_plain(value)}</arg_value>\n"
        for key, value in arguments.items()
    )
    return f"<tool_call>{name}\n{parameters}</tool_call>"


def _invoke(name: str, arguments: dict[str, Any], prefix: str = "") -> str:
    parameters = "".join(
        f'<{prefix}parameter name="{key}">{_plain(value)}</{prefix}parameter>\n'
        for key, value in arguments.items()
    )
    return f'<{prefix}invoke name="{name}">\n{parameters}</{prefix}invoke>'


def minimax(name: str, arguments: dict[str, Any]) -> str:
    return f"<minimax:tool_call>\n{_invoke(name, arguments)}\n</minimax:tool_call>"


def claude(name: str, arguments: dict[str, Any]) -> str:
    return f"<function_calls>\n{_invoke(name, arguments)}\n</function_calls>"


def kimi(name: str, arguments: dict[str, Any]) -> str:
    call = (
        f"<|tool_call_begin|>functions.{name}:0"
        f"<|tool_call_argument_begin|>{json.dumps(arguments)}<|tool_call_end|>"
    )
    return f"<|tool_calls_section_begin|>{call}<|tool_calls_section_end|>"


def deepseek(name: str, arguments: dict[str, Any]) -> str:
    call = (
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n"
        "```json\n"
        f"{json.dumps(arguments)}\n"
        "```<｜tool▁call▁end｜>"
    )
    return f"<｜tool▁calls▁begin｜>{call}<｜tool▁calls▁end｜><｜end▁of▁sentence｜>"


def deepseek_v3_2(name: str, arguments: dict[str, Any]) -> str:
    mark = "｜DSML｜"
    parameters = ""
    for key, value in arguments.items():
        is_string = "true" if isinstance(value, str) else "false"
        parameters += (
            f'<{mark}parameter name="{key}" '
            f'string="{is_string}">{_plain(value)}</{mark}parameter>\n'
        )
    return (
        f"<{mark}function_calls>\n"
        f'<{mark}invoke name="{name}">\n'
        f"{parameters}</{mark}invoke>\n"
        f"</{mark}function_calls>"
    )


def mistral(name: str, arguments: dict[str, Any]) -> str:
    return f"[TOOL_CALLS]{name}[ARGS]{json.dumps(arguments)}</s>"


def hermes(name: str, arguments: dict[str, Any]) -> str:
    return (
        "<tool_call>\n"
        f"{json.dumps({'name': name, 'arguments': arguments})}\n"
        "</tool_call>"
    )


def harmony(name: str, arguments: dict[str, Any]) -> str:
    return (
        "<|channel|>analysis<|message|>I need "
        f"{{it}}.<|end|><|start|>assistant<|channel|>commentary to=functions.{name} "
        f"<|constrain|>json<|message|>{json.dumps(arguments)}<|call|>"
    )


def _gemma(value: Any, mark: str) -> str:
    """Return *value* as Gemma writes it: a string between tokens, names without
    quotes.
    """
    match value:
        case str():
            return f"{mark}{value}{mark}"
        case dict():
            return (
                "{"
                + ",".join(f"{key}:{_gemma(each, mark)}" for key, each in value.items())
                + "}"
            )
        case list():
            return "[" + ",".join(_gemma(each, mark) for each in value) + "]"
    return json.dumps(value)


def gemma4(name: str, arguments: dict[str, Any]) -> str:
    mark = '<|"|>'
    return f"<|tool_call>call:{name}{_gemma(arguments, mark)}<tool_call|>"


def function_gemma(name: str, arguments: dict[str, Any]) -> str:
    return f"<start_function_call>call:{name}{_gemma(arguments, '<escape>')}<end_function_call>"


def python(name: str, arguments: dict[str, Any]) -> str:
    return (
        f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
    )


FORMS: dict[str, Callable[[str, dict[str, Any]], str]] = {
    "Qwen3-Coder": qwen3_coder,
    "GLM": glm,
    "MiniMax": minimax,
    "Claude": claude,
    "Kimi": kimi,
    "DeepSeek": deepseek,
    "DeepSeek V3.2": deepseek_v3_2,
    "Mistral": mistral,
    "Hermes": hermes,
    "harmony": harmony,
    "Python": python,
    "Gemma 4": gemma4,
    "FunctionGemma": function_gemma,
}
