"""Draft the contract files that an author starts from, derived from the scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from skillruntime.derive.command_line import tool_name
from skillruntime.derive.derivation import Derivation

__all__ = ["draft_contracts"]

FIRST_VERSION = "0.1.0"


def draft_contracts(
    derivations: Sequence[Derivation],
    frontmatter: Mapping[str, Any],
    *,
    version: str | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the documents of the skill's contract files, by their path in the skill.

    A single tool becomes ``contract.json``, several become ``contracts/NAME.json``; the
    result is empty if nothing can be derived.
    """
    first = version or _declared_version(frontmatter)
    # A version that is not a semantic one says nothing about compatibility.
    if not re.fullmatch(r"\d+\.\d+\.\d+([-+].*)?", first):
        first = FIRST_VERSION
    documents: dict[str, dict[str, Any]] = {}
    for derivation in derivations:
        document = json.loads(json.dumps(derivation.document))
        name = tool_name(str(document["run"]["script"]))
        path = f"contracts/{name}.json"
        if len(derivations) == 1:
            path = "contract.json"
        number = 2
        while path in documents:
            path = f"contracts/{name}-{number}.json"
            number += 1
        # These come first, for the reader of the file.
        head = {
            "title": document["title"],
            "description": document["description"],
            "version": first,
        }
        documents[path] = {**head, **document, "version": first}
    return documents


def _declared_version(frontmatter: Mapping[str, Any]) -> str:
    version = frontmatter.get("version")
    if not version:
        metadata = frontmatter.get("metadata") or {}
        version = metadata.get("version")
    return str(version or "")
