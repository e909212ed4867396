"""How the pages for people look: HTML of values. Nothing here asks the service or
decides anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any, Final

from skillruntime.remote.descriptor import ParameterDefinition
from skillruntime.remote.hosts import escape_segment
from skillruntime.remote.http_message import WireResponse
from skillruntime.remote.protocol import Execution, from_timestamp
from skillruntime.server.callers.access import Principal
from skillruntime.server.executions.ticket import Ticket


def _hash(text: str) -> str:
    """Return what names an inline style or script in a Content Security Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


_STYLE: Final = Path(__file__).with_name("console.css").read_text("utf-8")
_SCRIPT: Final = Path(__file__).with_name("console.js").read_text("utf-8")
# The page loads nothing and runs nothing but what is named by its hash, whatever a
# skill's output holds.
_HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": f"default-src 'none'; style-src '{_hash(_STYLE)}'; script-src "
    f"'{_hash(_SCRIPT)}'; connect-src 'self'; img-src data:; form-action "
    "'self'; frame-ancestors 'none'; base-uri 'none'",
}


def draw_page(
    heading: str,
    body: str,
    *,
    principal: Principal | None = None,
    was_bad: bool = False,
    status: int = 200,
    is_live: bool = False,
    forms: str = "",
) -> WireResponse:
    """Return a page as *principal* sees it; with *is_live*, *body* is drawn again while
    it is open, and not *forms*.
    """
    # Without scripts the whole page is loaded again, unless that would lose what is
    # typed.
    is_reloaded = is_live and "<textarea" not in forms
    again = (
        '<noscript><meta http-equiv="refresh" content="2"></noscript>'
        if is_reloaded
        else ""
    )
    live = ' data-live="1"' if is_live else ""
    script = f"<script>{_SCRIPT}</script>" if is_live else ""
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(heading)}</title>{again}'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head><body>'
        f'<header><a href="/ui">skillruntime</a>{_draw_caller(principal, was_bad)}</header>'
        f'<main><h1>{escape(heading)}</h1><div id="live"{live}>{body}</div><div id="forms">{forms}</div></main>'
        f"{script}</body></html>"
    )
    return WireResponse(status, _HEADERS, text.encode())


def _draw_caller(principal: Principal | None, was_bad: bool) -> str:
    """Who is signed in, and how to sign in or out."""
    if principal is not None:
        role = " (operator)" if principal.is_operator else ""
        return (
            f'<a href="/ui/executions">My executions</a><form method="post" action="/ui/key"><span>Signed in as '
            f"<strong>{escape(principal.id)}</strong>{role}</span><button>Sign out</button></form>"
        )
    problem = (
        '<p class="fault" role="alert">This key is not valid, or was revoked</p>'
        if was_bad
        else ""
    )
    return (
        '<form method="post" action="/ui/key"><input type="password" name="key" '
        'aria-label="API key" placeholder="API key" autocomplete="off"><button>Sign '
        f"in</button></form>{problem}"
    )


def draw_skill_card(skill: Mapping[str, Any]) -> str:
    """Return a skill of the discovery document."""
    return (
        f'<section class="card"><h2><a href="/ui/skills/{escape_segment(skill["id"])}">{escape(skill["name"])}</a></h2>'
        f'<p>{escape(skill["description"])}</p><p class="meta"><span class="tag">{escape(skill["capability_type"])}'
        f'</span> <span class="tag">{escape(skill["access"])}</span> {escape(skill["id"])} {escape(skill["version"])}'
        "</p></section>"
    )


def draw_execution_card(
    ticket: Ticket, execution: Execution, now: float, *, shows_owner: bool
) -> str:
    """Return one execution of a list: its skill, state, duration and arguments."""
    owner = f"{escape(ticket.owner)} · " if shows_owner else ""
    # As one line: the page of the execution shows all of it.
    arguments = json.dumps(ticket.arguments, ensure_ascii=False)
    shown = (
        arguments if len(arguments) <= _ARGUMENTS else arguments[: _ARGUMENTS - 1] + "…"
    )
    started = datetime.fromtimestamp(
        from_timestamp(execution.timestamps.created_at), UTC
    )
    return (
        f'<section class="card"><h2><a href="/ui/executions/{escape_segment(execution.execution_id)}">'
        f"{escape(execution.skill_id)}</a> {draw_status(execution.status.value)}</h2>"
        f'<p><code>{escape(shown)}</code></p><p class="meta">{owner}{started:%Y-%m-%d %H:%M:%S} UTC · '
        f"{draw_duration(execution, now)}</p></section>"
    )


def draw_status(status: str) -> str:
    """Return a state in its colour: what was cancelled has not failed."""
    return f'<span class="status {escape(status)}">{escape(status)}</span>'


def draw_duration(execution: Execution, now: float) -> str:
    """Return how long an execution took, or has taken until *now*."""
    stamps = execution.timestamps
    # The store's clock, as both moments are its own.
    end = (
        from_timestamp(stamps.completed_at) if stamps.completed_at is not None else now
    )
    seconds = max(0.0, end - from_timestamp(stamps.created_at))
    return (
        f"{seconds:.1f} s" if seconds < 60 else f"{timedelta(seconds=round(seconds))} h"
    )


def draw_field(
    parameter: ParameterDefinition, filled: str | None, faults: Sequence[str] = ()
) -> str:
    """Return a parameter as a form's field: a choice for an enumeration, JSON for what
    is neither text nor number.

    *faults* are what is wrong with what was *filled* in.
    """
    schema, name = parameter.to_schema(), escape(parameter.name)
    value = filled
    if value is None:
        default = schema.get("default", "")
        value = (
            default
            if isinstance(default, str)
            else ""
            if default is None
            else pretty(default)
        )
    more = f'name="{name}" id="{name}"' + (" required" if parameter.required else "")
    more += f' aria-invalid="true" aria-describedby="{name}-fault"' if faults else ""
    control = _draw_control(parameter, schema, value, more)
    notes = [parameter.description] if parameter.description else []
    if control.startswith("<textarea") and parameter.type != "string":
        notes.append(_JSON.get(parameter.type or "", 'JSON, such as 5 or "text"'))
    note = "".join(f"<small>{escape(text)}</small>" for text in notes)
    fault = "".join(
        f'<p class="fault" id="{name}-fault">{escape(text)}</p>' for text in faults
    )
    star = " *" if parameter.required else ""
    return f'<label for="{name}">{name}{star}{note}</label>{control}{fault}'


def _draw_control(
    parameter: ParameterDefinition, schema: Mapping[str, Any], value: str, more: str
) -> str:
    choices = schema.get("enum") or (
        ["true", "false"] if parameter.type == "boolean" else None
    )
    if choices:
        texts = [
            each if isinstance(each, str) else json.dumps(each) for each in choices
        ]
        options = "".join(
            f"<option{' selected' if text == value else ''}>{escape(text)}</option>"
            for text in ["", *texts]
        )
        return f"<select {more}>{options}</select>"
    if parameter.type in ("integer", "number"):
        step = "1" if parameter.type == "integer" else "any"
        return f'<input type="number" step="{step}" {more} value="{escape(value)}">'
    is_short = "format" in schema or (schema.get("maxLength") or 1000) <= 200
    if parameter.type == "string" and is_short:
        return f'<input {more} value="{escape(value)}">'
    return f"<textarea {more}>{escape(value)}</textarea>"


def violations_of(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what is wrong with an invocation, by input; under the empty name what
    belongs to none.
    """
    error = document.get("error")
    details = (error.get("details") or {}) if isinstance(error, Mapping) else {}
    found: dict[str, list[str]] = {}
    for each in details.get("violations", []):
        path = str(each.get("field", ""))
        # RFC 6901, section 4: ~1 before ~0, or "~01" would become a slash.
        name = (
            path.split("/")[2].replace("~1", "/").replace("~0", "~")
            if path.startswith("/inputs/")
            else ""
        )
        found.setdefault(name, []).append(
            str(each.get("message") or f"should be {each.get('expected')}")
        )
    return found


def draw_problem(document: Mapping[str, Any], faults: Sequence[str] = ()) -> str:
    """Return the error of an answer, or of an execution; empty where it has none.
    *faults* belong to no field.
    """
    error = document.get("error")
    if not isinstance(error, Mapping):
        return ""
    listed = "".join(f"<li>{escape(text)}</li>" for text in faults)
    code = escape(str(error.get("code")))
    # A caller who cancelled knows; red is for what went wrong.
    is_cancelled = error.get("code") == "EXECUTION_CANCELLED"
    kind, colour = ("card", "cancelled") if is_cancelled else ("card problem", "failed")
    return (
        f'<section class="{kind}"><p class="{colour}"><strong>{code}</strong></p>'
        f"<p>{escape(str(error.get('message')))}</p>{f'<ul>{listed}</ul>' if listed else ''}</section>"
    )


def pretty(value: Any) -> str:
    """Return *value* as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


_ARGUMENTS: Final = 200  # characters of arguments in a list
_JSON: Final[Mapping[str, str]] = {
    "array": 'JSON array, such as ["a", "b"]',
    "object": 'JSON object, such as {"name": 1}',
}
