"""The pages for people: the skills, a contract as a form, the caller's executions, and
tasks for operators.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from itertools import chain
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote

from skillruntime.remote.descriptor import (
    CapabilityType,
    ParameterDefinition,
    SkillDescriptor,
)
from skillruntime.remote.hosts import escape_segment
from skillruntime.remote.http_message import WireRequest, WireResponse
from skillruntime.server.callers.access import READ
from skillruntime.server.callers.authorization import Call, check_scope
from skillruntime.server.console import drawing
from skillruntime.server.executions.errors import DatabaseAwayError
from skillruntime.server.executions.executions import Page
from skillruntime.server.http.responses import (
    RefusedError,
    refuse_for_database,
    without_content,
)
from skillruntime.server.service import SkillService

__all__ = ["Pages"]

_COOKIE: Final = "skillruntime-key"
_LISTED: Final = 25  # executions on a page


class Pages:
    """Draws the pages of a service; all that they change goes through its
    `SkillService.handle`.

    An API key typed into a page is kept in a cookie of this session that scripts cannot
    read.
    """

    def __init__(self, service: SkillService) -> None:
        self._service = service

    def knows(self, request: WireRequest) -> bool:
        """Return whether the address is one of the pages'."""
        return request.path in ("/", "/ui") or request.path.startswith("/ui/")

    async def answer(self, request: WireRequest) -> WireResponse:
        """Return the page, or carry out its form."""
        if request.method == "HEAD":
            return without_content(await self.answer(replace(request, method="GET")))
        segments = [segment for segment in request.path.split("/") if segment]
        parts = [unquote(segment) for segment in segments[1:]]
        # The cookie is SameSite=Strict; this also covers browsers that do not know the
        # attribute.
        if request.method == "POST" and not _is_own(request):
            return drawing.draw_page(
                "Refused", "<p>This form was sent from another place.</p>", status=403
            )
        if request.method == "POST" and parts == ["key"]:
            return await self._sign_in(request)
        call = await self._service.identify(_as_caller(request, _cookie(request)))
        page = _Page(self._service, call)
        try:
            return await self._draw(page, request, parts)
        except DatabaseAwayError as error:
            document = refuse_for_database(error).document
            problem = drawing.draw_problem(document.to_envelope())
            # A form must not be sent again unasked.
            is_live = request.method == "GET"
            return page.draw("Try again", problem, status=503, is_live=is_live)

    async def _draw(
        self, page: _Page, request: WireRequest, parts: list[str]
    ) -> WireResponse:
        match request.method, parts:
            case "GET", []:
                return await page.skills()
            case "GET", ["skills", skill_id]:
                return await page.form(skill_id, {}, {})
            case "POST", ["skills", skill_id]:
                return await page.invoke(skill_id, _form(request))
            case "GET", ["executions"]:
                return await page.executions(parse_qs(request.query))
            case "GET", ["executions", execution_id]:
                return await page.execution(execution_id)
            case "POST", ["executions", execution_id, "cancel"]:
                await page.ask("DELETE", f"/executions/{escape_segment(execution_id)}")
                return _see_other(f"/ui/executions/{escape_segment(execution_id)}")
            case "POST", ["executions", execution_id, "complete"]:
                return await page.complete(execution_id, _form(request))
            case (("GET" | "POST"), _):
                return page.draw(
                    "Not found", "<p>This page does not exist.</p>", status=404
                )
            case _:
                refused = page.draw(
                    "Not here",
                    "<p>This page supports GET and POST only.</p>",
                    status=405,
                )
                return replace(
                    refused, headers={**refused.headers, "allow": "GET, HEAD, POST"}
                )

    async def _sign_in(self, request: WireRequest) -> WireResponse:
        """Keep a key that is valid; a form without a key deletes the kept one."""
        key = _form(request).get("key", "").strip()
        call = await self._service.identify(_as_caller(request, key))
        # Not kept: every page would report it, and each would count as an attempt to
        # guess a key.
        if call.was_bad:
            return drawing.draw_page(
                "Sign in",
                "<p>Type the key as it was printed.</p>",
                was_bad=True,
                status=401,
            )
        cookie = f"{_COOKIE}={quote(key)}; Path=/; HttpOnly; SameSite=Strict"
        if not key:
            cookie += "; Max-Age=0"
        return WireResponse(303, {"location": "/ui", "set-cookie": cookie})


class _Page:
    """The pages as one caller sees them."""

    def __init__(self, service: SkillService, call: Call) -> None:
        self._service = service
        self._call = call

    def draw(
        self,
        heading: str,
        body: str,
        *,
        status: int = 200,
        is_live: bool = False,
        forms: str = "",
    ) -> WireResponse:
        """Return a page with the caller in its head."""
        return drawing.draw_page(
            heading,
            body,
            principal=self._call.principal,
            was_bad=self._call.was_bad,
            status=status,
            is_live=is_live,
            forms=forms,
        )

    async def ask(self, method: str, path: str, document: Any = None) -> WireResponse:
        """Send a request to the service as the user of the page."""
        headers = {**self._call.request.headers, "skill-extensions": "cancelled"}
        body = b""
        if document is not None:
            headers["content-type"] = "application/json"
            body = json.dumps(document).encode()
        return await self._service.handle(
            replace(
                self._call.request, method=method, url=path, headers=headers, body=body
            )
        )

    async def skills(self) -> WireResponse:
        """Return the list of the skills that this caller may see."""
        document = _json(await self.ask("GET", "/.well-known/skill-sharing"))
        body = drawing.draw_problem(document)
        if not body:
            body = "".join(map(drawing.draw_skill_card, document.get("skills", [])))
        return self.draw("Skills", body or "<p>No skill is visible to you.</p>")

    async def form(
        self,
        skill_id: str,
        filled: Mapping[str, str],
        answer: Mapping[str, Any],
        status: int = 200,
    ) -> WireResponse:
        """Return a contract as a form, with the values that were *filled* in and the
        errors of the service's *answer* to them.
        """
        path = f"/skills/{escape_segment(skill_id)}"
        response = await self.ask("GET", path)
        if response.status != 200:
            return self._not_found(response)
        descriptor = SkillDescriptor.from_dict(_json(response))
        faults = drawing.violations_of(answer)
        fields = ""
        for parameter in descriptor.inputs:
            texts = faults.pop(parameter.name, [])
            fields += drawing.draw_field(parameter, filled.get(parameter.name), texts)
        # The faults that are left belong to no field.
        others = list(chain.from_iterable(faults.values()))
        body = (
            f"<p>{escape(descriptor.description)}</p>"
            f"{drawing.draw_problem(answer, others)}"
            f'<form method="post" action="/ui{path}">{fields}'
            "<button>Invoke</button></form>"
            f'<p class="meta">{escape(descriptor.id)} {escape(descriptor.version)} · '
            f"{escape(descriptor.provider.name)} · "
            f"{escape(descriptor.access.value)} · "
            f'<a href="{path}">descriptor</a></p>'
        )
        return self.draw(descriptor.name, body, status=status)

    async def invoke(self, skill_id: str, filled: Mapping[str, str]) -> WireResponse:
        """Begin an execution with the values that were filled in."""
        path = f"/skills/{escape_segment(skill_id)}"
        response = await self.ask("GET", path)
        if response.status != 200:
            return self._not_found(response)
        descriptor = SkillDescriptor.from_dict(_json(response))
        # An empty field counts as left out: HTML cannot express the difference.
        inputs = {
            parameter.name: _value(parameter, filled[parameter.name])
            for parameter in descriptor.inputs
            if filled.get(parameter.name)
        }
        document = {
            "caller": {"id": "page", "type": "user"},
            "skill_id": skill_id,
            "inputs": inputs,
        }
        answer = await self.ask("POST", f"{path}/invoke", document)
        shown = _json(answer)
        if "execution_id" in shown:
            return _see_other(f"/ui/executions/{escape_segment(shown['execution_id'])}")
        # The typed values stay in the form, each beside its errors.
        return await self.form(skill_id, filled, shown, status=answer.status)

    def _not_found(self, response: WireResponse) -> WireResponse:
        problem = drawing.draw_problem(_json(response))
        return self.draw("Not found", problem, status=response.status)

    async def executions(self, query: Mapping[str, list[str]]) -> WireResponse:
        """Return the list of the caller's executions, the newest first; an operator may
        see everyone's.
        """
        principal = self._call.principal
        cursor = query.get("cursor", [None])[-1]
        if principal is None:
            return self.draw(
                "My executions", "<p>Sign in to see your executions.</p>", status=401
            )
        shows_all = principal.is_operator and query.get("all") == ["1"]
        try:
            # The list is read from the store, past `handle`, for the arguments are in
            # no document of the protocol.
            check_scope(principal.may_read, READ)
            store = self._service.executions
            owner = None if shows_all else principal.id
            page = await store.list(owner, limit=_LISTED, cursor=cursor)
            waiting = Page(())
            if cursor is None:
                waiting = await store.tasks(owner, limit=_LISTED)
        except RefusedError as refusal:
            return self.draw(
                "My executions",
                drawing.draw_problem(refusal.document.to_envelope()),
                status=403,
            )
        except ValueError:
            return self.draw(
                "My executions",
                "<p>This page of the list does not exist.</p>",
                status=400,
            )
        body = ""
        if principal.is_operator:
            body += _draw_switch(shows_all)
        if waiting.executions:
            body += "<h2>Tasks that wait</h2>"
            body += self._cards(waiting, shows_all)
            body += "<h2>All</h2>"
        body += self._cards(page, shows_all)
        if page.next_cursor is not None:
            body += _draw_next(page.next_cursor, shows_all)
        if not page.executions:
            body += "<p>There are none yet.</p>"
        is_live = any(not execution.is_final for execution in page.executions)
        heading = "All executions" if shows_all else "My executions"
        return self.draw(heading, body, is_live=is_live)

    def _cards(self, page: Page, shows_owner: bool) -> str:
        now = self._service.executions.now()
        return "".join(
            drawing.draw_execution_card(ticket, execution, now, shows_owner=shows_owner)
            for ticket, execution in zip(page.tickets, page.executions, strict=True)
        )

    async def execution(
        self, execution_id: str, problem: str = "", filled: str = "", status: int = 200
    ) -> WireResponse:
        """Return one execution as it is now; an operator can complete a task that
        waits.
        """
        response = await self.ask("GET", f"/executions/{escape_segment(execution_id)}")
        shown = _json(response)
        if response.status != 200:
            return self.draw(
                "Execution", drawing.draw_problem(shown), status=response.status
            )
        # The page asks with the extension `cancelled`, so that the status is one of 6.4
        # or cancelled.
        is_final = shown["status"] not in ("accepted", "running")
        body = f"<p>Status: {drawing.draw_status(shown['status'])}</p>"
        # An operator who completes a task must see its arguments. The service answered
        # this user, who may therefore see the execution.
        found = await self._service.executions.get(execution_id)
        if found is not None:
            body += _draw_value("Arguments", found[0].arguments)
        if "progress" in shown and not is_final:
            body += _draw_progress(shown["progress"])
        if "output" in shown:
            body += _draw_value("Output", shown["output"])
        body += drawing.draw_exit(shown.get("metadata") or {})
        body += drawing.draw_problem(shown)
        stamps = " · ".join(
            f"{escape(name)} {escape(str(at))}"
            for name, at in shown["timestamps"].items()
        )
        body += f'<p class="meta">{escape(execution_id)}<br>{stamps}</p>'
        forms = "" if is_final else self._forms(shown, problem, filled)
        skill_id = shown["skill_id"]
        forms += (
            f'<p><a href="/ui/skills/{escape_segment(skill_id)}">Invoke '
            f"{escape(skill_id)} again</a></p>"
        )
        return self.draw(
            "Execution", body, status=status, is_live=not is_final, forms=forms
        )

    def _forms(self, shown: Mapping[str, Any], problem: str, filled: str) -> str:
        """Return the forms that change an execution that has not ended."""
        action = f"/ui/executions/{escape_segment(shown['execution_id'])}"
        cancel = (
            f'<form method="post" action="{action}/cancel">'
            "<button>Cancel</button></form>"
        )
        if not self._may_complete(shown["skill_id"]):
            return problem + cancel
        complete = (
            f'<form method="post" action="{action}/complete">'
            '<label for="output">Output'
            "<small>JSON, such as {&quot;approved&quot;: true}</small></label>"
            f'<textarea name="output" id="output" required>{escape(filled)}</textarea>'
            "<button>Complete the task</button></form>"
        )
        return problem + complete + cancel

    async def complete(
        self, execution_id: str, filled: Mapping[str, str]
    ) -> WireResponse:
        """End a task with the output that an operator typed."""
        text = filled.get("output", "")
        try:
            output = json.loads(text)
        # RecursionError: arrays in arrays in arrays.
        except (ValueError, RecursionError) as error:
            problem = (
                '<p class="fault" role="alert">The output is not JSON: '
                f"{escape(str(error))}</p>"
            )
            return await self.execution(execution_id, problem, text, 400)
        path = f"/executions/{escape_segment(execution_id)}"
        answer = await self.ask("POST", f"{path}/complete", {"output": output})
        if answer.status != 200:
            shown = _json(answer)
            violations = drawing.violations_of(shown)
            listed = list(chain.from_iterable(violations.values()))
            problem = drawing.draw_problem(shown, listed)
            return await self.execution(execution_id, problem, text, answer.status)
        return _see_other(f"/ui{path}")

    def _may_complete(self, skill_id: str) -> bool:
        principal = self._call.principal
        if principal is None or not principal.is_operator:
            return False
        skill = self._service.skills.get(skill_id)
        if skill is None:
            return False
        return skill.descriptor.capability_type is CapabilityType.TASK


def _draw_switch(shows_all: bool) -> str:
    """Return the link between an operator's own executions and those of everyone."""
    if shows_all:
        return '<p><a href="/ui/executions">Mine</a></p>'
    return '<p><a href="/ui/executions?all=1">Everyone\'s</a></p>'


def _draw_next(cursor: str, shows_all: bool) -> str:
    """Return the link to the next page of the list."""
    everyone = "all=1&amp;" if shows_all else ""
    address = f"/ui/executions?{everyone}cursor={escape(cursor)}"
    return f'<p><a href="{address}">Older ones</a></p>'


def _draw_value(heading: str, value: Any) -> str:
    return f"<h2>{heading}</h2><pre>{escape(drawing.pretty(value))}</pre>"


def _draw_progress(progress: Mapping[str, Any]) -> str:
    """Return a bar, which moves without saying how far where the total is unknown."""
    done = progress.get("done", 0)
    total = progress.get("total")
    bar = f' value="{done:g}" max="{total:g}"' if total else ""
    message = escape(str(progress.get("message", "")))
    return f"<progress{bar}></progress><p>{message}</p>"


def _as_caller(request: WireRequest, key: str) -> WireRequest:
    """Return the request to the service on behalf of a page's user: of the browser's
    headers it keeps none, and has only the key.
    """
    return replace(request, headers={"x-api-key": key} if key else {})


def _value(parameter: ParameterDefinition, text: str) -> Any:
    """Return *text* parsed as JSON unless the parameter is a string; the contract
    refuses what does not parse.
    """
    if parameter.type == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _see_other(path: str) -> WireResponse:
    return WireResponse(303, {"location": path})


def _is_own(request: WireRequest) -> bool:
    """Return whether a form was sent from one of our own pages: browsers state where a
    POST comes from.
    """
    # Fetch Metadata: set by the browser, and not by a page's scripts.
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    # Older browsers send the origin of a POST; what sends neither is not a browser, and
    # has no cookie to misuse.
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2] == request.headers.get("host")


def _form(request: WireRequest) -> dict[str, str]:
    text = request.body.decode("utf-8", "replace")
    fields = parse_qs(text, max_num_fields=1000)
    return {name: values[-1] for name, values in fields.items()}


def _cookie(request: WireRequest) -> str:
    for part in request.headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == _COOKIE:
            return unquote(value)
    return ""


def _json(response: WireResponse) -> dict[str, Any]:
    document = json.loads(response.body or b"{}")
    return document if isinstance(document, dict) else {}
