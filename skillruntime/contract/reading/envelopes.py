"""Take calls out of the forms in which providers send them: ``{"name": ...,
"arguments": {...}}`` and its relatives.

Models repeat the form that their API uses around the arguments: OpenAI's
``tool_calls``, Gemini's ``functionCall``, Anthropic's ``tool_use``, the ``tool_uses``
of parallel calls. Such a form is a call and never its arguments, unless the schema
declares both of its keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from skillruntime.contract.reading.arguments import several_calls, wrapped
from skillruntime.contract.reading.tool_names import (
    ARGUMENT_KEYS,
    NAME_KEYS,
    is_name_of,
)
from skillruntime.errors import SkillInputError

_CALL_KEYS = frozenset(
    {
        "function",
        "functionCall",
        "function_call",
        "toolCall",
        "tool_call",
        "toolUse",
        "tool_use",
    }
)
_CALL_LIST_KEYS = frozenset(
    {"tool_calls", "toolCalls", "tool_uses", "function_calls", "functionCalls"}
)
ENVELOPE_KEYS = NAME_KEYS | _CALL_KEYS | _CALL_LIST_KEYS | {"jsonrpc"}
_IDENTIFIER = re.compile(r"[\w.:/-]{1,120}")
_KINDS = frozenset(
    {
        "function",
        "function_call",
        "tool_use",
        "tool_call",
        "toolUse",
        "toolCall",
        "object",
    }
)


class Call(NamedTuple):
    """One call: its tool's name, its arguments, the keys that make it a call, all its
    keys, and what was sent.
    """

    name: str
    arguments: Any
    form: Collection[str]
    keys: Collection[str]
    sent: dict[str, Any]


def calls_in(value: Any, declared: Collection[str] = ()) -> list[Call]:
    """Return the calls that *value* holds in a provider's form; none if it does not
    have such a form, or holds more than that.

    *declared* parameters that stand beside the arguments, and not in them, are members
    of the arguments that were written a level too high.

    >>> calls = calls_in({"functionCall": {"name": "f", "args": {"n": 1}}})
    >>> [(call.name, call.arguments) for call in calls]
    [('f', {'n': 1})]
    >>> calls_in({"name": "Bob", "age": 5})
    []
    >>> calls_in({"name": "f", "arguments": {}, "city": "Paris"})
    []
    >>> calls_in({"name": "f", "arguments": {}, "city": "Paris"}, {"city"})[0].arguments
    {'city': 'Paris'}
    """
    if isinstance(value, list):
        return _calls_in_list(value)
    if not isinstance(value, dict):
        return []
    list_keys = [key for key in value if key in _CALL_LIST_KEYS]
    if len(list_keys) == 1:
        key = list_keys[0]
        if isinstance(value[key], list) and not _beside(value, key):
            return [
                call._replace(form=list_keys, keys=value.keys())
                for call in _calls_in_list(value[key])
            ]
    call_keys = [
        key for key in value if key in _CALL_KEYS and isinstance(value[key], dict)
    ]
    if len(call_keys) == 1 and not _beside(value, call_keys[0]):
        call = _plain_call(value[call_keys[0]], ())
        if call is None:
            return []
        return [Call(call.name, call.arguments, call_keys, value.keys(), value)]
    call = _plain_call(value, declared)
    return [call] if call else []


def _calls_in_list(values: list[Any]) -> list[Call]:
    """Return the calls in *values*; none if one of them is not a call."""
    calls: list[Call] = []
    for value in values:
        calls_of_value = calls_in(value)
        if not calls_of_value:
            return []
        calls += calls_of_value
    return calls


def _plain_call(value: dict[str, Any], declared: Collection[str]) -> Call | None:
    name_keys: Collection[str] = NAME_KEYS
    if "jsonrpc" in value:
        name_keys = NAME_KEYS | {"method"}  # ollama/ollama#5976
    # Exactly one of each: with two names or two inputs the form is another one.
    names = [key for key in value if key in name_keys and isinstance(value[key], str)]
    inputs = [key for key in value if key in ARGUMENT_KEYS]
    if len(inputs) != 1 or len(names) > 1:
        return None
    name = value[names[0]] if names else ""
    if names and not _IDENTIFIER.fullmatch(name):
        return None
    arguments = wrapped(value[inputs[0]])
    if not isinstance(arguments, dict):
        return None
    spilled = _beside(value, *names, inputs[0])
    if not all(key in declared and key not in arguments for key in spilled):
        return None
    # Without a name only parameters beside `arguments` show that it is a call
    # (NousResearch/hermes-agent#100979).
    if not names and not (spilled and inputs == ["arguments"]):
        return None
    arguments = {**arguments, **{key: value[key] for key in spilled}}
    return Call(name, arguments, (*names, inputs[0]), value.keys() - spilled, value)


def opened(
    value: Any,
    tool: str,
    declared: frozenset[str],
    fits: Callable[[Any], bool],
    *,
    is_text: bool,
) -> Call | None:
    """Return the one call that *value* holds in a provider's form; ``None`` where
    *value* is the arguments themselves.

    *tool* is the contract's own name, or empty, *declared* are its parameters. A
    mapping (not *is_text*) that *fits* is the arguments, whatever its form.

    Raises:
        SkillInputError: there are several calls, or the call is one of another tool.
    """
    calls = calls_in(value, declared) or _under_its_name(value, tool)
    if not calls:
        return None
    call = calls[0]
    if declared.issuperset(call.form):
        return None
    is_named_in_text = is_text and bool(call.name)
    if not is_named_in_text and fits(value):
        return None
    if len(calls) > 1:
        raise several_calls(len(calls))
    if "properties" not in declared and _is_definition(call.arguments):
        raise SkillInputError(
            f"This is the definition of {call.name!r}, and no call of it",
            suggested_action="Send the parameters with their values, as one JSON "
            "object",
        )
    # A key of the form that is also a parameter may be meant as that: only the tool's
    # own name decides.
    parameters = declared.intersection(call.keys)
    if parameters and not tool and not fits(value):
        # The tool's name is not known either: the arguments must have them too.
        if not parameters <= call.arguments.keys():
            return None
        return call
    if parameters:
        is_of_tool = bool(tool) and is_name_of(call.name, tool)
        if not is_of_tool or not fits(call.arguments):
            raise SkillInputError(
                f"The arguments may be those of a call of {call.name!r}, or the "
                "parameters themselves",
                suggested_action="Send the parameters alone, as one JSON object",
            )
    check_tool(call.name, tool)
    return call


def _is_definition(arguments: dict[str, Any]) -> bool:
    """Return whether *arguments* are the schema by which the prompt declares the tool:
    ``{"type": "object", "properties": {...}}``.
    """
    return "properties" in arguments and arguments.get("type") == "object"


def _under_its_name(value: Any, tool: str) -> list[Call]:
    """Return the call that *value* is, if it is written as ``{"get_weather":
    {...}}``.
    """
    if not isinstance(value, dict) or len(value) != 1 or not tool:
        return []
    [(name, arguments)] = value.items()
    if not isinstance(arguments, dict) or not is_name_of(name, tool):
        return []
    return [Call(name, arguments, (name,), (name,), value)]


def check_tool(name: str, tool: str) -> None:
    """Refuse arguments that were sent as those of the tool *name*, if *tool* is another
    one.
    """
    if name and tool and not is_name_of(name, tool):
        raise SkillInputError(
            f"The arguments are those of a call of {name!r}, and this is {tool!r}",
            suggested_action=f"Call {name!r}, or send the arguments of {tool!r}",
        )


def _beside(value: dict[str, Any], *form: str) -> set[str]:
    """Return the keys of *value*, except *form*, that say more than the number of the
    call or its kind.
    """
    beside: set[str] = set()
    for key, member in value.items():
        if key not in form and not _is_mark(key, member):
            beside.add(key)
    return beside


def _is_mark(key: str, member: Any) -> bool:
    """Return whether *member* under *key* says no more than the number of the call or
    its kind.
    """
    match key:
        case "id" | "call_id" | "callId" | "tool_call_id" | "tool_use_id" | "toolUseId":
            return member is None or isinstance(member, str | int)
        case "index":
            return isinstance(member, int)
        case "type":
            return isinstance(member, str) and member in _KINDS
        case "jsonrpc":
            return bool(member == "2.0")
        case "role":
            return member in ("assistant", "model")
        # OpenAI's message has both beside its calls; words in them would be lost, so
        # they must be empty.
        case "content" | "refusal":
            return member in (None, "", [])
    return False
