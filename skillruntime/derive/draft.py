"""The contract files that an author starts from: what is derived from scripts."""

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

    One tool is ``contract.json``, several are ``contracts/NAME.json``; where nothing
    can be derived, there are none.
    """
    stated = version or str(
        frontmatter.get("version")
        or (frontmatter.get("metadata") or {}).get("version")
        or ""
    )
    # A version that is not a semantic one says nothing about compatibility.
    first = stated if re.fullmatch(r"\d+\.\d+\.\d+([-+].*)?", stated) else FIRST_VERSION
    documents: dict[str, dict[str, Any]] = {}
    for derivation in derivations:
        document = json.loads(json.dumps(derivation.document))
        script = str(document["run"]["script"])
        ordered = {
            "title": document["title"],
            "description": document["description"],
            "version": first,
        }
        path = (
            "contract.json"
            if len(derivations) == 1
            else f"contracts/{tool_name(script)}.json"
        )
        number = 2
        while path in documents:
            path, number = f"contracts/{tool_name(script)}-{number}.json", number + 1
        documents[path] = ordered | {
            key: value for key, value in document.items() if key not in ordered
        }
    return documents
