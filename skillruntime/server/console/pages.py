"""Serve the pages for people: the skills, a contract as a form, the caller's
executions, and tasks for operators.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from itertools import chain
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from skillruntime.remote.descriptor import (
    CapabilityType,
    ParameterDefinition,
    SkillDescriptor,
)
from skillruntime.remote.hosts import escape_segment
from skillruntime.remote.http_message import WireRequest, WireResponse
from skillruntime.remote.protocol import MessageError
from skillruntime.server.callers.access import READ, Principal
from skillruntime.server.callers.authorization import Call, check_scope
from skillruntime.server.console import drawing
from skillruntime.server.executions.errors import DatabaseAwayError
from skillruntime.server.executions.executions import Page
from skillruntime.server.executions.outcomes import CUT_OFF
from skillruntime.server.http.request_parsing import read_fields
from skillruntime.server.http.responses import (
    RefusedError,
    refuse_for_database,
    without_content,
)
from skillruntime.server.service import SkillService

__all__ = ["Pages"]

_COOKIE: Final = "skillruntime-key"
_MOST_FIELDS: Final = 1000  # of a form
_LISTED: Final = 25  # executions on a page


class Pages:
    """The pages of a service; they make every change through its `SkillService.handle`.

    An API key typed into a page is kept in a session cookie that scripts cannot read.
    """

    def __init__(self, service: SkillService) -> None:
        self._service = service

    def knows(self, request: WireRequest) -> bool:
        """Return whether the address belongs to one of the pages."""
        return request.path in ("/", "/ui") or request.path.startswith("/ui/")

    async def answer(self, request: WireRequest) -> WireResponse:
        """Return the page, or carry out its submitted form."""
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
        try:
            return await self._answer(request, parts)
        except MessageError as error:
            text = escape(str(error))
            return drawing.draw_page("Refused", f"<p>{text}</p>", status=400)

    async def _answer(self, request: WireRequest, parts: list[str]) -> WireResponse:
        if request.method == "POST" and parts == ["key"]:
            return await self._sign_in(request)
        call = await self._service.identify(_as_caller(request, _cookie(request)))
        page = _Page(self._service, call)
        try:
            return await self._draw(page, request, parts)
        except DatabaseAwayError as error:
            document = refuse_for_database(error).document
            problem = drawing.draw_problem(document.to_envelope())
            # The browser must not send a form again unasked.
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
                return await page.executions(read_fields(request.query, "query"))
            case "GET", ["executions", execution_id]:
                return await page.execution(execution_id)
            case "POST", ["executions", execution_id, "cancel"]:
                await page.ask("DELETE", f"/executions/{escape_segment(execution_id)}")
                return _see_other(f"/ui/executions/{escape_segment(execution_id)}")
            case "POST", [
                "executions",
                execution_id,
                ("release" | "leave") as decision,
            ]:
                return await page.decide(execution_id, decision)
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
        """Keep a valid key; a form without a key deletes the kept key."""
        key = _form(request).get("key", "").strip()
        call = await self._service.identify(_as_caller(request, key))
        # An invalid key is not kept: every page would report it, and each would count
        # as an attempt to guess a key.
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
    """The pages for one caller."""

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
        """Return a contract as a form, with the *filled* in values and the errors from
        the service's *answer*.
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
        # The remaining faults belong to no field.
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
        """Begin an execution with the values of the form."""
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
        # The typed values stay in the form, each with its errors.
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
        shows_cut_off = query.get("interrupted") == ["1"]
        try:
            # Read the list from the store and not through `handle`, because the
            # protocol's documents do not contain the arguments.
            check_scope(principal.may_read, READ)
            store = self._service.executions
            owner = None if shows_all else principal.id
            waiting = Page(())
            if shows_cut_off:
                page = await self._service.decisions.undecided(
                    owner, limit=_LISTED, cursor=cursor
                )
            else:
                page = await store.list(owner, limit=_LISTED, cursor=cursor)
            if cursor is None and not shows_cut_off:
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
        body += _draw_switches(
            principal, shows_all=shows_all, shows_cut_off=shows_cut_off
        )
        if waiting.executions:
            body += "<h2>Tasks that wait</h2>"
            body += self._cards(waiting, shows_all)
            body += "<h2>All</h2>"
        body += self._cards(page, shows_all, decides=shows_cut_off)
        if page.next_cursor is not None:
            body += _draw_next(page.next_cursor, shows_all, shows_cut_off)
        if not page.executions:
            body += "<p>There are none yet.</p>"
        is_live = any(not execution.is_final for execution in page.executions)
        heading = "All executions" if shows_all else "My executions"
        if shows_cut_off:
            heading = "Interrupted executions"
        return self.draw(heading, body, is_live=is_live)

    def _cards(self, page: Page, shows_owner: bool, *, decides: bool = False) -> str:
        """Return the cards of a page; with *decides*, each has the forms for an
        operator's decision.
        """
        principal = self._call.principal
        is_operator = principal is not None and principal.is_operator
        now = self._service.executions.now()
        cards = ""
        for ticket, execution in zip(page.tickets, page.executions, strict=True):
            forms = ""
            if decides and is_operator:
                forms = _draw_decision(execution.execution_id)
            cards += drawing.draw_execution_card(
                ticket, execution, now, shows_owner=shows_owner, forms=forms
            )
        return cards

    async def execution(
        self, execution_id: str, problem: str = "", filled: str = "", status: int = 200
    ) -> WireResponse:
        """Return one execution as it is now; an operator can complete a waiting task."""
        response = await self.ask("GET", f"/executions/{escape_segment(execution_id)}")
        shown = _json(response)
        if response.status != 200:
            return self.draw(
                "Execution", drawing.draw_problem(shown), status=response.status
            )
        # The page's request has the extension `cancelled`, so the status is one of 6.4
        # or cancelled.
        is_final = shown["status"] not in ("accepted", "running")
        body = f"<p>Skill: {escape(shown['skill_id'])}</p>"
        # An operator who completes a task must see its arguments. This user may see the
        # execution, because the service answered the request.
        found = await self._service.executions.get(execution_id)
        if found is not None:
            body += f"<p>Caller: {escape(found[0].owner)}</p>"
        body += f"<p>Status: {drawing.draw_status(shown['status'])}</p>"
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
        forms = problem
        if not is_final:
            forms = self._forms(shown, problem, filled)
        elif await self._may_decide(shown):
            forms += _draw_decision(execution_id)
        skill_id = shown["skill_id"]
        forms += (
            f'<p><a href="/ui/skills/{escape_segment(skill_id)}">Invoke '
            f"{escape(skill_id)} again</a></p>"
        )
        return self.draw(
            "Execution", body, status=status, is_live=not is_final, forms=forms
        )

    def _forms(self, shown: Mapping[str, Any], problem: str, filled: str) -> str:
        """Return the forms that change an unfinished execution."""
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
        # Deeply nested arrays raise RecursionError.
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

    async def decide(self, execution_id: str, decision: str) -> WireResponse:
        """Run an interrupted execution again (``release``), or ``leave`` it."""
        path = f"/executions/{escape_segment(execution_id)}"
        answer = await self.ask("POST", f"{path}/{decision}")
        shown = _json(answer)
        if answer.status >= 300:
            problem = drawing.draw_problem(shown)
            return await self.execution(execution_id, problem, status=answer.status)
        # The id is the new execution's if the execution runs again.
        return _see_other(f"/ui/executions/{escape_segment(shown['execution_id'])}")

    async def _may_decide(self, shown: Mapping[str, Any]) -> bool:
        """Return whether the user of the page may decide about an execution that is not
        decided yet.
        """
        principal = self._call.principal
        error = shown.get("error") or {}
        if principal is None or not principal.is_operator:
            return False
        if error.get("code") not in CUT_OFF:
            return False
        return not await self._service.decisions.is_decided(shown["execution_id"])

    def _may_complete(self, skill_id: str) -> bool:
        principal = self._call.principal
        if principal is None or not principal.is_operator:
            return False
        skill = self._service.skills.get(skill_id)
        if skill is None:
            return False
        return skill.descriptor.capability_type is CapabilityType.TASK


def _draw_switches(
    principal: Principal, *, shows_all: bool, shows_cut_off: bool
) -> str:
    """Return the links to the other lists; only operators get the links to everyone's
    lists.
    """
    links = []
    if shows_all or shows_cut_off:
        links.append('<a href="/ui/executions">Mine</a>')
    if principal.is_operator and (shows_cut_off or not shows_all):
        links.append('<a href="/ui/executions?all=1">Everyone\'s</a>')
    if not shows_cut_off:
        everyone = "&amp;all=1" if principal.is_operator else ""
        address = f"/ui/executions?interrupted=1{everyone}"
        links.append(f'<a href="{address}">Interrupted</a>')
    return f"<p>{' · '.join(links)}</p>"


def _draw_next(cursor: str, shows_all: bool, shows_cut_off: bool) -> str:
    """Return the link to the next page of the list."""
    query = f"cursor={escape(cursor)}"
    if shows_cut_off:
        query = f"interrupted=1&amp;{query}"
    if shows_all:
        query = f"all=1&amp;{query}"
    return f'<p><a href="/ui/executions?{query}">Older ones</a></p>'


def _draw_decision(execution_id: str) -> str:
    """Return the forms that decide about an interrupted execution."""
    action = f"/ui/executions/{escape_segment(execution_id)}"
    return (
        f'<form method="post" action="{action}/release">'
        "<button>Run again</button></form>"
        f'<form method="post" action="{action}/leave"><button>Leave</button></form>'
    )


def _draw_value(heading: str, value: Any) -> str:
    return f"<h2>{heading}</h2><pre>{escape(drawing.pretty(value))}</pre>"


def _draw_progress(progress: Mapping[str, Any]) -> str:
    """Return a progress bar; if the total is unknown, the bar moves without showing an
    amount.
    """
    done = progress.get("done", 0)
    total = progress.get("total")
    bar = f' value="{done:g}" max="{total:g}"' if total else ""
    message = escape(str(progress.get("message", "")))
    return f"<progress{bar}></progress><p>{message}</p>"


def _as_caller(request: WireRequest, key: str) -> WireRequest:
    """Return the request to the service on behalf of a page's user. Its only header is
    the key; the browser's headers are dropped.
    """
    return replace(request, headers={"x-api-key": key} if key else {})


def _value(parameter: ParameterDefinition, text: str) -> Any:
    """Return *text* parsed as JSON unless the parameter is a string; the contract
    refuses text that does not parse.
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
    """Return whether one of our own pages sent a form; browsers state the origin of a
    POST.
    """
    # The browser sets Fetch Metadata headers; a page's scripts cannot.
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    # Older browsers send the origin or the referrer of a POST. Our own pages suppress
    # the referrer (`referrer-policy`), and other sites' pages may do so too. A client
    # that sends neither is not a browser, and has no cookie to misuse.
    host = request.headers.get("host", "").lower()
    for name in ("origin", "referer"):
        place = request.headers.get(name)
        if place is not None and _host_and_port(place) != host:
            return False
    return True


def _host_and_port(url: str) -> str:
    """Return the host of *url* with its port, as ``Host`` has it; empty if it has
    none.
    """
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:  # `http://[`
        return ""


def _form(request: WireRequest) -> dict[str, str]:
    text = request.body.decode("utf-8", "replace")
    fields = read_fields(text, "form", _MOST_FIELDS)
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
