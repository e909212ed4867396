"""What every script of this skill shares: its arguments, its failures, and the files of
the workspace.

Not a tool. A script reads one JSON object from standard input, prints one JSON value on
standard output, and touches files only inside the directory it was started in. A
failure is printed as ``{"status": "failed", "errors": [...]}`` with exit code 1. The
contract beside the skill is the one source of defaults and bounds: a runtime has
applied it already; by hand, :func:`read_arguments` applies the parts that catch
malformed arguments.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TYPES = {
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "array": list,
    "object": dict,
}
SIZES = {
    str: ("Length", "characters"),
    list: ("Items", "entries"),
    dict: ("Properties", "entries"),
}


class Failure(Exception):  # noqa: N818 - the word of the protocol
    """The call cannot be answered: printed as one error of the envelope."""

    def __init__(
        self,
        code: str,
        message: str,
        action: str,
        *,
        recoverable: bool = True,
        path: str = "",
    ) -> None:
        super().__init__(message)
        self.error = {
            "code": code,
            "message": message,
            "recoverable": recoverable,
            "suggested_action": action,
        }
        if path:
            self.error["details"] = {"path": path}


def answer(run: Callable[[dict[str, Any]], dict[str, Any]], contract: Path) -> int:
    """Run one call from standard input to standard output and return the exit code.

    A dictionary that *run* returns with ``status`` "failed" is printed like any other,
    with exit code 1.
    """
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    try:
        result = run(read_arguments(contract))
    except Failure as failure:
        result = {"status": "failed", "errors": [failure.error]}
    print(json.dumps(result, ensure_ascii=False, allow_nan=False))
    return 1 if result.get("status") == "failed" else 0


def read_arguments(contract: Path) -> dict[str, Any]:
    """Return the arguments on standard input with the contract's defaults filled in.

    Raises: Failure, when they are not one JSON object, or do not fit the contract's
    types, bounds and names.
    """
    try:
        arguments = json.loads(sys.stdin.buffer.read().decode("utf-8-sig") or "{}")
    except ValueError as error:
        raise Failure(
            "INVALID_INPUT",
            f"standard input is not JSON: {error}",
            "Send one JSON object.",
        ) from error
    if not isinstance(arguments, dict):
        raise Failure(
            "INVALID_INPUT",
            "the arguments are not a JSON object",
            'Send one JSON object: {"name": value}.',
        )
    schema = json.loads(contract.read_text(encoding="utf-8"))["input"]
    _check_object(arguments, schema, "")
    return {
        name: part["default"]
        for name, part in schema["properties"].items()
        if "default" in part
    } | arguments


def _check_object(arguments: dict[str, Any], schema: dict[str, Any], path: str) -> None:
    """Refuse *arguments* unless their names and values fit the properties of
    *schema*.
    """
    properties: dict[str, Any] = schema["properties"]
    for name in arguments:
        if name not in properties:
            # here and below: what few calls need, the others need not wait for
            import difflib

            close = difflib.get_close_matches(name, properties, 1)
            hint = (
                f"Did you mean {close[0]!r}?"
                if close
                else f"Known names: {', '.join(properties)}."
            )
            raise Failure(
                "INVALID_INPUT",
                f"there is no parameter {name!r}",
                hint,
                path=f"{path}/{name}",
            )
    for name in schema.get("required", []):
        if name not in arguments:
            hint = (
                f"Send {name!r}: "
                f"{properties[name].get('description', 'see the contract')}"
            )
            raise Failure(
                "MISSING_REQUIRED_PARAM",
                f"{name!r} is a required parameter",
                hint,
                path=f"{path}/{name}",
            )
    for name, value in arguments.items():
        _check(value, properties[name], f"{path}/{name}")


def _check(value: Any, schema: dict[str, Any], path: str) -> None:
    """Refuse *value* unless it fits the keywords of *schema* that these contracts
    use.
    """
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    fits = any(
        isinstance(value, TYPES[kind])
        and isinstance(value, bool) == (kind == "boolean")
        for kind in kinds
    )
    wrong = ""
    if kinds and not fits:
        wrong = f"is not of type {' or '.join(kinds)}"
    elif "enum" in schema and value not in schema["enum"]:
        wrong = f"is not one of {', '.join(map(str, schema['enum']))}"
    elif isinstance(value, str | list | dict):
        word, unit = SIZES[type(value)]
        least, most = f"min{word}", f"max{word}"
        if not schema.get(least, 0) <= len(value) <= schema.get(most, len(value)):
            wrong = (
                f"has not {schema.get(least, 0)} to "
                f"{schema.get(most, 'any number of')} {unit}"
            )
        elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
            wrong = f"does not match {schema['pattern']}"
        elif isinstance(value, dict) and "properties" in schema:
            _check_object(value, schema, path)
        inner = (
            schema.get("items")
            if isinstance(value, list)
            else schema.get("additionalProperties")
        )
        if isinstance(inner, dict) and not wrong and not isinstance(value, str):
            for key, part in (
                enumerate(value) if isinstance(value, list) else value.items()
            ):
                _check(part, inner, f"{path}/{key}")
    elif isinstance(value, int | float) and not schema.get(
        "minimum", value
    ) <= value <= schema.get("maximum", value):
        shown = f"{schema.get('minimum', 'any')} to {schema.get('maximum', 'any')}"
        raise Failure(
            "PARAM_OUT_OF_RANGE",
            f"{value} is not in {shown}",
            "Send a value inside it.",
            path=path,
        )
    if wrong:
        shown = (
            "the value"
            if schema.get("writeOnly")
            else json.dumps(value, ensure_ascii=False)[:60]
        )
        raise Failure(
            "INVALID_INPUT",
            f"{shown} {wrong}",
            schema.get("description", "See the contract."),
            path=path,
        )


def inside_workspace(name: str, path: str) -> Path:
    """Return the absolute path of *name* in the workspace; *path* is the JSON Pointer
    of the parameter.
    """
    root = Path.cwd().resolve()
    try:
        target = (root / name).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise Failure(
            "INVALID_INPUT",
            f"{name!r} is not a usable path",
            "Send a file name.",
            path=path,
        ) from error
    if target == root or not target.is_relative_to(root):
        action = "Name a file in the workspace, by a path relative to it."
        raise Failure(
            "INVALID_INPUT",
            f"{name!r} is not a file inside the workspace",
            action,
            path=path,
        )
    return target


def input_file(name: str, path: str, suffixes: tuple[str, ...]) -> Path:
    """Return the path of an existing file of the workspace; a miss names the files that
    could be meant.
    """
    target = inside_workspace(name, path)
    if target.is_file():
        return target
    import difflib

    found = (
        shown_path(file)
        for file in sorted(Path.cwd().rglob("*"))
        if file.name.lower().endswith(suffixes)
    )
    names = [file for file, _ in zip(found, range(200), strict=False)]
    close = difflib.get_close_matches(shown_path(target), names, 3, 0.3) or names[:5]
    action = (
        f"Files here: {', '.join(close)}."
        if close
        else f"Put a file ({', '.join(suffixes)}) in the workspace."
    )
    what = "is a directory" if target.is_dir() else "does not exist in the workspace"
    raise Failure("INVALID_INPUT", f"{shown_path(target)!r} {what}", action, path=path)


def shown_path(path: Path) -> str:
    """Return *path* as the caller knows it: relative to the workspace, with forward
    slashes.
    """
    root = Path.cwd().resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def check_output(
    target: Path, path: str, *, overwrite: bool, sources: tuple[Path, ...] = ()
) -> None:
    """Refuse early what :func:`write_output` would refuse: a directory, or a file that
    is one of the *sources*.
    """
    if target.is_dir() or any(parent.is_file() for parent in target.parents):
        raise Failure(
            "INVALID_INPUT",
            f"{shown_path(target)!r} cannot be a file",
            "Choose another name.",
            path=path,
        )
    if target in sources and not overwrite:
        action = "Choose another name, or send overwrite=true to replace the original."
        raise Failure(
            "INVALID_INPUT",
            f"{shown_path(target)!r} is also an input",
            action,
            path=path,
        )


def write_output(target: Path, data: bytes, path: str, *, overwrite: bool) -> None:
    """Write *data* whole or not at all. A file with other content is replaced only if
    *overwrite*.
    """
    if target.is_file() and not overwrite and target.read_bytes() != data:
        action = "Choose another name, or send overwrite=true."
        raise Failure(
            "INVALID_INPUT", f"{shown_path(target)!r} exists already", action, path=path
        )
    import tempfile

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".writing-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(target)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        message = f"{shown_path(target)!r} could not be written: {error.strerror}"
        raise Failure(
            "TOOL_EXECUTION_FAILED", message, "Check free space and permissions."
        ) from error
