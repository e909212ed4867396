"""The contract files that an author starts from: what is derived from scripts, and what the frontmatter declares."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from skillruntime.derive.command import Command
from skillruntime.derive.contract_document import to_input_schema
from skillruntime.derive.derivation import Derivation
from skillruntime.derive.readers.usage import read_usage

__all__ = ["draft_contracts", "schema_from_frontmatter", "tool_name"]

FIRST_VERSION = "0.1.0"

_TYPES = {
    **dict.fromkeys(("string", "str", "text", "url", "date", "datetime"), "string"),
    **dict.fromkeys(("integer", "int"), "integer"),
    **dict.fromkeys(("number", "float", "double"), "number"),
    **dict.fromkeys(("boolean", "bool", "flag"), "boolean"),
    **dict.fromkeys(("array", "list", "string[]"), "array"),
    **dict.fromkeys(("object", "dict", "map", "json"), "object"),
}
_PATHS = ("path", "file", "filepath", "directory")


def tool_name(script: str) -> str:
    """Return the name of the tool that the script at this path is.

    >>> tool_name("scripts/fill_form.py")
    'fill-form'
    """
    stem = posixpath.splitext(posixpath.basename(script))[0]
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or "script"


def draft_contracts(
    derivations: Sequence[Derivation], frontmatter: Mapping[str, Any], *, version: str | None = None
) -> dict[str, dict[str, Any]]:
    """Return the documents of the skill's contract files, by their path in the skill.

    One tool is ``contract.json``, several are ``contracts/NAME.json``. Where nothing can be derived, what the
    frontmatter declares (``inputs``, ``parameters``, ``input_schema``, ``argument-hint``) is a contract without a
    runner. If those are not declared either, there are no files.
    """
    declared = schema_from_frontmatter(frontmatter)
    stated = version or str(frontmatter.get("version") or (frontmatter.get("metadata") or {}).get("version") or "")
    # A version that is not a semantic one says nothing about compatibility.
    first = stated if re.fullmatch(r"\d+\.\d+\.\d+([-+].*)?", stated) else FIRST_VERSION
    if not derivations:
        if declared is None:
            return {}
        document = {"description": _text(frontmatter.get("description")), "version": first, "input": declared}
        return {"contract.json": document}
    documents: dict[str, dict[str, Any]] = {}
    for derivation in derivations:
        document = json.loads(json.dumps(derivation.document))
        script = str(document["run"]["script"])
        if not document.get("description") and len(derivations) == 1:
            document["description"] = _text(frontmatter.get("description"))
        # The frontmatter speaks of the skill; with several scripts it is unknown which it means.
        if declared is not None and len(derivations) == 1:
            _complete(document["input"], declared)
        ordered = {"title": document["title"], "description": document["description"], "version": first}
        path = "contract.json" if len(derivations) == 1 else f"contracts/{tool_name(script)}.json"
        number = 2
        while path in documents:
            path, number = f"contracts/{tool_name(script)}-{number}.json", number + 1
        documents[path] = ordered | {key: value for key, value in document.items() if key not in ordered}
    return documents


def schema_from_frontmatter(frontmatter: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the input schema that a frontmatter declares, in any of the forms found in the wild; None if none.

    >>> schema_from_frontmatter({"inputs": [{"name": "url", "type": "string", "required": True}]})["required"]
    ['url']
    >>> list(schema_from_frontmatter({"argument-hint": "[file] [--fix]"})["properties"])
    ['file', 'fix']
    """
    # All of these were found in published skills; none is part of the Agent Skills format.
    for key in ("input_schema", "inputSchema", "inputs", "parameters", "input", "arguments"):
        declared = frontmatter.get(key)
        if isinstance(declared, Mapping) and isinstance(declared.get("properties"), Mapping):
            return {"type": "object", **declared}
        if isinstance(declared, Mapping) and declared:
            return _object({str(name): each for name, each in declared.items()})
        if isinstance(declared, list) and declared:
            named = [each if isinstance(each, Mapping) else {"name": each} for each in declared]
            pairs = {str(_name_of(each)): _without_name(each) for each in named if _name_of(each) is not None}
            return _object(pairs) if pairs else None
    hint = frontmatter.get("argument-hint")
    if isinstance(hint, list):
        hint = " ".join(f"[{each}]" for each in hint)
    arguments = read_usage(hint) if isinstance(hint, str) else None
    return to_input_schema(Command("words", arguments=arguments)) if arguments else None


def _name_of(each: Mapping[str, Any]) -> Any:
    if "name" in each:
        return each["name"]
    return next(iter(each), None) if len(each) == 1 else None


def _without_name(each: Mapping[str, Any]) -> Any:
    if "name" in each:
        return {key: value for key, value in each.items() if key != "name"}
    return next(iter(each.values()))


def _object(declared: Mapping[str, Any]) -> dict[str, Any]:
    properties = {name: _parameter(each) for name, each in declared.items()}
    required = [name for name, each in declared.items() if isinstance(each, Mapping) and each.get("required") is True]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | ({"required": required} if required else {}) | {"additionalProperties": False}


def _parameter(each: Any) -> dict[str, Any]:
    if isinstance(each, str):
        return {"type": _TYPES[each]} if each in _TYPES else {"description": each}
    if not isinstance(each, Mapping):
        return {}
    schema: dict[str, Any] = {}
    kind = str(each.get("type", "")).lower()
    if kind in _PATHS:
        schema = {"type": "string", "format": "path"}
    elif kind in _TYPES:
        schema = {"type": _TYPES[kind]}
    choices = each.get("enum") or each.get("options") or each.get("choices")
    if isinstance(choices, list) and choices:
        schema["enum"] = choices
    if text := _text(each.get("description") or each.get("desc") or each.get("help")):
        schema["description"] = text
    for key in ("default", "minimum", "maximum", "pattern", "items", "minItems", "maxItems", "examples"):
        if each.get(key) is not None:
            schema[key] = each[key]
    return schema


def _complete(schema: dict[str, Any], declared: Mapping[str, Any]) -> None:
    """Give parameters that are not described the frontmatter's words; what the script declares stays as it is."""
    for level in [schema, *schema.get("oneOf", [])]:
        for name, parameter in level.get("properties", {}).items():
            known = declared["properties"].get(name) or declared["properties"].get(name.replace("_", "-"))
            if isinstance(known, Mapping) and "description" not in parameter and known.get("description"):
                parameter["description"] = known["description"]


def _text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
