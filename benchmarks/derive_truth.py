"""Asks the real parser of a script what it takes, in a separate process, and compares the answer with what was read."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["ask", "compare"]

_DUMP = r"""
import argparse, json, os, runpy, sys

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
    return getattr(function, "__name__", None) or type(function).__name__ if function is not None else None

def kind_of(function):
    name = named(function)
    return "?" if name == "FileType" and not isinstance(function, argparse.FileType) else name

def actions(parser):
    found = {"arguments": [], "commands": {}, "chooser_required": False}
    groups = {id(a): (n, g.required) for n, g in enumerate(parser._mutually_exclusive_groups) for a in g._group_actions}
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
        kind = type(action).__name__
        default = parser._defaults.get(action.dest, action.default)
        if isinstance(default, str) and default != argparse.SUPPRESS and kind in ("_StoreAction",):
            try:
                default = parser._get_value(action, default)
            except BaseException:
                default = None
        found["arguments"].append({
            "flags": list(action.option_strings), "dest": action.dest, "action": kind, "nargs": action.nargs,
            "type": kind_of(action.type),
            "choices": plain(list(action.choices)) if action.choices is not None else None,
            "required": bool(action.required), "default": None if default == argparse.SUPPRESS else plain(default),
            "group": groups.get(id(action)),
        })
    return found

known = []

def parse_args(self, args=None, namespace=None):
    answer(self)

def parse_known_args(self, args=None, namespace=None):
    known.append(self)
    defaults = {a.dest: a.default for a in self._actions if a.default is not argparse.SUPPRESS}
    return argparse.Namespace(**defaults), []

def answer(parser):
    sys.__stdout__.write("\n<<<" + json.dumps(actions(parser)) + ">>>\n")
    sys.__stdout__.flush()
    os._exit(0)

argparse.ArgumentParser.parse_args = parse_args
argparse.ArgumentParser.parse_intermixed_args = parse_args
argparse.ArgumentParser.parse_known_args = parse_known_args
script = sys.argv[1]
sys.argv = [script]
sys.path[0] = os.path.dirname(script)
try:
    runpy.run_path(script, run_name="__main__")
finally:
    if known:
        answer(known[-1])
"""


def ask(script: Path, *, timeout: float = 20) -> dict[str, Any] | None:
    """Return what the script's own argparse parser declares, or None where it never comes to parse.

    The script is run, up to where it would parse: ask only scripts that you trust.
    """
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-W", "ignore", "-c", _DUMP, str(script.resolve())]
        try:
            done = subprocess.run(
                command, cwd=directory, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            return None
    start, end = done.stdout.rfind("<<<"), done.stdout.rfind(">>>")
    return json.loads(done.stdout[start + 3 : end]) if 0 <= start < end else None


def compare(truth: dict[str, Any], document: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return what of *truth* the document leaves out, and what it says otherwise than the truth."""
    missing: list[str] = []
    wrong: list[str] = []
    line = document["run"].get("command_line", {"parameters": []})
    _compare_level(truth, line, document["input"], (), missing, wrong)
    reported = [each.partition(":")[0] for each in document["derived"].get("unread", [])]
    missing += [fault for fault in wrong if fault.partition(":")[0] in reported]
    return missing, [fault for fault in wrong if fault.partition(":")[0] not in reported]


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
            missing.append((action["flags"] or [action["dest"]])[0])
            continue
        matched.append(id(found))
        branch = _branch(schema, chosen)
        shown = (action["flags"] or [action["dest"]])[0]
        wrong += [f"{shown}: {fault}" for fault in _faults(action, found, branch)]
    wrong += [f"{each['name']} is no argument" for each in parameters if id(each) not in matched]
    names = set(line.get("commands", {}))
    missing += [f"command {name}" for name in truth["commands"] if name not in names]
    wrong += [f"command {name} is none" for name in names if name not in truth["commands"]]
    for name, below in truth["commands"].items():
        if name in names:
            _compare_level(below, line["commands"][name], schema, (*chosen, (line["chooser"], name)), missing, wrong)


def _branch(schema: dict[str, Any], chosen: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """The branch of the schema in which *chosen* commands are chosen: the first one for a command with commands."""
    for branch in schema.get("oneOf", [schema]):
        properties = branch["properties"]
        if all(properties.get(chooser, {}).get("const") == name for chooser, name in chosen):
            return branch
    raise LookupError(f"no branch for {chosen}")


def _is_meant(action: dict[str, Any], parameter: dict[str, Any]) -> bool:
    flags = [parameter.get("flag"), parameter.get("off_flag"), *(flag for _, flag in parameter.get("choices", []))]
    if action["flags"]:
        return any(flag in action["flags"] for flag in flags if flag)
    plain = "".join(c if c.isalnum() or c == "_" else "_" for c in action["dest"]).strip("_")
    return not any(flags) and parameter["name"] in (plain, f"main_{plain}", f"{plain}_2")


def _faults(action: dict[str, Any], parameter: dict[str, Any], branch: dict[str, Any]) -> list[str]:
    faults = []
    schema = branch["properties"][parameter["name"]]
    takes = parameter.get("takes", "value")
    kind = action["action"]
    switches = ("_StoreTrueAction", "_StoreFalseAction", "_StoreConstAction", "_AppendConstAction")
    if kind == "_CountAction":
        return [] if takes == "count" else [f"it is counted, read as {takes}"]
    if kind in switches or action["nargs"] == 0:
        return [] if takes in ("nothing", "one_of") else [f"it is a switch, read as {takes}"]
    if kind == "BooleanOptionalAction":
        return [] if takes == "nothing" and parameter.get("off_flag") in action["flags"] else ["it can be negated"]
    nargs = action["nargs"]
    expected = {None: "value", "?": "optional" if action["flags"] else "value", "*": "values", "+": "values"}
    expected |= {"...": "rest", "A...": "rest"}
    if takes != expected.get(nargs, "values") or (isinstance(nargs, int) and parameter.get("length") != nargs):
        faults.append(f"it takes {nargs!r}, read as {takes}")
    if parameter.get("repeat", False) != (kind == "_AppendAction"):
        faults.append("whether it repeats")
    in_group = action["group"] is not None
    if action["required"] != (parameter["name"] in branch.get("required", [])) and not in_group:
        optional_many = nargs in ("*", "...") and not action["flags"]
        if not optional_many:
            faults.append(f"required is {action['required']}")
    item = schema["items"] if parameter.get("repeat") else schema
    item = item["items"] if takes in ("values", "rest") else item
    item = item["anyOf"][0] if "anyOf" in item else item
    types = {None: "string", "str": "string", "int": "integer", "float": "number", "bool": "boolean"}
    if action["type"] in types and item.get("type") != types[action["type"]]:
        faults.append(f"its type is {action['type']}, read as {item.get('type')}")
    if action["type"] in ("Path", "FileType") and item.get("format") != "path":
        faults.append("it is a path")
    if action["choices"] is not None and all(choice is not None for choice in action["choices"]):
        known = item.get("enum")
        if known is None and "minimum" in item:
            known = list(range(item["minimum"], item["maximum"] + 1))
        if known is None or sorted(map(str, known)) != sorted(map(str, action["choices"])):
            faults.append(f"its choices are {action['choices']}, read as {known}")
    default = schema.get("default")
    if default is not None and action["type"] in (*types, "Path") and default != action["default"]:
        faults.append(f"its default is {action['default']!r}, read as {default!r}")
    return faults
