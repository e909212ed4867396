"""The contract files that an author starts from: what is derived from scripts, or the frontmatter's argument hint."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from skillruntime.derive.command import Command
from skillruntime.derive.command_line import tool_name
from skillruntime.derive.contract_document import to_input_schema
from skillruntime.derive.derivation import Derivation
from skillruntime.derive.readers.usage import read_usage

__all__ = ["draft_contracts"]

FIRST_VERSION = "0.1.0"


def draft_contracts(
    derivations: Sequence[Derivation], frontmatter: Mapping[str, Any], *, version: str | None = None
) -> dict[str, dict[str, Any]]:
    """Return the documents of the skill's contract files, by their path in the skill.

    One tool is ``contract.json``, several are ``contracts/NAME.json``. Where nothing can be derived, a plain
    ``argument-hint`` of the frontmatter is a contract without a runner; without one there are no files.
    """
    stated = version or str(frontmatter.get("version") or (frontmatter.get("metadata") or {}).get("version") or "")
    # A version that is not a semantic one says nothing about compatibility.
    first = stated if re.fullmatch(r"\d+\.\d+\.\d+([-+].*)?", stated) else FIRST_VERSION
    if not derivations:
        hint = frontmatter.get("argument-hint")
        arguments = read_usage(hint) if isinstance(hint, str) else None
        if not arguments:
            return {}
        schema = to_input_schema(Command("words", arguments=arguments))
        return {
            "contract.json": {
                "description": _text(frontmatter.get("description")),
                "version": first,
                "input": schema,
            }
        }
    documents: dict[str, dict[str, Any]] = {}
    for derivation in derivations:
        document = json.loads(json.dumps(derivation.document))
        script = str(document["run"]["script"])
        ordered = {"title": document["title"], "description": document["description"], "version": first}
        path = "contract.json" if len(derivations) == 1 else f"contracts/{tool_name(script)}.json"
        number = 2
        while path in documents:
            path, number = f"contracts/{tool_name(script)}-{number}.json", number + 1
        documents[path] = ordered | {key: value for key, value in document.items() if key not in ordered}
    return documents


def _text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
