"""Take calls out of the forms in which providers send them: ``{"name": ..., "arguments": {...}}`` and its relatives.

Models repeat the form that their API uses around the arguments: OpenAI's ``tool_calls``, Gemini's ``functionCall``,
Anthropic's ``tool_use``, the ``tool_uses`` of parallel calls. Only what says nothing beside the call is such a form.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from skillruntime.contract.arguments import CALL_MARK, fail
from skillruntime.contract.coercion.keys import wrapped
from skillruntime.contract.lenient_json import LenientParser
from skillruntime.contract.strict_json import UnreadableError

__all__ = ["Call", "calls_in", "is_name_of", "split_calls"]

# The key of the tool's name: OpenAI, Anthropic and Gemini write `name`, ReAct `action`, parallel calls
# `recipient_name`.
_NAMES = frozenset({"name", "tool", "tool_name", "toolName", "function", "function_name", "action", "recipient_name"})
# The key of the arguments: `arguments` (OpenAI), `input` (Anthropic), `args` (Gemini, LangChain), `action_input`
# (ReAct).
_ARGUMENTS = frozenset(
    {
        *("arguments", "parameters", "args", "input", "params", "kwargs"),
        *("tool_input", "toolInput", "action_input", "tool_args", "tool_arguments"),
    }
)
_ONE = frozenset({"function", "functionCall", "function_call", "toolCall", "tool_call", "toolUse", "tool_use"})
_SEVERAL = frozenset({"tool_calls", "toolCalls", "tool_uses", "function_calls", "functionCalls"})
_IDENTIFIER = re.compile(r"[\w.:/-]{1,120}")
_KINDS = frozenset({"function", "function_call", "tool_use", "tool_call", "toolUse", "toolCall", "object"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the name of its tool, the keys at the outermost level, its arguments, and the call as it was sent."""

    name: str
    keys: Collection[str]
    arguments: Any
    sent: dict[str, Any]


def calls_in(value: Any) -> list[Call]:
    """Return the calls that *value* is the provider's form of; none if it is not such a form, or says more than that.

    >>> [(call.name, call.arguments) for call in calls_in({"functionCall": {"name": "f", "args": {"n": 1}}})]
    [('f', {'n': 1})]
    >>> calls_in({"name": "Bob", "age": 5}), calls_in({"name": "f", "arguments": {}, "city": "Paris"})
    ([], [])
    """
    if isinstance(value, list):
        found = [calls_in(each) for each in value]
        return [call for calls in found for call in calls] if all(found) else []
    if not isinstance(value, dict):
        return []
    several = [key for key in value if key in _SEVERAL]
    if len(several) == 1 and isinstance(value[several[0]], list) and _says_nothing(value, several[0]):
        return [Call(call.name, value.keys(), call.arguments, call.sent) for call in calls_in(value[several[0]])]
    one = [key for key in value if key in _ONE and isinstance(value[key], dict)]
    if len(one) == 1 and _says_nothing(value, one[0]):
        inside = _plain_call(value[one[0]])
        return [Call(inside.name, value.keys(), inside.arguments, value)] if inside else []
    call = _plain_call(value)
    return [call] if call else []


def split_calls(text: str) -> list[dict[str, Any]]:
    """Return the objects that *text* writes one after the other, for a host that accepts several calls in one text.

    `Contract.accept` refuses such a text, because one of the calls would be lost; each object that is returned here can
    be given to it. What separates them may be commas, the brackets of an array, line ends and marks of tool calls; a
    provider's form of several calls, such as ``{"tool_calls": [...]}``, is taken apart too.

    >>> split_calls('[TOOL_CALLS] [{"name": "a", "arguments": {}}, {"name": "b", "arguments": {"n": 1}}]')
    [{'name': 'a', 'arguments': {}}, {'name': 'b', 'arguments': {'n': 1}}]
    >>> split_calls('{"city": "Paris"}\\n{"city": "Rome"}')
    [{'city': 'Paris'}, {'city': 'Rome'}]

    Raises:
        TruncatedInputError: the last object is cut off.
        SkillInputError: there is no object, or there is other text between two of them.
    """
    calls: list[dict[str, Any]] = []
    position, failure = 0, None
    try:
        while (start := text.find("{", position)) >= 0:
            between = CALL_MARK.sub("", text[position:start]).strip(" \t\r\n,;[`")
            if calls and between:
                raise UnreadableError("between two objects there is {}", between)
            parser = LenientParser(text, start)
            found = parser.object(0)
            calls += [call.sent for call in calls_in(found)] or [found]
            position = parser.position
        if not calls:
            raise UnreadableError("they are {}", text[:200])
    except UnreadableError as error:
        failure = error
    if failure is not None:  # outside the handler: the error would carry the parser's own, which quotes the text
        fail(failure, True)
    return calls


def _plain_call(value: dict[str, Any]) -> Call | None:
    # Exactly one of each: with two names or two inputs the form is another one.
    names = [key for key in value if key in _NAMES and isinstance(value[key], str)]
    inputs = [key for key in value if key in _ARGUMENTS]
    if len(names) != 1 or len(inputs) != 1 or not _says_nothing(value, names[0], inputs[0]):
        return None
    arguments = wrapped(value[inputs[0]])
    if not isinstance(arguments, dict) or not _IDENTIFIER.fullmatch(value[names[0]]):
        return None
    return Call(value[names[0]], value.keys(), arguments, value)


def _says_nothing(value: dict[str, Any], *besides: str) -> bool:
    """Whether all members of *value* but *besides* only number the call or name its kind."""
    return all(_is_mark(key, said) for key, said in value.items() if key not in besides)


def _is_mark(key: str, said: Any) -> bool:
    match key:
        case "id" | "call_id" | "callId" | "tool_call_id" | "tool_use_id" | "toolUseId":
            return said is None or isinstance(said, str | int)
        case "index":
            return isinstance(said, int)
        case "type":
            return isinstance(said, str) and said in _KINDS
        case "role":
            return said in ("assistant", "model")
        # OpenAI's message has both beside its calls; words in them would be lost, so they must be empty.
        case "content" | "refusal":
            return said in (None, "", [])
    return False


def is_name_of(name: str, tool: str) -> bool:
    """Whether a model that writes *name* means *tool*: prefixes of an API and the style of writing do not matter.

    >>> is_name_of("functions.get_weather:0", "get-weather"), is_name_of("get_news", "get_weather")
    (True, False)
    >>> is_name_of("pdf_processing_extract", "pdf-processing/extract"), is_name_of("extract", "pdf-processing/extract")
    (True, True)
    """
    # Kimi numbers its calls: `functions.get_weather:0`.
    name = re.sub(r":\d+$", "", name)
    return _letters(name) == _letters(tool) or _letters(_PARTS.split(name)[-1]) == _letters(_PARTS.split(tool)[-1])


_PARTS = re.compile(r"[./:]|__")


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text).casefold()
