"""Findings as people, programs, GitHub and code scanners read them."""

from __future__ import annotations

import json

from skillruntime.catalog.lint_report import REPORTS, to_github, to_json, to_sarif, to_text
from skillruntime.diagnostic import Diagnostic, Severity

FOUND = [
    Diagnostic("name-form", Severity.ERROR, "/work/pdf é/SKILL.md", "100% wrong:\nname", 2, 7, "write 'pdf'"),
    Diagnostic("description-when", Severity.ADVICE, "/work/pdf é/SKILL.md", "no when"),
]


def test_text_is_one_line_a_finding() -> None:
    """With the path from the root given."""
    assert to_text(FOUND[1:], "/work") == "pdf é/SKILL.md: advice: no when [description-when]"


def test_json_has_every_field_that_is_there() -> None:
    """An array of the diagnostics."""
    assert json.loads(to_json(FOUND, "/work"))[0] == {
        "rule": "name-form",
        "severity": "error",
        "path": "pdf é/SKILL.md",
        "line": 2,
        "column": 7,
        "message": "100% wrong:\nname",
        "hint": "write 'pdf'",
    }


def test_github_annotations_are_escaped() -> None:
    """As its workflow commands ask: per cent, line ends, and in fields colons and commas."""
    assert to_github(FOUND, "/work").split("\n") == [
        "::error file=pdf é/SKILL.md,line=2,col=7,title=name-form::100%25 wrong:%0Aname; write 'pdf'",
        "::notice file=pdf é/SKILL.md,title=description-when::no when",
    ]


def test_sarif_has_rules_levels_and_places() -> None:
    """Version 2.1.0: every result points at its rule; addresses are relative URIs."""
    document = json.loads(to_sarif(FOUND, "/work", version="1.0"))

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
    assert sorted(REPORTS) == ["github", "json", "sarif", "text"]
