"""Findings as people, programs, GitHub and code scanners read them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillruntime.catalog.lint_report import to_github, to_sarif
from skillruntime.contract.schema import Schema
from skillruntime.diagnostic import Diagnostic, Severity

FOUND = [
    Diagnostic("name-form", Severity.ERROR, "/home/ann/pdf é/SKILL.md", "100% wrong:\nname", 2, 7, "write 'pdf'"),
    Diagnostic("description-when", Severity.ADVICE, "/home/ann/pdf é/SKILL.md", "no when"),
]


def test_github_annotations_are_escaped() -> None:
    """As its workflow commands ask: per cent, line ends, and in fields colons and commas."""
    assert to_github(FOUND, "/home/ann").split("\n") == [
        "::error file=pdf é/SKILL.md,line=2,col=7,title=name-form::100%25 wrong:%0Aname; write 'pdf'",
        "::notice file=pdf é/SKILL.md,title=description-when::no when",
    ]


def test_sarif_has_rules_levels_and_places() -> None:
    """Version 2.1.0: every result points at its rule; addresses are relative URIs."""
    document = json.loads(to_sarif(FOUND, "/home/ann", version="1.0"))

    (run,) = document["runs"]
    first, second = run["results"]
    assert document["version"] == "2.1.0"
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == first["ruleId"] == "name-form"
    assert (first["level"], second["level"]) == ("error", "note")
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "pdf%20%C3%A9/SKILL.md"},
        "region": {"startLine": 2, "startColumn": 7},
    }
    assert "region" not in second["locations"][0]["physicalLocation"]


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}


TEXT = {"type": "string", "minLength": 1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = _object("text", text=TEXT)
DESCRIPTION = _object("text", text={**TEXT, "maxLength": 1024})
PLACE = {"type": "integer", "minimum": 1}
URI = {"type": "string", "pattern": r"^(file:///)?([A-Za-z0-9_.~-]|%[0-9A-F]{2})([A-Za-z0-9_.~/-]|%[0-9A-F]{2})*$"}
RULE = _object(
    "id shortDescription fullDescription help",
    id={**TEXT, "maxLength": 255},
    shortDescription=DESCRIPTION,
    fullDescription=DESCRIPTION,
    help=DESCRIPTION,
    defaultConfiguration=_object("level", level=LEVEL),
)
DRIVER = _object(
    "name version rules",
    name=TEXT,
    version=TEXT,
    informationUri={"type": "string", "pattern": "^https://"},
    rules={"type": "array", "items": RULE, "uniqueItems": True},
)
LOCATION = _object(
    "physicalLocation",
    physicalLocation=_object(
        "artifactLocation",
        artifactLocation=_object("uri", uri=URI),
        region=_object("startLine startColumn", startLine=PLACE, startColumn=PLACE),
    ),
)
RESULT = _object(
    "ruleId ruleIndex level message locations",
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level=LEVEL,
    message=MESSAGE,
    locations={"type": "array", "minItems": 1, "maxItems": 1, "items": LOCATION},
)
RUN = _object(
    "tool results",
    tool=_object("driver", driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results={"type": "array", "items": RESULT},
)
SARIF = _object(
    "$schema version runs",
    **{
        "$schema": {"const": "https://json.schemastore.org/sarif-2.1.0.json"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "items": RUN},
    },
)
"""The part of SARIF 2.1.0 that we write, as narrow as GitHub's code scanning needs it: each result with a message and
one place, by a URI that is relative or a file's; lines and columns from 1; every rule with
its three texts."""


@pytest.mark.parametrize(
    "found",
    [
        [],
        FOUND,
        [Diagnostic("new-rule", Severity.WARNING, "/home/ann/a b/#1?%/:x/\udcff\u540d/SKILL.md", "odd path", 1)],
        [Diagnostic("name-form", Severity.ERROR, "c:\\skills\\pdf\\SKILL.md", "m" * 5_000, 3, 1)],
        [Diagnostic("root-missing", Severity.ERROR, "/elsewhere/SKILL.md", "gone")],
    ],
)
def test_sarif_fits_the_schema_of_code_scanning(found: list[Diagnostic]) -> None:
    """Every log fits SARIF 2.1.0 as GitHub reads it, for any path and message; each rule is listed once."""
    document = json.loads(to_sarif(found, "/home/ann", version="1.0").encode())

    assert [str(violation) for violation in Schema(SARIF).violations(document)] == []
    (run,) = document["runs"]
    identifiers = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(identifiers)) == len(identifiers)
    assert [identifiers[result["ruleIndex"]] for result in run["results"]] == [each.rule for each in found]
