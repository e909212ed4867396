"""The data: sets of cases, each with an id that never changes.

A case has an ``id``, a JSON Schema ``schema``, a ``payload`` (an object, or the text
that a model wrote) and an ``answer``: the arguments that were meant, or ``"refuse"``.
With ``or_refuse`` a refusal is right too. It may have the ``tool``'s name, the
``finish_reason``, the ``thread`` that it is from, the ``kind`` of its error and a
``note``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REFUSE = "refuse"
DATA = Path(__file__).parent / "data"
FILES = ("threads", "recorded", "generated")
SETS = {
    "threads": "payloads of public issue threads",
    "recorded": "texts of a small open model that ended by itself",
    "generated": "calls of real servers' tools with one error made by program",
    "valid": "valid calls of the same tools, which must stay as they are",
    "cut off": "texts that the output limit ended, given without the finish reason",
}
LIMIT_REASONS = {"length", "max_tokens", "max_output_tokens", "MAX_TOKENS"}
"""The finish reasons of OpenAI, Anthropic, OpenAI's responses and Gemini for a text
that the output limit ended.
"""


def data_version() -> str:
    """Return the version of the data."""
    document = json.loads((DATA / "data.json").read_text(encoding="utf-8"))
    return str(document["version"])


def cases(name: str | None = None) -> list[dict[str, Any]]:
    """Return the cases of the set *name*, or of all sets.

    Raises:
        KeyError: there is no such set.
    """
    if name is not None and name not in SETS:
        raise KeyError(name)
    found = []
    for file in FILES:
        for case in rows(file):
            if name is None or set_of(file, case) == name:
                found.append(case)
    return found


def set_of(file: str, case: dict[str, Any]) -> str:
    """Return the name of the set that the *case* from *file* belongs to."""
    if case.get("finish_reason") in LIMIT_REASONS:
        return "cut off"
    if case.get("kind") == "valid":
        return "valid"
    return file


def rows(file: str) -> list[dict[str, Any]]:
    """Return the cases of one file, each with its schema in place of the tool's key."""
    found = _lines(file)
    schemas = {}
    if file == "generated":
        schemas = {each["key"]: each["schema"] for each in _lines("tools")}
    for row in found:
        if isinstance(row["schema"], str):
            row["schema"] = schemas[row["schema"]]
    return found


def tools() -> list[dict[str, Any]]:
    """Return the tools of the generated cases: key, server, version and schema."""
    return _lines("tools")


def kind_of_answer(case: dict[str, Any]) -> str:
    """Return ``"answer"``, ``"answer or refusal"`` or ``"refusal"``: what is right."""
    if case["answer"] == REFUSE:
        return "refusal"
    if case.get("or_refuse"):
        return "answer or refusal"
    return "answer"


def _lines(file: str) -> list[dict[str, Any]]:
    text = (DATA / f"{file}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]
