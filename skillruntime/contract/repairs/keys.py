"""The keys of an object against the names that its schema declares: which name a key
means, and which keys wrap.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator
from functools import lru_cache
from typing import Any

from skillruntime.contract.reading.arguments import parse_container
from skillruntime.contract.repairs.scalars import unmarked, unquoted

MAX_LETTERS = 40
# The part of the letters that two names share: `limt` and `limit` 0.89, `note` and
# `limit` 0.22.
MISSPELT = 0.75
_CALL = frozenset(
    {
        *(
            "arguments",
            "argument",
            "args",
            "arg",
            "kwargs",
            "kwarg",
            "parameters",
            "parameter",
            "params",
            "param",
        ),
        *("input", "inputs", "toolinput", "actioninput"),
    }
)
_SCHEMA = frozenset({"properties", "property", "parameters"})
# The names that wrap all arguments, folded: of a call, of a schema, of a message.
_WRAPPERS = (
    _CALL
    | _SCHEMA
    | {"data", "body", "payload", "request", "json", "object", "function", "toolcall"}
)
# The values of `type` beside a call: OpenAI's `function`, Anthropic's `tool_use`, a
# schema's `object`.
_KINDS = frozenset({"object", "function", "function_call", "tool_use", "tool_call"})
TYPES = (
    *("string", "integer", "number", "boolean", "array", "object", "null"),
    *("str", "int", "float", "bool", "list", "dict"),
)
_BETWEEN_PARTS = re.compile(
    r"(?<=[^\W\d_])[\s_\-]+(?=\d)|(?<=[^\W_])[\s_\-]+(?=[^\W\d_])"
)
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\s_\-]+(?=\d)")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


@lru_cache(maxsize=16_384)
def fold_name(text: str) -> str:
    """Return *text* without what models get wrong in names: case, separators, marks
    around a key.

    The marks are one pair of quotes, one colon at the end, and characters without
    width; a sign is part of a name.

    >>> fold_name("maxArticles") == fold_name("max_articles") == fold_name('"Max-Articles_":')
    True
    >>> fold_name("1-2") == fold_name("12"), fold_name("-price") == fold_name("price")
    (False, False)
    """
    text = unmarked(text).removesuffix(":")
    text = (unquoted(text) or text).strip("_ \t\r\n")
    return _BETWEEN_PARTS.sub("", _BETWEEN_DIGITS.sub("-", text)).casefold()


def renames(
    unknown: Iterable[str], declared: Iterable[str], present: Container[str]
) -> dict[str, str]:
    """Return which unknown key means which absent property: the same but for case and
    separators, and unique.

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


def is_close(name: str, other: str) -> bool:
    """Whether *name* may be a misspelling of *other*, or has all its words, as
    ``args.limit`` has those of ``limit``.

    >>> is_close("limt", "limit"), is_close("Limit", "limit"), is_close("note", "limit")
    (True, True, False)
    >>> is_close("retry", "retries"), is_close("tags", "tag"), is_close("param_limit", "limit")
    (True, True, True)
    """
    one, two = fold_name(name), fold_name(other)
    if (
        one == two
        or _singular(one) == _singular(two)
        or f" {_words(other)} " in f" {_words(name)} "
    ):
        return True
    # Of the letters alone, in any order: at 2 µs a pair, a tenth of what comparing
    # their order takes.
    short, long = name[:MAX_LETTERS].casefold(), other[:MAX_LETTERS].casefold()
    return 2 * (_letters(short) & _letters(long)).total() >= MISSPELT * (
        len(short) + len(long)
    )


def close_names(
    keys: Iterable[str], names: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield each of *keys* with each of *names* that it may be a misspelling of."""
    return ((key, name) for key in keys for name in names if is_close(key, name))


@lru_cache(maxsize=16_384)
def _letters(text: str) -> Counter[str]:
    return Counter(text)


@lru_cache(maxsize=16_384)
def _words(name: str) -> str:
    return " ".join(_WORD.findall(name)).casefold()


def _singular(name: str) -> str:
    # English plurals alone: the names of parameters are English nearly everywhere.
    for ending, singular in (("ies", "y"), ("es", ""), ("s", "")):
        if len(name) > len(ending) + 2 and name.endswith(ending):
            return name.removesuffix(ending) + singular
    return name


def may_wrap(name: str) -> bool:
    """Whether *name* is one under which models put all arguments: a wrapper's,
    ``type``, or a blank one.
    """
    return _plain(name) in _WRAPPERS or name == "type" or is_blank(name)


def is_blank(name: str) -> bool:
    """Whether *name* says nothing: pydantic-ai#81 has ``_`` around all arguments."""
    return not name.strip("_ \t\r\n")


def is_wrapper(value: dict[str, Any], name: str, declared: Collection[str]) -> bool:
    """Whether all that *value* says is under *name*, beside nothing but the form of a
    schema.

    A key that is declared says something, unless what is wrapped has one of that name
    itself.

    >>> is_wrapper({"type": "object", "properties": {"city": "Paris"}}, "properties", {"city"})
    True
    >>> is_wrapper({"name": "Bob", "arguments": {"age": 5}}, "arguments", {"name", "age"})
    False
    """
    folded = _plain(name)
    # Only names that wrap arguments somewhere: a word such as `options` may be the
    # model's own parameter.
    if folded not in _WRAPPERS:
        return False
    if not all(
        _says_nothing(key, beside, folded)
        for key, beside in value.items()
        if key != name
    ):
        return False
    inside = wrapped(value[name])
    held = inside if isinstance(inside, dict) else {}
    if any(key in declared and key not in held for key in value):
        return False
    # `argument` where `arguments` is declared is that key, misspelt.
    if any(
        _singular(fold_name(each)) == _singular(folded) and each not in held
        for each in declared
    ):
        return False
    return not (folded in _SCHEMA and any(map(_is_schema, held.values())))


def wrapped(inside: Any) -> Any:
    """Return the object that *inside*, found under a wrapper's name, is or writes; what
    else it is comes back as it is.

    >>> wrapped('{"city": "Paris"}'), wrapped({"city": "Paris"}), wrapped("Paris")
    ({'city': 'Paris'}, {'city': 'Paris'}, 'Paris')
    """
    parsed = parse_container(inside) if isinstance(inside, str) else None
    return parsed.value if parsed else inside


def is_call_wrapper(name: str) -> bool:
    """Whether *name* is what the arguments of a call are wrapped in."""
    return _plain(name) in _CALL


@lru_cache(maxsize=16_384)
def _plain(name: str) -> str:
    """Return *name* without case and separators: less than `fold_name` does, and
    quicker.
    """
    return name.replace("_", "").replace("-", "").replace(" ", "").casefold()


def _says_nothing(key: str, beside: Any, wrapper: str) -> bool:
    """Whether the member *key* of a wrapper object says nothing but the form of a call
    or schema.
    """
    match key:
        case "type":
            return isinstance(beside, str) and beside in _KINDS
        case "title" | "description" | "$schema":
            return wrapper in _SCHEMA and isinstance(beside, str)
        case "required" | "additionalProperties":
            return wrapper in _SCHEMA and isinstance(beside, list | bool)
    return _plain(key) in _WRAPPERS and beside in ("", None, {}, [])


def _is_schema(value: Any) -> bool:
    """Whether *value* describes a value and does not hold one: ``{"type":
    "string"}``.
    """
    return (
        isinstance(value, dict) and "value" not in value and value.get("type") in TYPES
    )


def is_entry(value: Any) -> bool:
    """Whether *value* is one entry of a map, written as an object: ``{"key": "a",
    "value": 1}``.
    """
    if not isinstance(value, dict) or len(value) != 2:
        return False
    keys = {str(key).casefold() for key in value}
    return bool(keys & _ENTRY_KEYS) and bool(keys & _ENTRY_VALUES)


# How a map looks as a list of entries, in Java, XML and OpenAPI: a list of one may be a
# map of one, or its entry.
_ENTRY_KEYS = frozenset({"key", "k", "name", "field", "id", "property"})
_ENTRY_VALUES = frozenset({"value", "v", "val"})
