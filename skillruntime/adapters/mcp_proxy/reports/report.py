"""Summarize a log: how many calls were repaired and refused, by tool, by rule and by
client.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from string import Template
from typing import Any

__all__ = ["OUTCOMES", "Report", "read_report", "to_html"]

OUTCOMES = ("passed", "repaired", "refused", "converted", "unchecked")


@dataclass(slots=True)
class Report:
    """Counts of one log. ``places`` counts ``(tool, path, rule or code)``: where
    schemas mislead models.

    ``schemas`` are the schemas of tools with wrong calls; ``refused`` counts the
    refused calls of each tool by their missing required parameters, and by the names
    and types that they have.
    """

    tools: dict[str, Counter[str]] = field(default_factory=dict)
    clients: dict[str, Counter[str]] = field(default_factory=dict)
    places: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: Counter[tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]] = field(
        default_factory=Counter
    )
    reasons: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0

    @property
    def total(self) -> Counter[str]:
        """Return the counts of all tools together."""
        return sum(self.tools.values(), Counter())

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        tools = {name: dict(counts) for name, counts in self.tools.items()}
        clients = {name: dict(counts) for name, counts in self.clients.items()}
        places = [
            {"tool": tool, "path": path, "rule": rule, "calls": calls}
            for (tool, path, rule), calls in self.places.most_common()
        ]
        return {
            "total": dict(self.total),
            "tools": tools,
            "clients": clients,
            "places": places,
            "unchecked": dict(self.reasons),
            "unreadable_lines": self.unreadable,
        }


def read_report(lines: Iterable[str]) -> Report:
    """Return the report on the *lines* of a log; a line that is not an entry is counted
    and does not raise an exception.

    >>> repairs = [{"path": "/a", "rule": "number-text"}]
    >>> call = {"event": "call", "tool": "add", "outcome": "repaired"}
    >>> entry = json.dumps({**call, "repairs": repairs})
    >>> read_report([entry, entry, "torn"]).places
    Counter({('add', '/a', 'number-text'): 2})
    """
    report = Report()
    for line in lines:
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            event, tool = entry.get("event"), str(entry.get("tool", ""))
            errors = entry.get("errors", ())
            places = _places(entry.get("repairs", ()), "rule")
            if event == "call":  # those of an output are texts
                places |= _places(errors, "code")
        except (ValueError, AttributeError, TypeError, RecursionError):
            # Another file, or a torn line.
            report.unreadable += 1
            continue
        if event == "schema" and isinstance(entry.get("schema"), dict):
            report.schemas[tool] = entry["schema"]
        if isinstance(entry.get("sent"), dict):
            sent = tuple((name, str(kind)) for name, kind in entry["sent"].items())
            report.refused[tool, _absent(places), sent] += 1
        if event == "output":  # the call was counted when it was forwarded
            report.places.update((tool, "(result)", str(error)) for error in errors)
        if event not in ("call", "converted"):
            continue
        outcome = str(entry.get("outcome", "converted"))
        report.tools.setdefault(tool, Counter())[outcome] += 1
        if event == "converted":  # the call itself was counted when it was forwarded
            report.tools[tool]["passed"] -= 1
        # A client of the handshake era that sends no `clientInfo` has no name.
        client = str(entry.get("client") or "unnamed")
        report.clients.setdefault(client, Counter())[outcome] += 1
        report.places.update((tool, path, rule) for path, rule in places)
        if entry.get("reason"):
            report.reasons[str(entry["reason"])] += 1
    return report


def _places(findings: Iterable[dict[str, Any]], key: str) -> set[tuple[str, str]]:
    """Return the path and the *key*, a rule or a code, of each repair or error."""
    places = set()
    for finding in findings:
        if key in finding:
            places.add((str(finding.get("path", "")), str(finding[key])))
    return places


def _absent(places: set[tuple[str, str]]) -> tuple[str, ...]:
    """Return the missing parameters of a call, according to its errors."""
    names = []
    for path, code in places:
        if code == "MISSING_REQUIRED_PARAM" and path.count("/") == 1:
            names.append(path[1:])
    return tuple(sorted(names))


def to_html(report: Report) -> str:
    """Return the report as one HTML page that needs nothing else."""
    total = report.total
    calls = sum(total.values()) or 1
    figures = "".join(
        f'<div class="figure {name}"><b>{total[name]:,}</b>{name} · '
        f"{total[name] / calls:.1%}</div>"
        for name in OUTCOMES
    )
    places = "".join(
        f"<tr><td>{escape(tool)}</td>"
        f"<td><code>{escape(path or '(whole)')}</code></td>"
        f"<td>{escape(rule)}</td>"
        f"<td class=n>{count:,}</td></tr>"
        for (tool, path, rule), count in report.places.most_common(200)
    )
    page = Template((Path(__file__).parent / "report.html").read_text("utf-8"))
    outcomes = "".join(f"<th class=n>{name}</th>" for name in OUTCOMES)
    tools, clients = _rows(report.tools), _rows(report.clients)
    return page.substitute(
        figures=figures, outcomes=outcomes, tools=tools, clients=clients, places=places
    )


def _rows(counts: dict[str, Counter[str]]) -> str:
    rows = []
    for name, each in sorted(counts.items(), key=lambda item: -sum(item[1].values())):
        calls = sum(each.values()) or 1
        bar = "".join(
            f'<i class="{outcome}" '
            f'style="width:{100 * each[outcome] / calls:.2f}%"></i>'
            for outcome in OUTCOMES
        )
        cells = "".join(
            f"<td class=n>{each[outcome] or ''}</td>" for outcome in OUTCOMES
        )
        rows.append(f"<tr><td>{escape(name)}</td>{cells}<td class=bar>{bar}</td></tr>")
    return "".join(rows)
