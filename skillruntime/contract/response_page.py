"""Render a response for a notebook: its status, repairs, errors and data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from skillruntime.errors import SkillError

__all__ = ["response_page"]

_MOST_CHARACTERS = 2_000


def response_page(
    status: str, data: Any, errors: Sequence[SkillError], metadata: Mapping[str, Any]
) -> str:
    """Return the HTML of a response; *data* are JSON values."""
    name = escape(str(metadata.get("skill", "")))
    parts = [f"<div><b>{escape(status)}</b> {name}"]
    repairs = metadata.get("repairs") or []
    if repairs:
        parts.append(
            "<table><thead><tr><th>repaired</th><th>before</th><th>after</th>"
            "<th>rule</th></tr></thead><tbody>"
        )
        parts += map(_row, repairs)
        parts.append("</tbody></table>")
    parts += _listed(errors)
    if data is not None:
        text = json.dumps(data, ensure_ascii=False, indent=2, default=str)
        parts.append(f"<pre>{_shortened(text)}</pre>")
    parts.append("</div>")
    return "\n".join(parts)


def _row(repair: Mapping[str, Any]) -> str:
    where = escape(repair.get("path") or "the arguments")
    before, after = (_value(repair.get(key)) for key in ("before", "after"))
    rule = escape(str(repair.get("rule", "")))
    return f"<tr><td>{where}</td><td>{before}</td><td>{after}</td><td>{rule}</td></tr>"


def _value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f"<code>{_shortened(text)}</code>"


def _listed(errors: Sequence[SkillError]) -> Iterator[str]:
    if not errors:
        return
    yield "<ul>"
    for error in errors:
        action = error.suggested_action
        advice = f"<br>{escape(action)}" if action else ""
        yield f"<li><b>{error.code.value}</b> {escape(error.message)}{advice}</li>"
    yield "</ul>"


def _shortened(text: str) -> str:
    if len(text) > _MOST_CHARACTERS:
        text = f"{text[:_MOST_CHARACTERS]}…"
    return escape(text)
