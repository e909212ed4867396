"""Draw the pages for people: turn values into HTML. This module neither calls the
service nor makes decisions.
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
    """Return the source expression of an inline style or script in a Content Security
    Policy.
    """
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


_STYLE: Final = Path(__file__).with_name("console.css").read_text("utf-8")
_SCRIPT: Final = Path(__file__).with_name("console.js").read_text("utf-8")
# The page loads nothing, and runs only this style and script, whatever a skill's output
# contains.
_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        f"style-src '{_hash(_STYLE)}'",
        f"script-src '{_hash(_SCRIPT)}'",
        "connect-src 'self'",
        "img-src data:",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ]
)
_HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": _POLICY,
}


def draw_page(
    heading: str,
    body: str,
    *,
    principal: Principal | None = None,
    was_bad: bool = False,
    status: int,
    is_live: bool = False,
    forms: str = "",
) -> WireResponse:
    """Return a page as *principal* sees it; with *is_live*, the open page redraws
    *body* but not *forms*.
    """
    refresh = ""
    live = ""
    script = ""
    if is_live:
        live = ' data-live="1"'
        script = f"<script>{_SCRIPT}</script>"
        # Without scripts the browser reloads the whole page, unless typed text would be
        # lost.
        if "<textarea" not in forms:
            refresh = '<noscript><meta http-equiv="refresh" content="2"></noscript>'
    title = escape(heading)
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{title}</title>{refresh}"
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>"
        f'<header><a href="/ui">skillruntime</a>{_draw_caller(principal, was_bad)}'
        f'</header><main><h1>{title}</h1><div id="live"{live}>{body}</div>'
        f'<div id="forms">{forms}</div></main>{script}</body></html>'
    )
    return WireResponse(status, _HEADERS, text.encode())


def _draw_caller(principal: Principal | None, was_bad: bool) -> str:
    """Return the caller's name with a button to sign out, or a form to sign in."""
    if principal is not None:
        role = " (operator)" if principal.is_operator else ""
        return (
            '<a href="/ui/executions">My executions</a>'
            '<form method="post" action="/ui/key"><span>Signed in as '
            f"<strong>{escape(principal.id)}</strong>{role}</span>"
            "<button>Sign out</button></form>"
        )
    form = (
        '<form method="post" action="/ui/key"><input type="password" name="key" '
        'aria-label="API key" placeholder="API key" autocomplete="off">'
        "<button>Sign in</button></form>"
    )
    if not was_bad:
        return form
    return (
        f'{form}<p class="fault" role="alert">This key is not valid, or was revoked</p>'
    )


def draw_skill_card(skill: Mapping[str, Any]) -> str:
    """Return a skill of the discovery document as a card."""
    address = f"/ui/skills/{escape_segment(skill['id'])}"
    return (
        f'<section class="card"><h2><a href="{address}">{escape(skill["name"])}</a>'
        f'</h2><p>{escape(skill["description"])}</p><p class="meta">'
        f'<span class="tag">{escape(skill["capability_type"])}</span> '
        f'<span class="tag">{escape(skill["access"])}</span> '
        f"{escape(skill['id'])} {escape(skill['version'])}</p></section>"
    )


def draw_execution_card(
    ticket: Ticket, execution: Execution, now: float, *, shows_owner: bool, forms: str
) -> str:
    """Return one execution of a list: its skill, state, duration and arguments, and
    *forms* that change it.
    """
    owner = f"{escape(ticket.owner)} · " if shows_owner else ""
    # The arguments are cut to one line; the execution's own page shows all of them.
    arguments = json.dumps(ticket.arguments, ensure_ascii=False)
    if len(arguments) > _ARGUMENTS:
        arguments = arguments[: _ARGUMENTS - 1] + "…"
    created_at = from_timestamp(execution.timestamps.created_at)
    started = datetime.fromtimestamp(created_at, UTC)
    address = f"/ui/executions/{escape_segment(execution.execution_id)}"
    return (
        f'<section class="card"><h2><a href="{address}">'
        f"{escape(execution.skill_id)}</a> {draw_status(execution.status.value)}</h2>"
        f'<p><code>{escape(arguments)}</code></p><p class="meta">{owner}'
        f"{started:%Y-%m-%d %H:%M:%S} UTC · {draw_duration(execution, now)}"
        f"</p>{forms}</section>"
    )


def draw_status(status: str) -> str:
    """Return a state in its colour; a cancelled execution does not look failed."""
    return f'<span class="status {escape(status)}">{escape(status)}</span>'


def draw_duration(execution: Execution, now: float) -> str:
    """Return how long an execution took, or has taken until *now*."""
    stamps = execution.timestamps
    # *now* comes from the store's clock, like the timestamps.
    end = now
    if stamps.completed_at is not None:
        end = from_timestamp(stamps.completed_at)
    seconds = max(0.0, end - from_timestamp(stamps.created_at))
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{timedelta(seconds=round(seconds))} h"


def draw_field(
    parameter: ParameterDefinition, filled: str | None, faults: Sequence[str] = ()
) -> str:
    """Return a parameter as a form's field: a choice for an enumeration, JSON for a
    value that is neither text nor number.

    *faults* are the errors of the value that was *filled* in.
    """
    schema = parameter.to_schema()
    name = escape(parameter.name)
    value = filled
    if value is None:
        value = _draw_default(schema.get("default"))
    attributes = f'name="{name}" id="{name}"'
    star = ""
    if parameter.required:
        attributes += " required"
        star = " *"
    if faults:
        attributes += f' aria-invalid="true" aria-describedby="{name}-fault"'
    control = _draw_control(parameter, schema, value, attributes)
    notes = [parameter.description] if parameter.description else []
    if control.startswith("<textarea") and parameter.type != "string":
        notes.append(_JSON.get(parameter.type or "", 'JSON, such as 5 or "text"'))
    note = "".join(f"<small>{escape(text)}</small>" for text in notes)
    fault = "".join(
        f'<p class="fault" id="{name}-fault">{escape(text)}</p>' for text in faults
    )
    return f'<label for="{name}">{name}{star}{note}</label>{control}{fault}'


def _draw_default(default: Any) -> str:
    """Return a parameter's default as a form's text; empty if it has no default."""
    if default is None:
        return ""
    if isinstance(default, str):
        return default
    return pretty(default)


def _draw_control(
    parameter: ParameterDefinition,
    schema: Mapping[str, Any],
    value: str,
    attributes: str,
) -> str:
    """Return the HTML element in which the user types or chooses a value."""
    choices = schema.get("enum")
    if not choices and parameter.type == "boolean":
        choices = ["true", "false"]
    if choices:
        return _draw_choices(choices, value, attributes)
    if parameter.type in ("integer", "number"):
        step = "1" if parameter.type == "integer" else "any"
        return (
            f'<input type="number" step="{step}" {attributes} value="{escape(value)}">'
        )
    is_short = "format" in schema or (schema.get("maxLength") or 1000) <= 200
    if parameter.type == "string" and is_short:
        return f'<input {attributes} value="{escape(value)}">'
    return f"<textarea {attributes}>{escape(value)}</textarea>"


def _draw_choices(choices: Sequence[Any], value: str, attributes: str) -> str:
    options = "<option></option>"
    if value == "":
        options = "<option selected></option>"
    for choice in choices:
        text = choice if isinstance(choice, str) else json.dumps(choice)
        selected = " selected" if text == value else ""
        options += f"<option{selected}>{escape(text)}</option>"
    return f"<select {attributes}>{options}</select>"


def violations_of(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the violations of an invocation by the name of the input; a violation that
    belongs to no input has the empty name.
    """
    error = document.get("error")
    if not isinstance(error, Mapping):
        return {}
    details = error.get("details") or {}
    texts: dict[str, list[str]] = {}
    for violation in details.get("violations", []):
        path = str(violation.get("field", ""))
        name = ""
        if path.startswith("/inputs/"):
            # RFC 6901, section 4: ~1 before ~0, or "~01" would become a slash.
            name = path.split("/")[2].replace("~1", "/").replace("~0", "~")
        text = violation.get("message") or f"should be {violation.get('expected')}"
        texts.setdefault(name, []).append(str(text))
    return texts


def draw_problem(document: Mapping[str, Any], faults: Sequence[str] = ()) -> str:
    """Return the error of an answer or of an execution; empty if there is no error.
    *faults* belong to no field.
    """
    error = document.get("error")
    if not isinstance(error, Mapping):
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in faults)
    listed = f"<ul>{items}</ul>" if items else ""
    code = escape(str(error.get("code")))
    message = escape(str(error.get("message")))
    # Red is for failures, and a caller who cancelled the execution knows that.
    kind = "card problem"
    colour = "failed"
    if error.get("code") == "EXECUTION_CANCELLED":
        kind = "card"
        colour = "cancelled"
    return (
        f'<section class="{kind}"><p class="{colour}"><strong>{code}</strong></p>'
        f"<p>{message}</p>{listed}</section>"
    )


def draw_exit(metadata: Mapping[str, Any]) -> str:
    """Return the exit code of a script that failed, and its stderr."""
    drawn = ""
    if "exit_code" in metadata:
        ended = str(metadata["exit_code"])
        if "exit_meaning" in metadata:
            ended = f"{ended}: {metadata['exit_meaning']}"
        drawn = f"<p>Exit code: {escape(ended)}</p>"
    if "stderr" in metadata:
        drawn += f"<h2>stderr</h2><pre>{escape(str(metadata['stderr']))}</pre>"
    return drawn


def pretty(value: Any) -> str:
    """Return *value* as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


_ARGUMENTS: Final = 200  # the most characters of arguments in a list
_JSON: Final[Mapping[str, str]] = {
    "array": 'JSON array, such as ["a", "b"]',
    "object": 'JSON object, such as {"name": 1}',
}
