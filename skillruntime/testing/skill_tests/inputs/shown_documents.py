"""Find JSON documents for the file that a script reads: those that the instructions
show as examples, then made ones with the members that the script reads.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any

from skillruntime.testing.skill_tests.inputs.script_members import (
    document_with_members,
    member_names,
)
from skillruntime.testing.skill_tests.inputs.shown_values import shown_values

__all__ = ["json_documents"]

_MOST_SHOWN = 3


def json_documents(
    modules: Sequence[ast.Module], instructions: str
) -> tuple[bytes, ...]:
    r"""Return JSON documents that the script in *modules* may read, the best first:
    first those in the code blocks of *instructions* with the most members that the
    script reads. They may have comments, as examples do.

    >>> tree = ast.parse("for row in rows: print(row['name'], row['age'])")
    >>> text = "```json\n[{\"name\": \"Ann\", /* years */ \"age\": 30}]\n```\n"
    >>> json_documents([tree], text)[0]
    b'[{"name": "Ann", "age": 30}]'
    """
    names = member_names(modules)
    ranked = []
    for value in shown_values(instructions):
        read = len(names & _members_of(value))
        if read or not modules:
            ranked.append((read, value))
    ranked.sort(key=lambda row: row[0], reverse=True)
    best = [value for _, value in ranked[:_MOST_SHOWN]]
    documents = [json.dumps(value, default=float).encode() for value in best]
    made = document_with_members(modules)
    if made is not None:
        documents += [made, b"[%b, %b]" % (made, made)]
    return tuple(dict.fromkeys(documents))


def _members_of(value: Any) -> set[str]:
    """Return the names of the members in *value*, at any depth."""
    found: set[str] = set()
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            found |= part.keys()
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return found
