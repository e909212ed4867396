"""Extract calls from the forms in which providers send them: ``{"name": ...,
"arguments": {...}}`` and its relatives.

Models repeat the form that their API puts around the arguments: OpenAI's
``tool_calls``, Gemini's ``functionCall``, Anthropic's ``tool_use``, the ``tool_uses``
of parallel calls. Such a form is a call and never the arguments themselves, unless the
schema declares both of its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from skillruntime.contract.reading.arguments import several_calls, wrapped
from skillruntime.contract.reading.tool_names import (
    ARGUMENT_KEYS,
    NAME_KEYS,
    is_name_of,
)
from skillruntime.errors import SkillInputError
from skillruntime.lazy_patterns import lazy_pattern

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
_IDENTIFIER = lazy_pattern(r"[\w.:/-]{1,120}")
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
    keys, and the sent object.
    """

    name: str
    arguments: Any
    form: Collection[str]
    keys: Collection[str]
    sent: dict[str, Any]


def calls_in(value: Any, declared: Collection[str] = ()) -> list[Call]:
    """Return the calls in *value* if it has a provider's form; return an empty list if
    it does not, or if it has additional keys.

    *declared* parameters beside the arguments are read as members of the arguments that
    were written one level too high.

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
    """Return the calls in *values*, or an empty list if one of them is not a call."""
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
    # At most one name and exactly one input; with more, it is a different form.
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
    # Without a name, only parameters beside `arguments` show that *value* is a call
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
    is_envelope: bool = False,
) -> Call | None:
    """Return the one call in *value* if it has a provider's form; return ``None`` if
    *value* is the arguments themselves.

    With *is_envelope*, *value* follows the mark of an envelope: if it has exactly the
    keys of the form, it is an envelope even if the tool declares these keys. The call's
    ID may be beside them, as Mistral's templates write it.

    *tool* is the contract's own name or empty, *declared* are its parameters. A mapping
    (not *is_text*) that *fits* the schema is the arguments, regardless of its form.

    Raises:
        SkillInputError: there are several calls, or the call is for another tool, or an
            envelope has no arguments.
    """
    if is_envelope:
        call = _envelope(value, tool, declared)
        if call is not None:
            return call
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
    # A key of the form may be meant as the parameter of the same name; only the tool's
    # own name decides.
    parameters = declared.intersection(call.keys)
    if parameters and not tool and not fits(value):
        # Without the tool's name, the arguments must have these parameters too.
        if not parameters <= call.arguments.keys():
            return None
        return call
    is_of_tool = bool(tool) and is_name_of(call.name, tool)
    if parameters and not (is_of_tool and fits(call.arguments)):
        raise SkillInputError(
            f"The arguments may be those of a call of {call.name!r}, or the "
            "parameters themselves",
            suggested_action="Send the parameters alone, as one JSON object",
        )
    check_tool(call.name, tool)
    return call


def looks_like_call(call: Call, tool: str, declared: frozenset[str]) -> bool:
    """Return whether *call*, which is also valid as arguments of *tool*, may be meant
    as a call: a key of its name or wrapper is not *declared*, or the key of its
    arguments is not and the call's name is the tool's own.
    """
    undeclared = frozenset(call.form) - declared
    if not undeclared.isdisjoint(ENVELOPE_KEYS):
        return True
    return bool(undeclared and tool) and is_name_of(call.name, tool)


def _envelope(value: Any, tool: str, declared: frozenset[str]) -> Call | None:
    """Return the call in *value*, which follows the mark of an envelope; return
    ``None`` if it does not have exactly the keys of the form, or has a *declared*
    parameter beside them.

    Raises:
        SkillInputError: the call is for another tool, or has no arguments.
    """
    calls = calls_in(value)
    if not calls:
        _check_has_arguments(value, tool, declared)
        return None
    call = calls[0]
    if len(calls) > 1 or not call.name:
        return None
    if not declared.isdisjoint(set(value).difference(call.form)):
        return None
    check_tool(call.name, tool)
    return call


def _check_has_arguments(value: Any, tool: str, declared: frozenset[str]) -> None:
    """Refuse *value*, which follows the mark of an envelope, if it names a tool and has
    no object of arguments; an open schema would accept it unchanged.

    If the schema declares all keys of *value*, only a call by the name of *tool* is
    refused.

    Raises:
        SkillInputError: *value* is such an envelope.
    """
    if not isinstance(value, dict):
        return
    names = [key for key in value if key in NAME_KEYS and isinstance(value[key], str)]
    inputs = [key for key in value if key in ARGUMENT_KEYS]
    if len(names) != 1 or len(inputs) > 1 or _beside(value, *names, *inputs):
        return
    name = value[names[0]]
    is_own = bool(tool) and is_name_of(name, tool)
    if not is_own and (declared.issuperset(value) or not _IDENTIFIER.fullmatch(name)):
        return
    check_tool(name, tool)
    raise SkillInputError(
        f"The call of {name!r} has no object of arguments",
        suggested_action='Send the parameters as one JSON object under "arguments"',
    )


def _is_definition(arguments: dict[str, Any]) -> bool:
    """Return whether *arguments* are the tool's schema, copied from the prompt:
    ``{"type": "object", "properties": {...}}``.
    """
    return "properties" in arguments and arguments.get("type") == "object"


def _under_its_name(value: Any, tool: str) -> list[Call]:
    """Return the call in a *value* such as ``{"get_weather": {...}}``, as a list of
    one, or an empty list.
    """
    if not isinstance(value, dict) or len(value) != 1 or not tool:
        return []
    [(name, arguments)] = value.items()
    if not isinstance(arguments, dict) or not is_name_of(name, tool):
        return []
    return [Call(name, arguments, (name,), (name,), value)]


def check_tool(name: str, tool: str) -> None:
    """Refuse arguments that were sent for the tool *name*, if it is not *tool*."""
    if name and tool and not is_name_of(name, tool):
        raise SkillInputError(
            f"The arguments are those of a call of {name!r}, and this is {tool!r}",
            suggested_action=f"Call {name!r}, or send the arguments of {tool!r}",
        )


def _beside(value: dict[str, Any], *form: str) -> set[str]:
    """Return the keys of *value*, except *form*, that hold more than the call's ID or
    kind.
    """
    beside: set[str] = set()
    for key, member in value.items():
        if key not in form and not _is_mark(key, member):
            beside.add(key)
    return beside


def _is_mark(key: str, member: Any) -> bool:
    """Return whether *member* under *key* is only the call's ID, kind or role."""
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
        # OpenAI's message has both keys beside its calls. They must be empty, because
        # their text would be lost.
        case "content" | "refusal":
            return member in (None, "", [])
    return False
