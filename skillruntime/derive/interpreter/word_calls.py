"""Calls that are given words, in a trace: what known functions and methods make of them, and what loses them."""

from __future__ import annotations

import ast
import re
from typing import Any

from skillruntime.derive.interpreter.state import ScriptError, ScriptExit, State
from skillruntime.derive.interpreter.trace import Trace
from skillruntime.derive.interpreter.values import UNKNOWN
from skillruntime.derive.interpreter.word_operations import BY_HAND, OPTIONS_BY_HAND, cut, entry, item, starts_with
from skillruntime.derive.interpreter.words import Converted, Count, Remaining, Word, Words, plain_text

__all__ = ["call_method_on_words", "call_on_words", "leave_script", "note_call"]

ROUNDS = 40
"""Rounds of a loop over numbers that a trace follows."""

_EXITS = ("sys.exit", "builtins.exit", "builtins.quit", "os._exit", "builtins.SystemExit")
_READERS = ("unittest.main", "pytest.main", "absl.testing.absltest.main", "fire.Fire")
"""Functions that read ``sys.argv`` themselves."""

_CONVERTERS = {
    **dict.fromkeys(("builtins.int", "node.parseInt"), "integer"),
    **dict.fromkeys(("builtins.float", "node.Number"), "number"),
    **dict.fromkeys(("json.loads", "node.JSON.parse"), "json"),
    **dict.fromkeys(("pathlib.Path", "pathlib.PurePath"), "path"),
    **dict.fromkeys(("os.path.abspath", "os.path.realpath", "os.path.expanduser", "node.path.resolve"), "path"),
}
_COPIES = (
    *(f"builtins.{name}" for name in ("list", "tuple", "sorted", "set", "reversed")),
    *("copy.copy", "collections.deque", "glob.glob"),
)
_HARMLESS = tuple(
    f"builtins.{name}"
    for name in ("print", "str", "repr", "any", "all", "max", "min", "sum", "isinstance", "bool", "type")
)
_NOT_NONE = ("node.JSON.parse", "node.path.resolve", "node.fs.readFile")
"""Functions of Node that fail without a word. Python's ``open(None)`` fails too, but a name of a Python script may be
None here only because the statement that changes it was skipped."""
_WITHOUT_DASHES = ("lstrip", "strip", "removeprefix", "replace")
_SAME_WORD = ("lower", "upper", "strip", "casefold", "lstrip", "rstrip")
_CHANGES = ("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse")


def leave_script(state: State, name: str, arguments: list[Any], node: ast.AST) -> None:
    """Raise `ScriptExit` where the function *name* ends the script."""
    trace = state.trace
    if trace is None or name not in _EXITS or not isinstance(node, ast.Call):
        return
    status = arguments[0] if arguments else None
    trace.touch(status, node)
    if node.args and trace.shows_usage(node):
        trace.usage_shown = True
    # ``sys.exit("message")`` prints it and ends with status 1 (Python's documentation of ``sys.exit``).
    fails = isinstance(status, str) or (isinstance(status, int) and status != 0)
    is_text = bool(node.args) and isinstance(node.args[0], ast.JoinedStr | ast.BinOp)
    raise ScriptExit(fails or is_text or trace.usage_shown)


def call_on_words(state: State, name: str, values: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    """Return the result of the foreign function *name*, some of whose arguments are made of words."""
    trace = state.trace
    assert trace is not None
    first = values[0] if values else UNKNOWN
    match name:
        case "builtins.len" if isinstance(first, Words):
            return Count(len(first))
        case _ if any(isinstance(each, Words | Count) for each in values):
            trace.outcome.takes_all = True
    match name:
        case "builtins.len" if isinstance(first, list | tuple | dict):
            return len(first)
        # The script advances an iterator over the words at places that cannot be counted.
        case "builtins.iter" if isinstance(first, Words):
            if trace.by_hand:
                return Remaining(first)
            trace.lose(BY_HAND, node)
        case "builtins.next" if isinstance(first, Remaining):
            if first:
                return item(trace, [first.pop(0)], 0, node)
            if len(values) > 1:
                return values[1]
            raise ScriptError("StopIteration")
        # ``args[i + 1]`` in a Node script: undefined where there is none.
        case "node.item" if isinstance(first, list) and isinstance(values[1], int):
            return item(trace, first, values[1], node) if -len(first) <= values[1] < len(first) else None
        case "node.item" if isinstance(first, dict):
            try:
                return entry(trace, first, values[1], node)
            except ScriptError:
                return None
        case "node.isInteger" if isinstance(first, Converted):
            role = trace.outcome.role(first.word.place)
            role.kinds = {"integer" if each == "number" else each for each in role.kinds}
            return True
        # A word that is converted is assumed to be a number: one that is not would be refused.
        case "node.isNaN" | "node.isFinite" if isinstance(first, Converted):
            return name == "node.isFinite"
        case _ if name in _COPIES and isinstance(first, Words):
            return Words(first)
        case "builtins.list" | "builtins.tuple" | "builtins.set" if isinstance(first, list | tuple):
            return list(first)
        # The index is left unknown: ``sys.argv[i + 1]`` in such a loop takes options apart by hand.
        case "builtins.enumerate" if isinstance(first, list | tuple):
            if trace.by_hand:
                start = values[1] if len(values) > 1 else named.get("start", 0)
                return [(Count(start + n) if isinstance(start, int) else UNKNOWN, each) for n, each in enumerate(first)]
            return [(UNKNOWN, each) for each in first]
        case "builtins.range" if all(isinstance(each, int) for each in values) and 1 <= len(values) <= 3:
            found = range(*values) if values[2:] != [0] else range(0)
            return UNKNOWN if len(found) > ROUNDS else [Count(each) for each in found]
        case "builtins.map" if len(values) == 2 and isinstance(values[1], list):
            kind = _CONVERTERS.get(getattr(values[0], "name", ""))
            made = [_converted(state, each, kind, node) for each in values[1]]
            return Words(made) if isinstance(values[1], Words) else made
        # A word is a text already.
        case "builtins.str" if isinstance(first, Word):
            return first
        case "builtins.isinstance":
            return UNKNOWN
        case "getopt.getopt" | "getopt.gnu_getopt" if trace.by_hand and isinstance(first, Words):
            return _getopt(trace, first, [*values[1:], *named.values()], node, is_gnu=name.endswith("gnu_getopt"))
        case "builtins.zip" if trace.by_hand and all(isinstance(each, list) for each in values):
            return list(zip(*values, strict=False))
        case "builtins.dict" if isinstance(first, list) and all(isinstance(each, list | tuple) for each in first):
            if any(len(each) != 2 for each in first):
                raise ScriptError("ValueError")
            # A word that is a key and has no text of its own is found by no literal.
            pairs = [(plain_text(key), value) for key, value in first]
            return {key: value for key, value in pairs if key is not None}
        # ``re.match(r"--(\w+)=(.*)", word)``.
        case "re.match" | "re.fullmatch" if isinstance(first, str) and first.lstrip("^(").startswith("-"):
            trace.lose(OPTIONS_BY_HAND, node)
        case _ if name in _CONVERTERS and isinstance(first, Word | Converted):
            return _converted(state, first, _CONVERTERS[name], node)
    trace.pass_on([*values, *named.values()], node, name.removeprefix("builtins."), harmless=name in _HARMLESS)
    return UNKNOWN


def _getopt(trace: Trace, words: Words, declared: list[Any], node: ast.AST, *, is_gnu: bool) -> Any:
    """Return what ``getopt`` returns: pairs of a flag and its value, and the words that are left (Lib/getopt.py)."""
    short = declared[0] if declared else ""
    long = declared[1] if len(declared) > 1 else []
    long = [long] if isinstance(long, str) else long
    if not isinstance(short, str) or not isinstance(long, list | tuple) or not all(isinstance(e, str) for e in long):
        trace.lose("the options that getopt is given are computed", node)
    takes = {f"-{letter}": colon == ":" for letter, colon in re.findall(r"([A-Za-z0-9])(:?)", short)}
    takes |= {f"--{each.rstrip('=')}": each.endswith("=") for each in long}
    for flag in takes:
        trace.outcome.flags.setdefault(flag, False)
    pairs: list[Any] = []
    rest: list[Any] = []
    left = list(words)
    while left:
        word = left.pop(0)
        text = plain_text(word)
        if text is None and is_gnu:
            rest.append(word)
        elif text not in takes:
            # The first word that is not an option ends them (POSIX); an unknown one raises ``GetoptError``.
            if text is not None and text.startswith("-"):
                raise ScriptError("GetoptError")
            rest += [word, *left]
            break
        elif takes[text] and not left:
            raise ScriptError("GetoptError")
        else:
            value = left.pop(0) if takes[text] else ""
            trace.read(value, node)
            pairs.append((text, value))
    return pairs, Words(rest)


def note_call(state: State, name: str, arguments: list[Any], node: ast.AST) -> None:
    """Record that a foreign function shows the usage or reads ``sys.argv``; raise where it cannot take None."""
    if state.trace is None:
        return
    if not state.trace.usage_shown and state.trace.shows_usage(node):
        state.trace.usage_shown = True
    if name in _NOT_NONE and arguments[:1] == [None]:  # the word that it should be is missing
        raise ScriptError("TypeError")
    if name in _READERS:
        state.trace.lose(f"{name} reads sys.argv itself", node)


def _converted(state: State, value: Any, kind: str | None, node: ast.AST) -> Any:
    word = value.word if isinstance(value, Converted) else value
    assert state.trace is not None
    role = state.trace.touch(word, node)
    if not isinstance(word, Word) or kind is None:
        return UNKNOWN
    if isinstance(value, Converted) and kind != value.kind:
        return UNKNOWN
    # A conversion under a condition may not happen, so the word may be any text.
    if role is not None and not state.uncertain:
        role.kinds.add(kind)
    return Converted(word, kind)


def call_method_on_words(
    state: State, receiver: Any, name: str, values: list[Any], named: dict[str, Any], node: ast.AST
) -> Any:
    """Return the result of the method *name*, where the receiver is a list or something is made of words."""
    trace = state.trace
    assert trace is not None
    first = values[0] if values else None
    if isinstance(receiver, Converted) and name in ("resolve", "expanduser", "absolute"):
        return receiver
    if isinstance(receiver, Word):
        if name == "startswith":
            prefixes = first if isinstance(first, tuple) else (first,)
            found = [starts_with(trace, receiver, each, node) for each in prefixes]
            return True if True in found else UNKNOWN if UNKNOWN in found else False
        if trace.by_hand and (made := _of_text(receiver, name, values)) is not None:
            return made
        # ``key, _, value = word.partition("=")`` takes ``--size=3`` apart.
        if name in ("partition", "rpartition", "split", "rsplit") and first in ("=", ":="):
            trace.lose(OPTIONS_BY_HAND, node)
        # A word that is not a flag keeps what it has.
        if trace.by_hand and name in _WITHOUT_DASHES and isinstance(first, str) and first.startswith("-"):
            return receiver
        # ``word.lstrip("-")`` makes a name of a flag.
        if name in (*_WITHOUT_DASHES, "match") and isinstance(first, str) and first.startswith("-"):
            trace.lose(OPTIONS_BY_HAND, node)
        return receiver if name in _SAME_WORD and not values else _used(state, receiver, values, named, node)
    if isinstance(receiver, dict) and name in ("get", "keys", "values", "items"):
        return _of_table(state, receiver, name, values, node)
    if isinstance(receiver, list):
        return _of_list(state, receiver, name, values, node)
    # ``/^--/.test(word)``: a pattern of dashes is translated to the dashes.
    if isinstance(receiver, str) and name in ("test", "exec") and receiver.startswith("-") and isinstance(first, Word):
        return starts_with(trace, first, receiver, node)
    if isinstance(receiver, str) and name == "join" and isinstance(first, list):
        # ``" ".join(sys.argv)`` prints the command line.
        if any(isinstance(each, Word) and each.place == 0 for each in first):
            return UNKNOWN  # the whole command line, to be shown
        for each in first:
            role = trace.touch(each, node)
            # ``" ".join(sys.argv[1:])``: one text that a shell would split into words.
            if role is not None and receiver == " ":
                role.joined = True
        # Without words the text is empty, and ``if not query`` decides.
        return UNKNOWN if first else ""
    return _used(state, receiver, values, named, node)


def _of_text(word: Word, name: str, values: list[Any]) -> Any:
    """Return the result of a method of a word whose text is known, at least up to the value behind it; else None."""
    first = values[0] if values else None
    if word.text is None:
        # A plain word has no ``=`` in it, and no dashes in front.
        return {"split": [word], "partition": (word, "", "")}.get(name) if first == "=" else None
    text = word.text
    match name, first:
        case "split" | "partition", "=" if word.inside is not None and text.endswith("="):
            key = text[:-1]
            return [key, word.inside] if name == "split" else (key, "=", word.inside)
        case "split", "=":
            return text.split("=", 1)
        case "partition", "=":
            return text.partition("=")
        case "lstrip" | "removeprefix", str():
            return cut(word, getattr(text, name)(first))
        # ``word.replace(/^--/, "")`` and ``word.replace("--", "")``.
        case "replace", str() if values[1:2] == [""]:
            return cut(word, text.replace(first, "", 1))
        case (("lower" | "upper" | "strip"), None) if word.inside is None:
            return getattr(text, name)()
    return None


def _used(state: State, receiver: Any, values: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    assert state.trace is not None
    state.trace.touch(receiver, node)
    state.trace.pass_on([*values, *named.values()], node)
    return UNKNOWN


def _of_table(state: State, table: dict[Any, Any], name: str, values: list[Any], node: ast.AST) -> Any:
    match name:
        case "keys":
            return list(table)
        case "values":
            return list(table.values())
        case "items":
            return list(table.items())
    assert state.trace is not None
    try:
        return entry(state.trace, table, values[0] if values else UNKNOWN, node)
    except ScriptError:
        return values[1] if len(values) > 1 else None


def _of_list(state: State, items: list[Any], name: str, values: list[Any], node: ast.AST) -> Any:
    trace = state.trace
    assert trace is not None
    first = values[0] if values else None
    # ``argv[argv.index("--out") + 1]``: a flag with the value after it.
    if name == "index" and isinstance(first, str):
        trace.outcome.flags[first] = True
        for place, each in enumerate(items):
            if plain_text(each) == first:
                return place
        raise ScriptError("ValueError")
    if name == "copy":
        return Words(items) if isinstance(items, Words) else list(items)
    if name == "count" and isinstance(first, str) and isinstance(items, Words):
        trace.lose(BY_HAND, node)
    if name not in _CHANGES:
        # ``args.reduce(...)``: what happens to each word is unknown.
        if isinstance(items, Words):
            trace.lose(f"the words are passed on to {name}", node)
        return _used(state, items, values, {}, node)
    # Another reader of ``sys.argv`` would see the change.
    if items is trace.words:
        trace.lose("the script changes sys.argv", node)
    if state.uncertain and isinstance(items, Words):
        trace.lose("whether a word is taken out depends on a condition", node)
    return _changed(state, items, name, values, node)


def _changed(state: State, items: list[Any], name: str, values: list[Any], node: ast.AST) -> Any:
    trace = state.trace
    assert trace is not None
    first = values[0] if values else None
    match name, first:
        case "append", _:
            items.append(first)
            if trace.by_hand:
                trace.touch(first, node)
        case "extend", list() if not isinstance(first, Words):
            items.extend(first)
        case "remove", str() if isinstance(items, Words):
            trace.outcome.flags.setdefault(first, False)
            place = next((index for index, each in enumerate(items) if plain_text(each) == first), None)
            if place is None:
                raise ScriptError("ValueError")
            del items[place]
        case "pop", None | int():
            place = -1 if first is None else first
            if isinstance(items, Words):
                trace.expect(place + 1 if place >= 0 else 0, len(items))
                trace.outcome.takes_all |= place < 0
            if not -len(items) <= place < len(items):
                raise ScriptError("IndexError")
            trace.touch(items[place], node)
            trace.read(items[place], node)
            return items.pop(place)
        case _:
            for each in (items, *values):
                if isinstance(each, Words):
                    trace.lose(BY_HAND, node)
            trace.touch(values, node)
    return UNKNOWN
