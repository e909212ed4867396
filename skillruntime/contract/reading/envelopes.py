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

from skillruntime.contract.reading.arguments import several_calls
from skillruntime.contract.reading.tool_names import (
    ARGUMENT_KEYS,
    NAME_KEYS,
    is_name_of,
)
from skillruntime.contract.repairs.keys import wrapped
from skillruntime.errors import SkillInputError

_ONE = frozenset(
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
_SEVERAL = frozenset(
    {"tool_calls", "toolCalls", "tool_uses", "function_calls", "functionCalls"}
)
ENVELOPE_KEYS = NAME_KEYS | _ONE | _SEVERAL | {"jsonrpc"}
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
    """Return the calls that *value* is the provider's form of; none if it is not such a
    form, or says more than that.

    *declared* parameters beside the arguments, which they lack, are members of them
    that were written a level too high.

    >>> [(call.name, call.arguments) for call in calls_in({"functionCall": {"name": "f", "args": {"n": 1}}})]
    [('f', {'n': 1})]
    >>> calls_in({"name": "Bob", "age": 5}), calls_in({"name": "f", "arguments": {}, "city": "Paris"})
    ([], [])
    >>> calls_in({"name": "f", "arguments": {}, "city": "Paris"}, {"city"})[0].arguments
    {'city': 'Paris'}
    """
    if isinstance(value, list):
        found = [calls_in(each) for each in value]
        return [call for calls in found for call in calls] if all(found) else []
    if not isinstance(value, dict):
        return []
    several = [key for key in value if key in _SEVERAL]
    if (
        len(several) == 1
        and isinstance(value[several[0]], list)
        and not _beside(value, several[0])
    ):
        return [
            Call(call.name, call.arguments, several, value.keys(), call.sent)
            for call in calls_in(value[several[0]])
        ]
    one = [key for key in value if key in _ONE and isinstance(value[key], dict)]
    if len(one) == 1 and not _beside(value, one[0]):
        inside = _plain_call(value[one[0]], ())
        return (
            [Call(inside.name, inside.arguments, one, value.keys(), value)]
            if inside
            else []
        )
    call = _plain_call(value, declared)
    return [call] if call else []


def _plain_call(value: dict[str, Any], declared: Collection[str]) -> Call | None:
    # Exactly one of each: with two names or two inputs the form is another one.
    name_keys = (
        NAME_KEYS | {"method"} if "jsonrpc" in value else NAME_KEYS
    )  # ollama/ollama#5976
    names = [key for key in value if key in name_keys and isinstance(value[key], str)]
    inputs = [key for key in value if key in ARGUMENT_KEYS]
    if (
        len(inputs) != 1
        or len(names) > 1
        or not all(_IDENTIFIER.fullmatch(value[key]) for key in names)
    ):
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
    name = value[names[0]] if names else ""
    return Call(name, arguments, (*names, inputs[0]), value.keys() - spilled, value)


def opened(
    value: Any,
    tool: str,
    declared: frozenset[str],
    fits: Callable[[Any], bool],
    *,
    is_text: bool,
) -> Call | None:
    """Return the one call that *value* is the form of; ``None`` where it is the
    arguments themselves.

    *tool* is the contract's own name, or empty, *declared* are its parameters. A
    mapping (not *is_text*) that *fits* is the arguments, whatever its form.

    Raises:
        SkillInputError: there are several calls, or the call is one of another tool.
    """
    calls = calls_in(value, declared) or _under_its_name(value, tool)
    if (
        not calls
        or declared.issuperset(calls[0].form)
        or (fits(value) and not (is_text and calls[0].name))
    ):
        return None
    if len(calls) > 1:
        raise several_calls(len(calls))
    call = calls[0]
    # The tool as the prompt declares it: `{"name": "f", "parameters": {"type":
    # "object", "properties": {...}}}`.
    if (
        "properties" not in declared
        and "properties" in call.arguments
        and call.arguments.get("type") == "object"
    ):
        raise SkillInputError(
            f"This is the definition of {call.name!r}, and no call of it",
            suggested_action="Send the parameters with their values, as one JSON object",
        )
    # A key of the form that is a parameter may be meant as that: only the tool's own
    # name decides.
    parameters = declared.intersection(call.keys)
    if (
        parameters and not tool and not fits(value)
    ):  # nor can that name be known: the arguments must have them too
        return call if parameters <= call.arguments.keys() else None
    if parameters and not (
        tool and is_name_of(call.name, tool) and fits(call.arguments)
    ):
        raise SkillInputError(
            f"The arguments may be those of a call of {call.name!r}, or the "
            "parameters themselves",
            suggested_action="Send the parameters alone, as one JSON object",
        )
    check_tool(call.name, tool)
    return call


def _under_its_name(value: Any, tool: str) -> list[Call]:
    """Return the call that *value* is, if it is written as ``{"get_weather":
    {...}}``.
    """
    if not isinstance(value, dict) or len(value) != 1 or not tool:
        return []
    [(name, inside)] = value.items()
    is_call = isinstance(inside, dict) and is_name_of(name, tool)
    return [Call(name, inside, (name,), (name,), value)] if is_call else []


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
    """Return the keys of *value* but *form* that say more than the number of the call
    or its kind.
    """
    return {
        key
        for key, said in value.items()
        if key not in form and not _is_mark(key, said)
    }


def _is_mark(key: str, said: Any) -> bool:
    match key:
        case "id" | "call_id" | "callId" | "tool_call_id" | "tool_use_id" | "toolUseId":
            return said is None or isinstance(said, str | int)
        case "index":
            return isinstance(said, int)
        case "type":
            return isinstance(said, str) and said in _KINDS
        case "jsonrpc":
            return bool(said == "2.0")
        case "role":
            return said in ("assistant", "model")
        # OpenAI's message has both beside its calls; words in them would be lost, so
        # they must be empty.
        case "content" | "refusal":
            return said in (None, "", [])
    return False
