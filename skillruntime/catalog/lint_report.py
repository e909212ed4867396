"""Diagnostics as GitHub annotations and SARIF. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from skillruntime.catalog.skill_lint import RULES
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["to_github", "to_sarif"]

_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "notice"}
_SARIF = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "note"}


def to_github(diagnostics: Iterable[Diagnostic], root: str = "") -> str:
    """Return workflow commands that GitHub shows next to the lines of a pull request.

    >>> to_github([Diagnostic("name-form", Severity.ERROR, "pdf/SKILL.md", "100% wrong", 2, 7)])
    '::error file=pdf/SKILL.md,line=2,col=7,title=name-form::100%25 wrong'
    """
    return "\n".join(_github_line(each, root) for each in diagnostics)


def to_sarif(diagnostics: Sequence[Diagnostic], root: str = "", *, version: str = "0") -> str:
    """Return a SARIF 2.1.0 log with one run, for code scanners; *version* is this library's."""
    rules = sorted({each.rule for each in diagnostics} | set(RULES))
    run = {
        "tool": {"driver": {"name": "skillruntime", "version": version, "rules": list(map(_sarif_rule, rules))}},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(each, rules.index(each.rule), root) for each in diagnostics],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=2)


def _github_line(diagnostic: Diagnostic, root: str) -> str:
    fields = {
        "file": _relative(diagnostic.path, root),
        "line": diagnostic.line,
        "col": diagnostic.column,
        "title": diagnostic.rule,
    }
    stated = ",".join(f"{key}={_escaped(str(value), field=True)}" for key, value in fields.items() if value is not None)
    return f"::{_GITHUB[diagnostic.severity]} {stated}::{_escaped(_full_message(diagnostic))}"


def _escaped(text: str, *, field: bool = False) -> str:
    """Escape *text* for a workflow command (actions/toolkit, packages/core/src/command.ts)."""
    # The percent sign first: the other codes contain it.
    pairs = [("%", "%25"), ("\r", "%0D"), ("\n", "%0A")] + ([(":", "%3A"), (",", "%2C")] if field else [])
    for character, code in pairs:
        text = text.replace(character, code)
    return text


def _sarif_rule(rule: str) -> dict[str, Any]:
    known = RULES.get(rule)
    asks = {"text": known.asks if known else rule}
    # GitHub's code scanning requires all three texts.
    document: dict[str, Any] = {"id": rule, "shortDescription": asks, "fullDescription": asks, "help": asks}
    if known:
        document["defaultConfiguration"] = {"level": _SARIF[known.severity]}
    return document


def _sarif_result(diagnostic: Diagnostic, index: int, root: str) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(_relative(diagnostic.path, root))}}
    if diagnostic.line is not None:
        location["region"] = {"startLine": diagnostic.line, "startColumn": diagnostic.column or 1}
    return {
        "ruleId": diagnostic.rule,
        "ruleIndex": index,
        "level": _SARIF[diagnostic.severity],
        "message": {"text": _full_message(diagnostic)},
        "locations": [{"physicalLocation": location}],
    }


def _full_message(diagnostic: Diagnostic) -> str:
    return f"{diagnostic.message}; {diagnostic.hint}" if diagnostic.hint else diagnostic.message


def _relative(path: str, root: str) -> str:
    prefix = f"{root.rstrip('/')}/"
    return path[len(prefix) :] if root and path.startswith(prefix) else path


def _uri(path: str) -> str:
    from urllib.parse import quote  # only for SARIF

    uri = quote(path.replace("\\", "/"), errors="surrogatepass")
    if uri.startswith("/"):
        return f"file://{uri}"
    # A Windows path begins with a drive letter.
    return f"file:///{uri}" if path[1:2] == ":" else uri
