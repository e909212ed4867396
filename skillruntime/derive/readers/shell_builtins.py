"""The commands of the shell itself that change how a script goes on: ``exit``, ``shift``, ``set``, ``getopts``."""

from __future__ import annotations

import re
from collections.abc import Callable

from skillruntime.derive.readers.shell_state import Ended, Given, LeftLoop, NotFollowedError, Returned, State, Value
from skillruntime.derive.readers.shell_words import holds

__all__ = ["BUILTINS", "is_function"]


def is_function(state: State, name: Value) -> bool | None:
    """Return whether *name* is a function of the script; None where that depends on a word."""
    if isinstance(name, str):
        return name in state.functions
    found = [state.is_literal(name, each) for each in state.functions if each.startswith(name.prefix)]
    return None if name.filled is False or any(each is not False for each in found) else False


def _exit(state: State, arguments: list[Value]) -> bool | None:
    # ``echo "Usage: $0 FILE"; exit``: the status is that of ``echo``, and the words were refused all the same.
    refused = _failed(state, arguments) or state.showed_usage
    state.exited = not refused
    raise Ended(refused)


def _failed(state: State, arguments: list[Value]) -> bool:
    if not arguments:
        return state.status is False
    return arguments[0] != "0" if isinstance(arguments[0], str) else False


def _return(state: State, arguments: list[Value]) -> bool | None:
    raise Returned(state.status if not arguments else not _failed(state, arguments))


def _leave(again: bool) -> Callable[[State, list[Value]], bool | None]:
    def leave(state: State, arguments: list[Value]) -> bool | None:
        raise LeftLoop(again)

    return leave


def _shift(state: State, arguments: list[Value]) -> bool | None:
    count = arguments[0] if arguments else "1"
    if not isinstance(count, str) or not count.isdigit():
        raise NotFollowedError
    if int(count) > len(state.words):
        return False
    del state.words[: int(count)]
    return True


def _set(state: State, arguments: list[Value]) -> bool | None:
    while arguments and isinstance(arguments[0], str) and arguments[0][:1] in ("-", "+"):
        option = arguments.pop(0)
        if option == "--":
            state.words = arguments
            return True
        if option == "-o" and arguments and arguments.pop(0) == "nounset":
            state.nounset = True
        if isinstance(option, str) and re.fullmatch(r"-[a-zA-Z]*u[a-zA-Z]*", option):
            state.nounset = True
        if isinstance(option, str) and re.fullmatch(r"-[a-zA-Z]+o", option) and arguments:
            arguments.pop(0)
    if arguments:
        state.words = arguments
    return True


def _eval(state: State, arguments: list[Value]) -> bool | None:
    # ``eval set -- "$(getopt ...)"``: getopt puts ``--`` between the options and the other words.
    if arguments[:2] != ["set", "--"]:
        raise NotFollowedError
    state.words = list(state.sorted_words)
    return True


def _exec(state: State, arguments: list[Value]) -> bool | None:
    if not arguments:
        return True
    raise Ended(refused=False)


def _tested(state: State, arguments: list[Value]) -> bool | None:
    return holds(state, [(each, None) for each in arguments], patterns=False)


def _known(state: State, arguments: list[Value]) -> bool | None:
    names = [each for each in arguments if not (isinstance(each, str) and each.startswith("-"))]
    if names and (isinstance(names[0], Given) or names[0] in state.functions):
        return is_function(state, names[0]) or None
    return None


def _read(state: State, arguments: list[Value]) -> bool | None:
    names = [each for each in arguments if isinstance(each, str) and each.isidentifier()]
    known, state.stdin = state.stdin, None
    for number, each in enumerate(names):
        # ``read -r host port <<< "$1"``: the first name has a text where the word has one.
        filled = number == 0 and isinstance(known, Given) and known.filled
        state.variables[each] = "" if known == "" else Given(filled=filled)
    return None


def _getopts(state: State, arguments: list[Value]) -> bool | None:
    """``getopts letters name``: one option of the words (POSIX); OPTIND counts from 1."""
    if len(arguments) != 2 or not isinstance(arguments[0], str) or not isinstance(arguments[1], str):
        raise NotFollowedError
    place = state.variables.get("OPTIND", "1")
    index = int(place) if isinstance(place, str) and place.isdigit() else 1
    word = state.words[index - 1] if index <= len(state.words) else ""
    if not isinstance(word, str) or not re.fullmatch(r"-[A-Za-z0-9]", word):
        state.variables[arguments[1]] = "?"
        state.variables["OPTIND"] = str(index + (word == "--"))
        return False
    letter = word[1]
    state.variables[arguments[1]] = letter if letter in arguments[0] else "?"
    if letter + ":" in arguments[0]:
        state.variables["OPTARG"] = state.words[index] if index < len(state.words) else ""
        index += 1
    state.variables["OPTIND"] = str(index + 1)
    return True


BUILTINS: dict[str, Callable[[State, list[Value]], bool | None]] = {
    "exit": _exit,
    "return": _return,
    "break": _leave(again=False),
    "continue": _leave(again=True),
    "shift": _shift,
    "set": _set,
    "eval": _eval,
    "exec": _exec,
    "test": _tested,
    "command": _known,
    "type": _known,
    "read": _read,
    "mapfile": _read,
    "readarray": _read,
    "getopts": _getopts,
}
