"""Python scripts that take one JSON object on stdin: what they ask of it says which parameters there are."""

from __future__ import annotations

import ast
from typing import Any

from skillruntime.derive.command import Command, Unread
from skillruntime.derive.interpreter.relevance import nodes_of
from skillruntime.derive.interpreter.usage_errors import exits_with_error
from skillruntime.derive.readers.reading import Reading
from skillruntime.derive.text_fields import first_paragraph

__all__ = ["read_stdin"]

_NAMES_LIMIT = 20
"""Names of the JSON object that are followed through the script."""

_KINDS = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))


def read_stdin(tree: ast.Module) -> Reading | None:
    """Return what the script asks of the JSON object on its stdin; None where it reads none."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    names: list[tuple[ast.AST, str]] = []
    found = False
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _reads_stdin(value):
                names.append((tree, name))
                found = True
            case ast.Call(func=ast.Name(id=called), args=[argument]) if called in functions:
                is_passed = isinstance(argument, ast.Name) and argument.id in [name for _, name in names]
                parameters = functions[called].args.args
                if parameters and (_reads_stdin(argument) or is_passed):
                    names.append((functions[called], parameters[0].arg))
                    found = True
    if not found:
        return None
    properties: dict[str, Any] = {}
    required: list[str] = []
    # A script reads its stdin once or twice; a damaged one may repeat itself, and each name costs a walk.
    for where, name in list(dict.fromkeys(names))[:_NAMES_LIMIT]:
        _collect(where, name, properties, required)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    needed = [name for name in properties if name in required]
    if needed:
        schema["required"] = needed
    command = Command("words", first_paragraph(ast.get_docstring(tree)))
    command.notes.append("read from how the script uses its JSON input; it may take more than it shows")
    command.unread += _doubts(tree, {name for _, name in names}, required)[:1]
    # A script may take the JSON on stdin, and words in addition: those are not in this contract.
    # Any use counts: what it does with the word is not followed here.
    uses = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "argv"]
    if uses:
        command.unread.append(Unread("arguments", "the script reads sys.argv too", uses[0]))
    return Reading(command, "stdin-json", "low", schema)


def _reads_stdin(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="json"), attr="load"), args=[inner]):
            return ast.unparse(inner) in ("sys.stdin", "sys.stdin.buffer")
        case ast.Call(func=ast.Attribute(value=ast.Name(id="json"), attr="loads"), args=[inner, *_]):
            return "sys.stdin" in ast.unparse(inner)
        # ``json.load(sys.stdin) or {}``.
        case ast.BoolOp(values=[first, *_]):
            return _reads_stdin(first)
    return False


def _collect(where: ast.AST, name: str, properties: dict[str, Any], required: list[str]) -> None:
    tested = {
        node.left.value
        for node in ast.walk(where)
        if isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Constant)
        and isinstance(node.ops[0], ast.In | ast.NotIn)
        and isinstance(node.comparators[0], ast.Name)
        and node.comparators[0].id == name
    }
    for node in ast.walk(where):
        match node:
            case ast.Subscript() if isinstance(node.ctx, ast.Load) and (key := _key_of(node, name)):
                properties.setdefault(key, {})
                # ``data["key"]`` without a test fails where the key is missing.
                if key not in tested:
                    required.append(key)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="get"), args=[first, *rest]) if (
                owner == name
            ):
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    _take_default(properties.setdefault(first.value, {}), rest)
            case ast.Call(func=ast.Name(id=("int" | "float") as converter), args=[inner]) if key := _key_of(
                inner, name
            ):
                properties.setdefault(key, {})["type"] = "integer" if converter == "int" else "number"


def _doubts(tree: ast.Module, owners: set[str], required: list[str]) -> list[Unread]:
    """Return the tests of a value of the JSON object that end the script: only that a key is there is understood."""
    keys: dict[str, str] = {}
    for node in nodes_of(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                asked = [key for each in nodes_of(value) for owner in owners if (key := _asked(each, owner))]
                keys[name] = asked[0] if asked else ""
    found: list[Unread] = []
    for node in nodes_of(tree):
        if not (isinstance(node, ast.If) and exits_with_error(node.body)):
            continue
        for each in nodes_of(node.test):
            key = keys.get(each.id, "") if isinstance(each, ast.Name) else ""
            key = key or next(filter(None, (_asked(each, owner) for owner in owners)), "")
            is_there = ast.unparse(node.test) in (f"not {ast.unparse(each)}", f"{ast.unparse(each)} is None")
            # What every call has is there.
            if key and not (is_there and key in required):
                shown = ast.unparse(node.test)[:60]
                found.append(Unread(key, f"the test `{shown}` was not understood", node.lineno))
    return found


def _asked(node: ast.AST, owner: str) -> str:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get"), args=[ast.Constant(value=str(key)), *_]):
            return key if name == owner else ""
    return _key_of(node, owner)


def _key_of(node: ast.AST, name: str) -> str:
    """The key of ``name["key"]``."""
    match node:
        case ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str(key))) if owner == name:
            return key
    return ""


def _take_default(schema: dict[str, Any], rest: list[ast.expr]) -> None:
    """Take the default of ``.get("key", default)``, and the type that it implies."""
    value = rest[0].value if rest and isinstance(rest[0], ast.Constant) else None
    kind = next((kind for known, kind in _KINDS if isinstance(value, known)), None)
    if kind is not None:
        schema["default"] = value
        schema.setdefault("type", kind)
