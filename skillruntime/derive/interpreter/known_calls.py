"""The few foreign calls whose result is known: on constants, without effect, and small."""

from __future__ import annotations

import inspect
import itertools
import logging
import posixpath
import re
import textwrap
from collections.abc import Callable
from typing import Any

from skillruntime.derive.interpreter.values import (
    UNKNOWN,
    ClassValue,
    EnumMember,
    InstanceValue,
    PathText,
    Symbol,
    is_constant,
    is_open,
    make_open,
)

__all__ = ["call_foreign", "call_method", "changes", "items_of"]

_log = logging.getLogger("skillruntime.derive")

MAX_ITEMS = 500
MAX_TEXT = 20_000

_PURE: dict[str, Callable[..., Any]] = {
    "builtins.list": list,
    "builtins.tuple": tuple,
    "builtins.set": lambda *a: list(dict.fromkeys(*a)) if a else [],
    "builtins.frozenset": lambda *a: list(dict.fromkeys(*a)) if a else [],
    "builtins.dict": dict,
    "builtins.sorted": sorted,
    "builtins.reversed": lambda a: list(reversed(a)),
    "builtins.len": len,
    "builtins.str": str,
    "builtins.int": int,
    "builtins.float": float,
    "builtins.bool": bool,
    "builtins.min": min,
    "builtins.max": max,
    "builtins.sum": sum,
    "builtins.abs": abs,
    "builtins.round": round,
    "builtins.repr": repr,
    "builtins.zip": lambda *a: list(zip(*a, strict=False)),
    "builtins.enumerate": lambda *a, **k: list(enumerate(*a, **k)),
    "builtins.any": any,
    "builtins.all": all,
    "builtins.range": range,
    "itertools.chain": lambda *a: list(itertools.chain(*a)),
    "itertools.chain.from_iterable": lambda a: list(itertools.chain.from_iterable(a)),
    "collections.OrderedDict": dict,
    "types.MappingProxyType": dict,
    "textwrap.dedent": textwrap.dedent,
    "inspect.cleandoc": inspect.cleandoc,
    "os.path.join": posixpath.join,
    "os.path.basename": posixpath.basename,
    "os.path.dirname": posixpath.dirname,
    "pathlib.Path": lambda *a: PathText(posixpath.join(*a) if a else "."),
    "pathlib.PurePath": lambda *a: PathText(posixpath.join(*a) if a else "."),
    "pathlib.PurePosixPath": lambda *a: PathText(posixpath.join(*a) if a else "."),
    "re.match": lambda *a: _match_of_nothing(re.match, *a),
    "re.fullmatch": lambda *a: _match_of_nothing(re.fullmatch, *a),
    "typing.cast": lambda kind, value: value,
}

_SHALLOW = frozenset(
    (
        *("builtins.list", "builtins.tuple", "builtins.zip", "builtins.enumerate", "builtins.reversed", "builtins.len"),
        *("builtins.dict", "itertools.chain"),
    )
)
_PLAIN = {kind: f"builtins.{kind.__name__}" for kind in (str, int, float, bool, tuple, list, dict)}
_TEXT_METHODS = frozenset(
    (
        *("capitalize", "casefold", "endswith", "format", "isalnum", "isalpha", "isdigit", "isidentifier", "islower"),
        *("isupper", "join", "lower", "lstrip", "partition", "rpartition"),
        *("removeprefix", "removesuffix", "replace", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip"),
        *("title", "upper"),
    )
)
_READING_METHODS: dict[type, frozenset[str]] = {
    dict: frozenset(("keys", "values", "items", "get", "copy")),
    list: frozenset(("index", "count", "copy")),
    tuple: frozenset(("index", "count")),
}
_SET_METHODS: dict[str, Callable[[list[Any], list[Any]], list[Any]]] = {
    "union": lambda left, right: list(dict.fromkeys([*left, *right])),
    "intersection": lambda left, right: [each for each in left if each in set(right)],
    "difference": lambda left, right: [each for each in left if each not in set(right)],
}
"""Methods of sets, which are represented by lists."""

_CHANGING_METHODS: dict[type, frozenset[str]] = {
    list: frozenset(
        ("append", "extend", "insert", "sort", "reverse", "remove", "add", "update", "discard", "clear", "pop")
    ),
    dict: frozenset(("update", "setdefault", "pop", "clear", "popitem")),
}


def changes(receiver: Any, name: str) -> bool:
    """Whether the method *name* may change the list or dictionary *receiver*."""
    return isinstance(receiver, list | dict) and not (
        name in _READING_METHODS[type(receiver)] or (isinstance(receiver, list) and name in _SET_METHODS)
    )


def call_foreign(name: str, arguments: list[Any], named: dict[str, Any]) -> Any:
    """Return what the foreign function *name* gives for these constants, or UNKNOWN."""
    if name == "builtins.isinstance" and len(arguments) == 2:
        return _is_instance(*arguments)
    function = _PURE.get(name)
    if function is None:
        return UNKNOWN
    # ``list(Colour)`` lists the members.
    if arguments and isinstance(arguments[0], ClassValue) and (items := items_of(arguments[0])) is not UNKNOWN:
        arguments = [items, *arguments[1:]]
    # ``list(range(10**9))`` would fill the memory.
    if any(isinstance(each, range) and len(each) > MAX_ITEMS for each in arguments):
        return UNKNOWN
    if not all(_may_be_passed(name, each) for each in (*arguments, *named.values())):
        return UNKNOWN
    try:
        # A range is never expanded: ``choices=range(1, 65536)`` is a minimum and a maximum.
        if name == "builtins.range":
            return range(*arguments)
        # The result depends on the class and on the version of Python.
        if name in ("builtins.str", "builtins.repr") and isinstance(arguments[0], EnumMember):
            return arguments[0].text if name == "builtins.str" else UNKNOWN
        result = function(*arguments, **named)
    except Exception:
        _log.debug("a call of %s fails in the script too", name, exc_info=True)
        return UNKNOWN
    return _bounded(result)


def _match_of_nothing(search: Callable[..., Any], pattern: str, text: str) -> Any:
    """Return None where an empty text does not match; a longer text can take a pattern that is hostile without end."""
    return None if text == "" and len(pattern) < 200 and search(pattern, "") is None else UNKNOWN


def _is_instance(value: Any, kinds: Any) -> Any:
    """Whether a plain constant is of one of *kinds*, as far as those are Python's own."""
    names = [
        each.name if isinstance(each, Symbol) else "" for each in (kinds if isinstance(kinds, tuple) else (kinds,))
    ]
    if type(value) not in _PLAIN or not all(name in _PLAIN.values() for name in names):
        return UNKNOWN
    return _PLAIN[type(value)] in names or (isinstance(value, bool) and "builtins.int" in names)


def _may_be_passed(name: str, value: Any) -> bool:
    """Whether *name* can work with *value*: a constant, or a container of which only the outside is looked at."""
    if value is UNKNOWN or (is_open(value) and name not in ("builtins.list", "builtins.tuple", "builtins.dict")):
        return False
    return (
        is_constant(value) or name == "builtins.dict" or (name in _SHALLOW and isinstance(value, list | tuple | dict))
    )


def call_method(receiver: Any, name: str, arguments: list[Any], named: dict[str, Any]) -> Any:
    """Return what the method *name* of the constant *receiver* gives, or UNKNOWN; lists and dicts do change."""
    kind = type(receiver)
    # A path is a text here, but its methods are others.
    if isinstance(receiver, PathText):
        return _path_method(receiver, name, arguments)
    # Sets are represented by lists, in the order of the source, so that choices keep it.
    if kind is list and name in _SET_METHODS and len(arguments) == 1:
        return _combined(receiver, name, items_of(arguments[0]))
    if kind is str:
        if name not in _TEXT_METHODS or not all(is_constant(each) for each in (*arguments, *named.values())):
            return UNKNOWN
    elif changes(receiver, name):
        return _change(receiver, name, arguments, named)
    elif name not in _READING_METHODS.get(kind, ()):
        return UNKNOWN
    if (kind is list and len(receiver) > MAX_ITEMS) or _is_costly(receiver, name, arguments):
        return UNKNOWN
    # Going through an open dictionary gives an open list.
    if is_open(receiver) and name not in ("keys", "values", "items", "copy"):
        return UNKNOWN
    try:
        result = getattr(receiver, name)(*arguments, **named)
    except Exception:
        _log.debug("a call of the method %s fails in the script too", name, exc_info=True)
        return UNKNOWN
    return _bounded(list(result) if name in ("keys", "values", "items") else result)


def _change(receiver: list[Any] | dict[Any, Any], name: str, arguments: list[Any], named: dict[str, Any]) -> Any:
    """Change *receiver* as the method does; where the change is unknown, so are its contents."""
    given = arguments[0] if arguments else None
    known = name in _CHANGING_METHODS[type(receiver)] and not is_open(receiver) and len(receiver) <= MAX_ITEMS
    if name in ("extend", "update"):
        known = known and (isinstance(given, dict) if isinstance(receiver, dict) else items_of(given) is not UNKNOWN)
        # A list with unknown items makes the other one unknown.
        known = known and not is_open(given)
    elif name not in ("append", "add"):
        known = known and all(is_constant(each) for each in arguments[:1])
    try:
        if known and isinstance(receiver, list) and name in ("add", "update", "discard"):
            return _change_set(receiver, name, [given] if name != "update" else items_of(given))
        if known:
            return getattr(receiver, name)(*arguments, **named)
    except (KeyError, IndexError, ValueError):
        pass  # it would fail in the script too, so this path is not the one that runs
    except Exception:
        _log.debug("a change by the method %s fails in the script too", name, exc_info=True)
        known = False
    make_open(receiver)
    return UNKNOWN


def _change_set(receiver: list[Any], name: str, items: list[Any]) -> None:
    """A set is represented by a list."""
    for item in items:
        is_there = is_constant(item) and item in receiver
        if name == "discard" and is_there:
            receiver.remove(item)
        elif name != "discard" and not is_there:
            receiver.append(item)


def _combined(receiver: list[Any], name: str, other: Any) -> Any:
    if other is UNKNOWN or not is_constant(receiver) or not is_constant(other):
        return UNKNOWN
    try:
        return _bounded(_SET_METHODS[name](receiver, other))
    except TypeError:
        return UNKNOWN


def items_of(value: Any) -> Any:
    """Return the items that a loop over *value* would see, as a list, or UNKNOWN."""
    if is_open(value):
        return UNKNOWN
    match value:
        case ClassValue() if value.members:
            return list(value.members.values())
        case InstanceValue() if value.is_tuple:
            return list(value.names.values())
        case range():
            return list(value) if len(value) <= MAX_ITEMS else UNKNOWN
        case str() | list() | tuple() | dict() | set() | frozenset():
            return list(value) if len(value) <= MAX_ITEMS else UNKNOWN
        case _:
            return UNKNOWN


def _path_method(path: PathText, name: str, arguments: list[Any]) -> Any:
    match name, arguments:
        case "joinpath", [*parts] if all(isinstance(part, str) for part in parts):
            return PathText(posixpath.join(path, *parts))
        case "as_posix", []:
            return str(path)
        case "with_suffix", [str(suffix)]:
            return PathText(posixpath.splitext(path)[0] + suffix)
        case _:
            return UNKNOWN


def _is_costly(receiver: Any, name: str, arguments: list[Any]) -> bool:
    """Whether the result could be huge, though what it is made of is not."""
    # ``"{:99999}".format(x)``.
    if name == "format":
        return re.search(r"\d{4}", receiver) is not None
    if name == "join":
        items = items_of(arguments[0]) if arguments else UNKNOWN
        return items is UNKNOWN or sum(len(str(item)) + len(receiver) for item in items) > MAX_TEXT
    if name == "replace":
        return len(receiver) * (len(str(arguments[-1])) + 1) > MAX_TEXT * 10
    return False


def _bounded(result: Any) -> Any:
    if isinstance(result, str | list | tuple | dict) and len(result) > MAX_TEXT:
        return UNKNOWN
    return result
