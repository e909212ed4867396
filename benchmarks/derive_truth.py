"""Asks the real parser of a script what it takes, in a separate process, and compares
the answer with what was read.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["ask", "compare"]

_DUMP = r"""
import argparse, importlib.machinery, json, os, runpy, sys

def plain(value):
    try:
        json.dumps(value)
        return value
    except (TypeError, ValueError):
        if isinstance(value, (tuple, set, frozenset)):
            return [plain(item) for item in value]
        if hasattr(value, "value") and not callable(value.value):
            return plain(value.value)
        return str(value) if isinstance(value, os.PathLike) else None

def named(function):
    if function is None:
        return None
    return getattr(function, "__name__", None) or type(function).__name__

def kind_of(function):
    name = named(function)
    return "?" if name == "FileType" and not isinstance(function, argparse.FileType) else name

def actions(parser):
    found = {"arguments": [], "commands": {}, "chooser_required": False}
    groups = {}
    for number, group in enumerate(parser._mutually_exclusive_groups):
        for action in group._group_actions:
            groups[id(action)] = (number, group.required)
    for action in parser._actions:
        if isinstance(action, (argparse._HelpAction, argparse._VersionAction)):
            continue
        if isinstance(action, argparse._SubParsersAction):
            seen = {}
            for name, below in action.choices.items():
                seen.setdefault(id(below), [name, below])
            found["commands"] = {name: actions(below) for name, below in seen.values()}
            found["chooser_required"] = action.required
            continue
        kind = next(
            each.__name__
            for each in type(action).__mro__
            if each.__module__ == "argparse"
        )
        default = parser._defaults.get(action.dest, action.default)
        if isinstance(default, str) and default != argparse.SUPPRESS and kind in ("_StoreAction",):
            try:
                default = parser._get_value(action, default)
            except BaseException:
                default = None
        converter = None
        if action.type:
            converter = parser._registry_get("type", action.type, action.type)
        found["arguments"].append({
            "flags": list(action.option_strings),
            "dest": action.dest,
            "action": kind,
            "nargs": action.nargs,
            "type": kind_of(converter),
            "choices": None if action.choices is None else plain(list(action.choices)),
            "required": bool(action.required),
            "default": None if default == argparse.SUPPRESS else plain(default),
            "group": groups.get(id(action)),
        })
    return found

class StandIn:
    def __init__(self, *arguments, **named):
        pass
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn()
    def __call__(self, *arguments, **named):
        # As a decorator it gives back what it decorates.
        if len(arguments) == 1 and not named and callable(arguments[0]):
            return arguments[0]
        return StandIn()
    def __mro_entries__(self, bases):
        return ()
    def __iter__(self):
        return iter(())
    def __enter__(self):
        return self
    def __exit__(self, *raised):
        return None
    def __getitem__(self, key):
        return StandIn()
    def __setitem__(self, key, value):
        pass
    def __bool__(self):
        return False
    def __lt__(self, other):
        return False
    __le__ = __gt__ = __ge__ = __lt__
    def __or__(self, other):
        return self
    __ror__ = __add__ = __radd__ = __truediv__ = __mod__ = __mul__ = __rmul__ = __or__

class Missing(type(sys)):
    __path__ = []
    __version__ = "1.0"
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn()

class Finder:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top.startswith("_"):
            return None
        beside = os.path.join(os.path.dirname(script), top)
        if alone and (os.path.exists(beside + ".py") or os.path.exists(beside)):
            return None
        missing.append(name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        return Missing(spec.name)
    def exec_module(self, module):
        pass

known = []
missing = []

def leave(self, status=0, message=None):
    raise ValueError(message or status)

def values_of(parser, words):
    try:
        values, left = parse(parser, words)
    except BaseException as error:
        return {"error": str(error)[-300:]}
    found = {}
    for name, value in vars(values).items():
        if isinstance(value, (str, int, float, bool, type(None))):
            found[name] = value
    return {"values": found, "left": left}

parse = argparse.ArgumentParser.parse_known_args

def parse_args(self, args=None, namespace=None):
    answer(self)

def parse_known_args(self, args=None, namespace=None):
    known.append(self)
    defaults = {a.dest: a.default for a in self._actions if a.default is not argparse.SUPPRESS}
    return argparse.Namespace(**defaults), []

def answer(parser):
    found = {**actions(parser), "missing": sorted(set(missing))}
    argparse.ArgumentParser.parse_known_args = parse
    argparse.ArgumentParser.exit = leave
    calls = json.loads(os.environ.get("WORDS", "[]"))
    found["parsed"] = [values_of(parser, words) for words in calls]
    sys.__stdout__.write("\n<<<" + json.dumps(found) + ">>>\n")
    sys.__stdout__.flush()
    os._exit(0)

argparse.ArgumentParser.parse_args = parse_args
argparse.ArgumentParser.parse_intermixed_args = parse_args
argparse.ArgumentParser.parse_known_args = parse_known_args
script, alone = sys.argv[1], sys.argv[2] == "alone"
sys.argv = [script, *sys.argv[3:]]
directory = os.path.dirname(script)
if alone:
    sys.path[0] = ""
    sys.path.append(directory)
    sys.meta_path.insert(0, Finder())
else:
    sys.path[0] = directory
    while os.path.isfile(os.path.join(directory, "__init__.py")):
        directory = os.path.dirname(directory)
    sys.path.append(directory)
    sys.meta_path.append(Finder())
try:
    runpy.run_path(script, run_name="__main__")
finally:
    if known:
        answer(known[-1])
"""


def ask(
    script: Path, *, words: Sequence[list[str]] = (), timeout: float = 20
) -> dict[str, Any] | None:
    """Return what the script's own argparse parser declares, or None where it never
    comes to parse.

    The script is run, up to where it would parse, in a scratch directory that is its
    home too: ask only scripts that you trust. A module that is not installed is
    replaced by a placeholder whose attributes are placeholders too; where that is not
    enough, so is every module but the standard library's and those next to the script.
    ``missing`` names them. A script that only shows its help when it is called without
    a word is given one. ``parsed`` is what the parser makes of each of *words*.
    """
    ways = [
        (imports, given)
        for given in ((), ("word",))
        for imports in ("installed", "alone")
    ]
    return next(
        (found for way in ways if (found := _ask(script, *way, words, timeout))), None
    )


def _ask(
    script: Path,
    imports: str,
    given: tuple[str, ...],
    words: Sequence[list[str]],
    timeout: float,
) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "some.txt").touch()
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            _DUMP,
            str(script.resolve()),
            imports,
            *given,
        ]
        environment = {
            name: os.environ[name]
            for name in ("PATH", "LANG", "SYSTEMROOT")
            if name in os.environ
        }
        environment |= {
            "HOME": directory,
            "TMPDIR": directory,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        environment["WORDS"] = json.dumps(list(words))
        try:
            done = subprocess.run(
                command,
                cwd=directory,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return None
    start, end = done.stdout.rfind("<<<"), done.stdout.rfind(">>>")
    return json.loads(done.stdout[start + 3 : end]) if 0 <= start < end else None


def compare(
    truth: dict[str, Any], document: dict[str, Any]
) -> tuple[list[str], list[str]]:
    """Return what of *truth* the document leaves out, and what it says otherwise than
    the truth.
    """
    missing: list[str] = []
    wrong: list[str] = []
    line = document["run"].get("command_line", {"parameters": []})
    _compare_level(truth, line, document["input"], (), missing, wrong)
    unread = document["derived"].get("unread", [])
    reported = [each.partition(":")[0] for each in unread]
    if any(each.startswith("arguments:") and "change" in each for each in unread):
        return [
            *missing,
            *wrong,
        ], []  # it says itself that all of them may be otherwise
    missing += [fault for fault in wrong if fault.partition(":")[0] in reported]
    return missing, [
        fault for fault in wrong if fault.partition(":")[0] not in reported
    ]


def _compare_level(
    truth: dict[str, Any],
    line: dict[str, Any],
    schema: dict[str, Any],
    chosen: tuple[tuple[str, str], ...],
    missing: list[str],
    wrong: list[str],
) -> None:
    parameters = list(line["parameters"])
    matched: list[int] = []
    for action in truth["arguments"]:
        found = next((each for each in parameters if _is_meant(action, each)), None)
        if found is None:
            if _can_be_given(action, truth["arguments"]):
                missing.append((action["flags"] or [action["dest"]])[0])
            continue
        matched.append(id(found))
        branch = _branch(schema, chosen)
        shown = (action["flags"] or [action["dest"]])[0]
        wrong += [f"{shown}: {fault}" for fault in _faults(action, found, branch)]
    wrong += [
        f"{each['name']} is not an argument"
        for each in parameters
        if id(each) not in matched
    ]
    wrong += _group_faults(truth, parameters, _branch(schema, chosen))
    names = set(line.get("commands", {}))
    missing += [f"command {name}" for name in truth["commands"] if name not in names]
    wrong += [
        f"command {name} is none" for name in names if name not in truth["commands"]
    ]
    for name, below in truth["commands"].items():
        if name in names:
            _compare_level(
                below,
                line["commands"][name],
                schema,
                (*chosen, (line["chooser"], name)),
                missing,
                wrong,
            )


def _group_faults(
    truth: dict[str, Any], parameters: list[dict[str, Any]], branch: dict[str, Any]
) -> list[str]:
    """What exclusive groups of the parser the schema does not keep apart, or does not
    ask one of.
    """
    rules = [branch, *branch.get("allOf", [])]
    apart = {frozenset(rule["not"]["required"]) for rule in rules if "not" in rule}
    asked = [
        {each["required"][0] for each in rule["anyOf"]}
        for rule in rules
        if "anyOf" in rule
    ]
    groups: dict[int, list[dict[str, Any]]] = {}
    required: set[int] = set()
    for action in truth["arguments"]:
        if action["group"] is not None:
            number, needs_one = action["group"]
            found = next((each for each in parameters if _is_meant(action, each)), None)
            groups.setdefault(number, []).extend([found] if found is not None else [])
            required |= {number} if needs_one else set()
    faults = []
    for number, members in groups.items():
        names = {each["name"] for each in members}
        pairs = {
            frozenset((one, other)) for one in names for other in names if one != other
        }
        faults += [
            f"{min(pair)}: it excludes {max(pair)}"
            for pair in sorted(pairs - apart, key=sorted)
        ]
        if number in required and len(names) > 1 and names not in asked:
            faults.append(f"{min(names)}: one of {sorted(names)} is required")
    return faults


def _can_be_given(action: dict[str, Any], actions: list[dict[str, Any]]) -> bool:
    """Whether any word can be given to it: not where none is a choice, nor behind a
    list that takes them all.
    """
    if action["choices"] and action["type"] in (None, "str"):
        return action["required"] or any(
            isinstance(choice, str) for choice in action["choices"]
        )
    if action["flags"] or action["nargs"] not in ("*", "?"):
        return True
    before = actions[: actions.index(action)]
    return not any(
        not each["flags"] and each["nargs"] in ("*", "+", "...") for each in before
    )


def _branch(
    schema: dict[str, Any], chosen: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    """The branch of the schema in which *chosen* commands are chosen: the first one for
    a command with commands.
    """
    for branch in schema.get("oneOf", [schema]):
        properties = branch["properties"]
        if all(
            properties.get(chooser, {}).get("const") == name for chooser, name in chosen
        ):
            return branch
    raise LookupError(f"no branch for {chosen}")


def _is_meant(action: dict[str, Any], parameter: dict[str, Any]) -> bool:
    flags = [
        parameter.get("flag"),
        parameter.get("off_flag"),
        *(flag for _, flag in parameter.get("choices", [])),
    ]
    if action["flags"]:
        return any(flag in action["flags"] for flag in flags if flag)
    plain = "".join(
        c if c.isalnum() or c == "_" else "_" for c in action["dest"]
    ).strip("_")
    return not any(flags) and parameter["name"] in (
        plain,
        f"main_{plain}",
        f"{plain}_2",
    )


def _faults(
    action: dict[str, Any], parameter: dict[str, Any], branch: dict[str, Any]
) -> list[str]:
    faults = []
    schema = branch["properties"][parameter["name"]]
    takes = parameter.get("takes", "value")
    kind = action["action"]
    switches = (
        "_StoreTrueAction",
        "_StoreFalseAction",
        "_StoreConstAction",
        "_AppendConstAction",
    )
    if kind == "_CountAction":
        return [] if takes == "count" else [f"it is counted, read as {takes}"]
    if kind in switches or action["nargs"] == 0:
        return (
            []
            if takes in ("nothing", "one_of")
            else [f"it is a switch, read as {takes}"]
        )
    if kind == "BooleanOptionalAction":
        return (
            []
            if takes == "nothing" and parameter.get("off_flag") in action["flags"]
            else ["it can be negated"]
        )
    nargs = action["nargs"]
    expected = {
        None: "value",
        "?": "optional" if action["flags"] else "value",
        "*": "values",
        "+": "values",
    }
    expected |= {"...": "rest", "A...": "rest"}
    if takes != expected.get(nargs, "values") or (
        isinstance(nargs, int) and parameter.get("length") != nargs
    ):
        faults.append(f"it takes {nargs!r}, read as {takes}")
    if parameter.get("repeat", False) != (kind == "_AppendAction"):
        faults.append("whether it repeats")
    in_group = action["group"] is not None
    if (
        action["required"] != (parameter["name"] in branch.get("required", []))
        and not in_group
    ):
        optional_many = nargs in ("*", "...") and not action["flags"]
        if not optional_many:
            faults.append(f"required is {action['required']}")
    item = schema["items"] if parameter.get("repeat") else schema
    item = item["items"] if takes in ("values", "rest") else item
    item = item["anyOf"][0] if "anyOf" in item else item
    types = {
        None: "string",
        "str": "string",
        "int": "integer",
        "float": "number",
        "bool": "boolean",
    }
    if action["type"] in types and item.get("type") != types[action["type"]]:
        faults.append(f"its type is {action['type']}, read as {item.get('type')}")
    if action["type"] in ("Path", "FileType") and item.get("format") != "path":
        faults.append("it is a path")
    if action["choices"] is not None and all(
        choice is not None for choice in action["choices"]
    ):
        known = item.get("enum")
        if known is None and "minimum" in item:
            known = list(range(item["minimum"], item["maximum"] + 1))
        if known is None or sorted(map(str, known)) != sorted(
            map(str, action["choices"])
        ):
            faults.append(f"its choices are {action['choices']}, read as {known}")
    default = schema.get("default")
    if (
        default is not None
        and action["type"] in (*types, "Path")
        and default != action["default"]
    ):
        faults.append(f"its default is {action['default']!r}, read as {default!r}")
    return faults
