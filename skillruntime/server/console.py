"""The pages for people: what is served, a contract as a form, an execution to follow. Drawn here, without scripts."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote

from skillruntime.remote.descriptor import ParameterDefinition, SkillDescriptor
from skillruntime.remote.hosts import escape_segment
from skillruntime.remote.http_message import WireRequest, WireResponse
from skillruntime.server.http_responses import without_content
from skillruntime.server.service import SkillService

__all__ = ["Pages"]

_COOKIE = "skillruntime-key"
_STYLE: Final = """
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--ok:#1a7f4b;--bad:#b3261e;--run:#8a6100;--link:#1d5fb8}
@media(prefers-color-scheme:dark){:root{--ok:#5fd39a;--bad:#ff8a80;--run:#e8c268;--link:#8ab8ff}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:0 auto;padding:1.5rem}
header{display:flex;gap:1rem;align-items:center;justify-content:space-between;flex-wrap:wrap;margin-bottom:1.5rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.15rem;margin:0}a{color:var(--link)}
header>a{font-weight:600;text-decoration:none}
.card{border:1px solid var(--line);border-radius:.6rem;padding:1rem 1.2rem;margin:.8rem 0}
.card p{margin:.3rem 0}.meta{opacity:.75;font-size:.875rem}
.tag{border:1px solid var(--line);border-radius:1rem;padding:.1rem .6rem;font-size:.8rem}
label{display:block;font-weight:600;margin-top:1rem}
label small{font-weight:400;opacity:.75;display:block}
input,textarea,select{font:inherit;width:100%;padding:.5rem .6rem;border:1px solid var(--line);border-radius:.4rem;
background:var(--soft);color:inherit}
textarea{min-height:4.5rem;font-family:ui-monospace,monospace}
button{font:inherit;font-weight:600;margin-top:1.2rem;padding:.5rem 1.2rem;border:0;border-radius:.4rem;
background:var(--link);color:Canvas;cursor:pointer}
header form{display:flex;gap:.5rem}header input{width:13rem}header button{margin:0}
pre{background:var(--soft);border:1px solid var(--line);border-radius:.4rem;padding:.8rem;overflow:auto;
white-space:pre-wrap;overflow-wrap:anywhere}
.status{font-weight:700}.completed{color:var(--ok)}.failed,.timeout,.cancelled{color:var(--bad)}
.running,.accepted{color:var(--run)}.problem{border-color:var(--bad)}
progress{width:100%}
"""
_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src data:; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
}


class Pages:
    """Draws the pages of a service; all that they show or do goes through its `SkillService.handle`.

    An API key typed into a page is kept in a cookie of this session that scripts cannot read.
    """

    def __init__(self, service: SkillService) -> None:
        self._service = service

    def knows(self, request: WireRequest) -> bool:
        """Whether the address is one of the pages'."""
        return request.path in ("/", "/ui") or request.path.startswith("/ui/")

    async def answer(self, request: WireRequest) -> WireResponse:
        """Draw the page, or do what its form says."""
        if request.method == "HEAD":
            return without_content(await self.answer(replace(request, method="GET")))
        parts = [unquote(part) for part in request.path.split("/") if part][1:]
        if request.method == "POST" and not _is_own(request):
            return _page("Refused", "<p>This form was sent from another place.</p>", status=403)
        match request.method, parts:
            case "GET", []:
                return await self._skills(request)
            case "POST", ["key"]:
                key = _form(request).get("key", "").strip()
                cookie = f"{_COOKIE}={quote(key)}; Path=/; HttpOnly; SameSite=Strict" + ("" if key else "; Max-Age=0")
                return WireResponse(303, {"location": "/ui", "set-cookie": cookie})
            case "GET", ["skills", skill_id]:
                return await self._form(request, skill_id, {}, "")
            case "POST", ["skills", skill_id]:
                return await self._invoke(request, skill_id)
            case "GET", ["executions", execution_id]:
                return await self._execution(request, execution_id)
            case "POST", ["executions", execution_id, "cancel"]:
                await self._ask(request, "DELETE", f"/executions/{escape_segment(execution_id)}")
                return _see_other(execution_id)
            case (("GET" | "POST"), _):
                return _page("Not found", "<p>This page does not exist.</p>", status=404)
            case _:
                refused = _page("Not here", "<p>This page supports GET and POST only.</p>", status=405)
                return replace(refused, headers={**refused.headers, "allow": "GET, HEAD, POST"})

    async def _skills(self, request: WireRequest) -> WireResponse:
        document = _json(await self._ask(request, "GET", "/.well-known/skill-sharing"))
        cards = [
            f'<section class="card"><h2><a href="/ui/skills/{escape_segment(skill["id"])}">'
            f"{escape(skill['name'])}</a></h2>"
            f"<p>{escape(skill['description'])}</p>"
            f'<p class="meta"><span class="tag">{escape(skill["capability_type"])}</span> '
            f'<span class="tag">{escape(skill["access"])}</span> '
            f"{escape(skill['id'])} {escape(skill['version'])}</p></section>"
            for skill in document.get("skills", [])
        ]
        problem = _problem(document)
        return _page("Skills", problem or "".join(cards) or "<p>No skill is visible to you.</p>", title="Skills")

    async def _form(
        self, request: WireRequest, skill_id: str, filled: Mapping[str, str], problem: str, status: int = 200
    ) -> WireResponse:
        response = await self._ask(request, "GET", f"/skills/{escape_segment(skill_id)}")
        if response.status != 200:
            return _page("Not found", _problem(_json(response)), status=response.status)
        descriptor = SkillDescriptor.from_dict(_json(response))
        fields = "".join(_field(each, filled.get(each.name)) for each in descriptor.inputs)
        body = (
            f"<p>{escape(descriptor.description)}</p>{problem}"
            f'<form method="post" action="/ui/skills/{escape_segment(skill_id)}">{fields}<button>Invoke</button></form>'
            f'<p class="meta">{escape(descriptor.id)} {escape(descriptor.version)} · '
            f"{escape(descriptor.provider.name)} · {escape(descriptor.access.value)} · "
            f'<a href="/skills/{escape_segment(skill_id)}">descriptor</a></p>'
        )
        return _page(descriptor.name, body, status=status)

    async def _invoke(self, request: WireRequest, skill_id: str) -> WireResponse:
        filled = _form(request)
        response = await self._ask(request, "GET", f"/skills/{escape_segment(skill_id)}")
        if response.status != 200:
            return _page("Not found", _problem(_json(response)), status=response.status)
        descriptor = SkillDescriptor.from_dict(_json(response))
        inputs = {each.name: _value(each, filled[each.name]) for each in descriptor.inputs if filled.get(each.name)}
        document = {"caller": {"id": "page", "type": "user"}, "skill_id": skill_id, "inputs": inputs}
        answer = await self._ask(request, "POST", f"/skills/{escape_segment(skill_id)}/invoke", document)
        shown = _json(answer)
        if "execution_id" in shown:
            return _see_other(shown["execution_id"])
        return await self._form(request, skill_id, filled, _problem(shown), status=answer.status)

    async def _execution(self, request: WireRequest, execution_id: str) -> WireResponse:
        response = await self._ask(request, "GET", f"/executions/{escape_segment(execution_id)}")
        shown = _json(response)
        if response.status != 200:
            return _page("Execution", _problem(shown), status=response.status)
        status = shown["status"]
        is_final = status not in ("accepted", "running")
        parts = [f'<p>Status: <span class="status {escape(status)}">{escape(status)}</span></p>']
        if "progress" in shown and not is_final:
            done, total = shown["progress"].get("done", 0), shown["progress"].get("total")
            bar = f' value="{done:g}" max="{total:g}"' if total else ""
            parts.append(f"<progress{bar}></progress><p>{escape(str(shown['progress'].get('message', '')))}</p>")
        if "output" in shown:
            parts.append(f"<h2>Output</h2><pre>{escape(_pretty(shown['output']))}</pre>")
        parts.append(_problem(shown))
        if not is_final:
            action = f"/ui/executions/{escape_segment(execution_id)}/cancel"
            parts.append(f'<form method="post" action="{action}"><button>Cancel</button></form>')
        stamps = " · ".join(f"{escape(name)} {escape(str(at))}" for name, at in shown["timestamps"].items())
        parts.append(f'<p class="meta">{escape(execution_id)}<br>{stamps}</p>')
        skill = escape_segment(shown["skill_id"])
        parts.append(f'<p><a href="/ui/skills/{skill}">Invoke {escape(shown["skill_id"])} again</a></p>')
        return _page("Execution", "".join(parts), refresh=0 if is_final else 1)

    async def _ask(self, request: WireRequest, method: str, path: str, document: Any = None) -> WireResponse:
        """Send a request to the service as the user of the page."""
        key = _cookie(request)
        headers = {"x-api-key": key} if key else {}
        body = b""
        if document is not None:
            headers["content-type"] = "application/json"
            body = json.dumps(document).encode()
        return await self._service.handle(replace(request, method=method, url=path, headers=headers, body=body))


def _page(heading: str, body: str, *, status: int = 200, refresh: int = 0, title: str = "") -> WireResponse:
    again = f'<meta http-equiv="refresh" content="{refresh}">' if refresh else ""
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title or heading)}</title>{again}'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head><body>'
        '<header><a href="/ui">skillruntime</a><form method="post" action="/ui/key">'
        '<input type="password" name="key" aria-label="API key" placeholder="API key" autocomplete="off">'
        f"<button>Use</button></form></header><main><h1>{escape(heading)}</h1>{body}</main></body></html>"
    )
    return WireResponse(status, _HEADERS, text.encode())


def _field(parameter: ParameterDefinition, filled: str | None) -> str:
    """One parameter as a form's field: a choice for an enumeration, JSON for anything but text and numbers."""
    schema = parameter.to_schema()
    default = schema.get("default")
    value = "" if default is None else default if isinstance(default, str) else _pretty(default)
    value = value if filled is None else filled
    required = " required" if parameter.required else ""
    name = escape(parameter.name)
    note = f"<small>{escape(parameter.description)}</small>" if parameter.description else ""
    star = " *" if parameter.required else ""
    choices = schema.get("enum") or (["true", "false"] if parameter.type == "boolean" else None)
    if choices:
        texts = [each if isinstance(each, str) else json.dumps(each) for each in choices]
        options = "".join(
            f"<option{' selected' if text == value else ''}>{escape(text)}</option>" for text in ["", *texts]
        )
        control = f'<select name="{name}" id="{name}"{required}>{options}</select>'
    elif parameter.type in ("integer", "number"):
        step = "1" if parameter.type == "integer" else "any"
        control = f'<input type="number" step="{step}" name="{name}" id="{name}" value="{escape(value)}"{required}>'
    elif parameter.type == "string" and ("format" in schema or (schema.get("maxLength") or 1000) <= 200):
        control = f'<input name="{name}" id="{name}" value="{escape(value)}"{required}>'
    else:
        control = f'<textarea name="{name}" id="{name}"{required}>{escape(value)}</textarea>'
    return f'<label for="{name}">{name}{star}{note}</label>{control}'


def _value(parameter: ParameterDefinition, text: str) -> Any:
    """Return *text* parsed as JSON unless the parameter is a string; the contract refuses what does not parse."""
    if parameter.type == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _problem(document: Mapping[str, Any]) -> str:
    error = document.get("error")
    if not isinstance(error, Mapping):
        return ""
    details = error.get("details") or {}
    lines = [
        f"<li>{escape(str(each.get('message') or each.get('expected')))} "
        f"<code>{escape(str(each.get('field')))}</code></li>"
        for each in details.get("violations", [])
        if isinstance(each, Mapping)
    ]
    listed = f"<ul>{''.join(lines)}</ul>" if lines else ""
    return (
        f'<section class="card problem"><p class="failed"><strong>{escape(str(error.get("code")))}</strong></p>'
        f"<p>{escape(str(error.get('message')))}</p>{listed}</section>"
    )


def _see_other(execution_id: str) -> WireResponse:
    return WireResponse(303, {"location": f"/ui/executions/{escape_segment(execution_id)}"})


def _is_own(request: WireRequest) -> bool:
    """Whether a form was sent from one of our own pages: browsers say where a POST comes from."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2] == request.headers.get("host")


def _form(request: WireRequest) -> dict[str, str]:
    text = request.body.decode("utf-8", "replace")
    return {name: values[-1] for name, values in parse_qs(text, max_num_fields=1000).items()}


def _cookie(request: WireRequest) -> str:
    for part in request.headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == _COOKIE:
            return unquote(value)
    return ""


def _json(response: WireResponse) -> dict[str, Any]:
    document = json.loads(response.body or b"{}")
    return document if isinstance(document, dict) else {}


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
