"""The keys of an object against the properties its schema declares: renames, wrappers, schema echoes."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping
from typing import Any

from skillruntime.contract.arguments import parse_container
from skillruntime.contract.coercion.scalars import fold_name

__all__ = [
    *("alike", "is_call_wrapper", "is_entry", "is_schema_echo", "is_wrapper", "literal_names", "may_wrap", "renames"),
    *("spellings", "wrapped"),
]

MAX_COMPARED = 40
# As difflib's ratio: `limt` to `limit` is 0.89, `note` to `limit` 0.22; at 0.6 `count` would be close to `amount`.
MISSPELT = 0.75
_CALL = frozenset(
    {
        *("arguments", "argument", "args", "arg", "kwargs", "kwarg", "parameters", "parameter", "params", "param"),
        *("input", "inputs", "toolinput", "actioninput"),
    }
)
_SCHEMA = frozenset({"properties", "property", "parameters"})
# The names that wrap all arguments, folded: of a call, of a schema, of a message.
_WRAPPERS = _CALL | _SCHEMA | {"data", "body", "payload", "request", "json", "object", "function", "toolcall"}
# The keys under which providers and frameworks write the name of the tool beside its arguments.
_NAMES = frozenset({"name", "tool", "tool_name", "function", "function_name", "action", "id", "call_id"})
# The values of `type` beside a call: OpenAI's `function`, Anthropic's `tool_use`, a schema's `object`.
_KINDS = frozenset({"object", "function", "function_call", "tool_use", "tool_call"})
_IDENTIFIER = re.compile(r"[\w.:/-]{1,80}")
_TYPES = frozenset(
    {
        *("string", "integer", "number", "boolean", "array", "object", "null"),
        *("str", "int", "float", "bool", "list", "dict"),
    }
)


def renames(unknown: Iterable[str], declared: Iterable[str], present: Container[str]) -> dict[str, str]:
    """Return which unknown key means which absent property: the same but for case and separators, and unique.

    >>> renames(["foodType", "type_"], ["food_type", "type", "size"], {"foodType", "type_"})
    {'foodType': 'food_type', 'type_': 'type'}
    >>> renames(["a_"], ["a", "A"], {"a", "a_"})
    {}
    """
    targets: dict[str, list[str]] = {}
    for name in declared:
        targets.setdefault(fold_name(name), []).append(name)
    sources: dict[str, list[str]] = {}
    for name in unknown:
        sources.setdefault(fold_name(name), []).append(name)
    found: dict[str, str] = {}
    for folded, names in sources.items():
        meant = targets.get(folded, [])
        if folded and len(names) == len(meant) == 1 and meant[0] not in present:
            found[names[0]] = meant[0]
    return found


def alike(unknown: Iterable[str], declared: Iterable[str]) -> set[str]:
    """Return the unknown keys that are a declared name but for case and separators, whether or not it is unique.

    >>> alike(["LIMIT", "note"], ["Limit", "limit"])
    {'LIMIT'}
    """
    folded = set(map(fold_name, declared))
    return {name for name in unknown if fold_name(name) in folded}


def spellings(name: str) -> set[str]:
    """Return *name* as other languages and styles would write it, to find out whether a pattern may be meant.

    >>> sorted(spellings("X-rate"))
    ['X-RATE', 'X_rate', 'Xrate', 'x-rate', 'x_rate', 'xrate']
    """
    text = name.strip("_- ")
    forms = {text, text.replace("-", "_"), text.replace("_", "-"), re.sub("[_ -]", "", text), _snake(text)}
    return ({form.casefold() for form in forms} | forms | {text.upper()}) - {name, ""} if text else set()


def literal_names(pattern: str) -> list[str]:
    """Return the names that *pattern* lists, if it is one that only lists names: ``^(offset|page)$``.

    >>> literal_names("^(offset|page)$"), literal_names("^limit$"), literal_names("^x_")
    (['offset', 'page'], ['limit'], [])
    """
    match = _LISTED.fullmatch(pattern)
    return match[1].strip("()").removeprefix("?:").split("|") if match else []


_LISTED = re.compile(r"\^(\w+|\((?:\?:)?\w[\w|-]*\))\$")


def _snake(text: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).casefold()


def is_close(name: str, other: str) -> bool:
    """Whether one name may be a misspelling of the other.

    >>> is_close("limt", "limit"), is_close("Limit", "limit"), is_close("note", "limit")
    (True, True, False)
    >>> is_close("retry", "retries"), is_close("tags", "tag")
    (True, True)
    """
    one, two = fold_name(name), fold_name(other)
    if one == two or _singular(one) == _singular(two):
        return True
    # The ratio is twice the common letters over all letters, so lengths alone can rule it out, at no cost.
    if abs(len(name) - len(other)) > max(len(name), len(other)) // 2:
        return False  # a ratio of 0.75 needs the shorter to be three fifths of the longer
    import difflib  # only for keys that do not fit

    pair = difflib.SequenceMatcher(None, name[:MAX_COMPARED].casefold(), other[:MAX_COMPARED].casefold())
    return pair.quick_ratio() >= MISSPELT and pair.ratio() >= MISSPELT


def _singular(name: str) -> str:
    # English plurals alone: the names of parameters are English nearly everywhere.
    for ending, singular in (("ies", "y"), ("es", ""), ("s", "")):
        if len(name) > len(ending) + 2 and name.endswith(ending):
            return name.removesuffix(ending) + singular
    return name


def may_wrap(name: str) -> bool:
    """Whether *name* is one under which models put all arguments: a wrapper's, ``type``, or a blank one."""
    return _plain(name) in _WRAPPERS or name == "type" or not name.strip()


def is_wrapper(value: dict[str, Any], name: str, declared: Collection[str]) -> bool:
    """Whether all that *value* says is under *name*, beside nothing but what names the call or the schema.

    A key that is declared says something, unless what is wrapped has one of that name itself.

    >>> is_wrapper({"name": "get_weather", "arguments": {"city": "Paris"}}, "arguments", {"city"})
    True
    >>> is_wrapper({"name": "Bob", "arguments": {"age": 5}}, "arguments", {"name", "age"})
    False
    """
    folded = _plain(name)
    # Only names that wrap arguments somewhere: a word such as `options` may be the model's own parameter.
    if folded not in _WRAPPERS:
        return False
    if not all(_says_nothing(key, beside, folded) for key, beside in value.items() if key != name):
        return False
    inside = wrapped(value[name])
    held = inside if isinstance(inside, dict) else {}
    said = held.keys() | _wrapped_keys(held)
    if any(key in declared and key not in said for key in value):
        return False
    # `argument` where `arguments` is declared is that key, misspelt.
    if any(_singular(fold_name(each)) == _singular(folded) and each not in said for each in declared):
        return False
    return not (folded in _SCHEMA and any(map(_is_schema, held.values())))


def _wrapped_keys(value: dict[str, Any]) -> set[str]:
    """Return the keys of what a call inside *value* has for arguments: ``{"name": ..., "arguments": {...}}``."""
    calls = [wrapped(inside) for name, inside in value.items() if is_call_wrapper(name)]
    return {key for arguments in calls if isinstance(arguments, dict) for key in arguments}


def wrapped(inside: Any) -> Any:
    """Return the object that *inside*, found under a wrapper's name, is or writes; what else it is comes back as it is.

    >>> wrapped('{"city": "Paris"}'), wrapped({"city": "Paris"}), wrapped("Paris")
    ({'city': 'Paris'}, {'city': 'Paris'}, 'Paris')
    """
    parsed = parse_container(inside) if isinstance(inside, str) else None
    return parsed.value if parsed else inside


def is_call_wrapper(name: str) -> bool:
    """Whether *name* is what the arguments of a call are wrapped in."""
    return _plain(name) in _CALL


def _plain(name: str) -> str:
    """Return *name* without case and separators: less than `fold_name` does, and quicker."""
    return name.replace("_", "").replace("-", "").replace(" ", "").casefold()


def _says_nothing(key: str, beside: Any, wrapper: str) -> bool:
    """Whether the member *key* of a wrapper object says nothing but the name of the call, or the form of a schema."""
    if key in _NAMES:
        return wrapper in _CALL and isinstance(beside, str) and _IDENTIFIER.fullmatch(beside) is not None
    match key:
        case "type":
            return isinstance(beside, str) and beside in _KINDS
        case "title" | "description" | "$schema":
            return wrapper in _SCHEMA and isinstance(beside, str)
        case "required" | "additionalProperties":
            return wrapper in _SCHEMA and isinstance(beside, list | bool)
    return _plain(key) in _WRAPPERS and beside in ("", None, {}, [])


def _is_schema(value: Any) -> bool:
    """Whether *value* describes a value and does not hold one: ``{"type": "string"}``."""
    return isinstance(value, dict) and "value" not in value and _names_type(value.get("type"))


def _names_type(value: Any) -> bool:
    return isinstance(value, str) and value in _TYPES


def is_schema_echo(value: dict[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether *value* repeats the form of its *schema* around one value, and says nothing else.

    >>> is_schema_echo({"type": "string", "value": "Paris"}, {}), is_schema_echo({"value": "Paris"}, {})
    (True, True)
    >>> is_schema_echo({"type": "USD", "value": 5}, {}), is_schema_echo({"value": 5, "title": "Dr"}, {})
    (False, False)
    >>> distance = {"type": "number", "description": "How far"}
    >>> [is_schema_echo({"type": "number", "value": 5, "description": text}, distance) for text in ("How far", "miles")]
    [True, False]
    """
    if "value" not in value or not (len(value) == 1 or _names_type(value.get("type"))):
        return False
    return all(key in ("type", "value") or (key in schema and schema[key] == said) for key, said in value.items())


def is_entry(value: Any) -> bool:
    """Whether *value* is one entry of a map, written as an object: ``{"key": "a", "value": 1}``."""
    if not isinstance(value, dict) or len(value) != 2:
        return False
    keys = {str(key).casefold() for key in value}
    return bool(keys & _ENTRY_KEYS) and bool(keys & _ENTRY_VALUES)


# How a map looks as a list of entries, in Java, XML and OpenAPI: a list of one may be a map of one, or its entry.
_ENTRY_KEYS = frozenset({"key", "k", "name", "field", "id", "property"})
_ENTRY_VALUES = frozenset({"value", "v", "val"})
