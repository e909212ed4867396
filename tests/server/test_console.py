"""The pages for people: drawn on the server, nothing unescaped, looked at with a real
browser where there is one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
import anyio.from_thread
import anyio.lowlevel
import httpx2
import pytest

from skillruntime.server import DatabaseAwayError
from skillruntime.server.console.drawing import draw_field
from skillruntime.server.console.pages import Pages
from tests import needs
from tests.remote.parts import ParameterDefinition, WireRequest, WireResponse
from tests.server.serving import (
    BASE,
    KEY,
    OPERATOR_KEY,
    OTHER_KEY,
    Served,
    read,
    serve_in_memory,
    serve_over_socket_from_memory,
)

pytestmark = pytest.mark.anyio


async def look(
    served: Served,
    method: str,
    path: str,
    form: dict[str, str] | None = None,
    **headers: str,
) -> WireResponse:
    """Ask for a page."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = urlencode(form).encode() if form is not None else b""
    return await Pages(served.service).answer(
        WireRequest(method, BASE + path, {"host": "127.0.0.1:8400", **named}, body)
    )


async def test_the_skills_are_listed_to_who_may_see_them() -> None:
    """A private skill appears with a key alone; the key is kept in a cookie that
    scripts cannot read.
    """
    async with serve_in_memory() as served:
        other_caller = await look(served, "GET", "/ui")
        entered = await look(served, "POST", "/ui/key", {"key": KEY})
        cookie = entered.headers["set-cookie"].partition(";")[0]
        known = await look(served, "GET", "/ui", cookie=cookie)

    assert (
        b"/ui/skills/echo" in other_caller.body
        and b"/ui/skills/hidden" not in other_caller.body
    )
    assert b"/ui/skills/hidden" in known.body
    assert "HttpOnly; SameSite=Strict" in entered.headers["set-cookie"]
    assert "default-src 'none'" in known.headers["content-security-policy"]


async def test_a_contract_is_a_form_and_an_execution_is_followed() -> None:
    """Fill in, invoke, and see the output."""
    async with serve_in_memory() as served:
        form = await look(served, "GET", "/ui/skills/echo")
        sent = await look(served, "POST", "/ui/skills/echo", {"text": "<b>Hello</b>"})
        while (
            b"Output"
            not in (shown := await look(served, "GET", sent.headers["location"])).body
        ):
            await anyio.sleep(0.01)

    assert b'<textarea name="text"' in form.body
    assert sent.status == 303
    assert b"&lt;b&gt;Hello&lt;/b&gt;" in shown.body and b"<b>Hello" not in shown.body
    assert b"refresh" not in shown.body, "what has ended is not asked for again"


async def test_what_does_not_fit_is_reported_beside_the_form() -> None:
    """With what was typed still there."""
    async with serve_in_memory() as served:
        page = await look(served, "POST", "/ui/skills/echo", {"text": "x" * 1001})

    assert page.status == 400
    assert b"VALIDATION_ERROR" in page.body and b"x" * 1001 in page.body


async def test_a_running_execution_can_be_cancelled() -> None:
    """It is drawn again by itself until it has ended."""
    async with serve_in_memory() as served:
        sent = await look(served, "POST", "/ui/skills/slow", {"text": "x"})
        await served.skills.started.wait()
        running = await look(served, "GET", sent.headers["location"])
        await look(served, "POST", sent.headers["location"] + "/cancel", {})
        after = await look(served, "GET", sent.headers["location"])

    assert b'http-equiv="refresh"' in running.body and b"half way" in running.body
    assert b"EXECUTION_CANCELLED" in after.body


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"origin": "https://evil.example"},
        {"referer": "https://evil.example/page?x=http://a.example/"},
        {"origin": "http://a.example", "referer": "https://evil.example/"},
        {"referer": "http://["},
    ],
)
async def test_a_form_of_another_place_does_nothing(headers: dict[str, str]) -> None:
    """Cross-site request forgery."""
    async with serve_in_memory() as served:
        page = await look(
            served,
            "POST",
            "/ui/skills/echo",
            {"text": "x"},
            host="a.example",
            **headers,
        )

    assert page.status == 403
    assert served.skills.ran == []


async def test_a_form_of_the_servers_own_pages_is_sent() -> None:
    """By what a browser says of its origin; the case of a host does not count."""
    async with serve_in_memory() as served:
        page = await look(
            served,
            "POST",
            "/ui/skills/echo",
            {"text": "x"},
            host="a.example:8400",
            origin="http://A.example:8400",
            referer="http://a.example:8400/ui/skills/echo",
        )

    assert page.status == 303


async def test_a_form_with_too_many_fields_is_refused() -> None:
    """With a page that says so; so is a query."""
    fields = {f"f{number}": "x" for number in range(1001)}
    async with serve_in_memory() as served:
        form = await look(served, "POST", "/ui/skills/echo", fields)
        query = await look(served, "GET", "/ui/executions?" + "a=1&" * 100 + "a=1")

    assert (form.status, query.status) == (400, 400)
    assert b"form should be at most 1,000 fields, not 1,001 fields" in form.body
    assert b"query should be at most 100 fields, not 101 fields" in query.body


async def test_what_is_not_there() -> None:
    """An unknown skill, execution or page; a private skill is one of them."""
    async with serve_in_memory() as served:
        paths = [
            "/ui/skills/nothing",
            "/ui/skills/hidden",
            "/ui/executions/exec-none",
            "/ui/no/such/page",
        ]
        pages = [await look(served, "GET", path) for path in paths]

    assert [page.status for page in pages] == [404] * 4
    assert pages[0].body == pages[1].body


async def test_a_wrong_key_is_reported_and_not_kept() -> None:
    """The page says who is signed in; a key that was revoked later is reported too."""
    async with serve_in_memory() as served:
        wrong = await look(served, "POST", "/ui/key", {"key": "wrong"})
        known = await look(
            served, "GET", "/ui", cookie=f"skillruntime-key={OPERATOR_KEY}"
        )
        revoked = await look(served, "GET", "/ui", cookie="skillruntime-key=revoked")
        out = await look(served, "POST", "/ui/key", {})

    assert wrong.status == 401 and "set-cookie" not in wrong.headers
    assert (
        b"This key is not valid" in wrong.body
        and b"This key is not valid" in revoked.body
    )
    assert b"Signed in as <strong>op</strong> (operator)" in known.body
    assert out.headers["set-cookie"].endswith("Max-Age=0")


async def test_ones_own_executions_are_listed_with_skill_state_duration_and_arguments() -> (
    None
):
    """Another caller's are not; an operator sees everyone's on request."""
    mine, operator = f"skillruntime-key={KEY}", f"skillruntime-key={OPERATOR_KEY}"
    async with serve_in_memory() as served:
        begun = read(
            await served.invoke("echo", "<i>hello</i>", key=KEY, prefer="wait=30")
        )
        listed = await look(served, "GET", "/ui/executions", cookie=mine)
        of_operator = await look(served, "GET", "/ui/executions", cookie=operator)
        of_all = await look(served, "GET", "/ui/executions?all=1", cookie=operator)
        not_mine = await look(
            served,
            "GET",
            "/ui/executions?all=1",
            cookie=f"skillruntime-key={OTHER_KEY}",
        )
        anonymous = await look(served, "GET", "/ui/executions")
        bad_page = await look(served, "GET", "/ui/executions?cursor=x", cookie=mine)

    shown = listed.body.decode()
    assert (
        f"/ui/executions/{begun['execution_id']}" in shown
        and ">completed</span>" in shown
    )
    assert "&lt;i&gt;hello&lt;/i&gt;" in shown and re.search(r"UTC · \d+\.\d s", shown)
    assert (
        b"There are none yet" in of_operator.body
        and b"There are none yet" in not_mine.body
    )
    assert (
        begun["execution_id"].encode() in of_all.body and b"ann \xc2\xb7" in of_all.body
    )
    assert (anonymous.status, bad_page.status) == (401, 400)


async def test_what_was_cancelled_is_not_shown_as_failed() -> None:
    """In the list and on its own page."""
    cookie = f"skillruntime-key={KEY}"
    async with serve_in_memory() as served:
        begun = read(await served.invoke("chore", key=KEY))
        page = f"/ui/executions/{begun['execution_id']}"
        await look(served, "POST", f"{page}/cancel", {}, cookie=cookie)
        shown = await look(served, "GET", page, cookie=cookie)
        listed = await look(served, "GET", "/ui/executions", cookie=cookie)

    assert (
        b'class="status cancelled">cancelled<' in shown.body
        and b'class="card problem"' not in shown.body
    )
    assert b'class="status cancelled">cancelled<' in listed.body


async def test_an_operator_completes_a_task_on_its_page() -> None:
    """Others do not see the form; what is not JSON, or not what the skill promises, is
    reported with the text kept.
    """
    operator = f"skillruntime-key={OPERATOR_KEY}"
    async with serve_in_memory() as served:
        begun = read(await served.invoke("chore", key=KEY))
        page = f"/ui/executions/{begun['execution_id']}"
        to_owner = await look(served, "GET", page, cookie=f"skillruntime-key={KEY}")
        to_operator = await look(served, "GET", page, cookie=operator)
        to_other = await look(
            served, "GET", page, cookie=f"skillruntime-key={OTHER_KEY}"
        )
        not_json = await look(
            served, "POST", f"{page}/complete", {"output": "{half"}, cookie=operator
        )
        too_deep = await look(
            served,
            "POST",
            f"{page}/complete",
            {"output": "[" * 100_000},
            cookie=operator,
        )
        not_promised = await look(
            served, "POST", f"{page}/complete", {"output": "{}"}, cookie=operator
        )
        done = await look(
            served,
            "POST",
            f"{page}/complete",
            {"output": '{"done": 1}'},
            cookie=operator,
        )
        shown = await look(served, "GET", page, cookie=operator)

    assert b"Complete the task" not in to_owner.body
    assert (
        b"&quot;text&quot;: &quot;hi&quot;" in to_operator.body
        and b"&quot;hi&quot;" not in to_other.body
    )
    assert too_deep.status == 400 and b"is not JSON" in too_deep.body
    assert (
        not_json.status == 400
        and b"is not JSON" in not_json.body
        and b"{half" in not_json.body
    )
    assert not_promised.status == 400 and b"VALIDATION_ERROR" in not_promised.body
    assert done.status == 303 and b">completed</span>" in shown.body


def test_a_field_says_that_it_is_json_and_what_is_wrong_with_it() -> None:
    """Text and numbers have fields of their own; what is wrong is said beside the
    field.
    """
    array = draw_field(ParameterDefinition("names", "array"), "[", ["should be a list"])
    text = draw_field(ParameterDefinition("name", "string"), None)

    assert "JSON array, such as [&quot;a&quot;, &quot;b&quot;]" in array
    assert 'aria-invalid="true" aria-describedby="names-fault"' in array
    assert '<p class="fault" id="names-fault">should be a list</p>' in array
    assert "JSON" not in text and "aria-invalid" not in text


@pytest.mark.processes
def test_a_person_uses_it_in_a_real_browser(tmp_path: Path) -> None:
    """Sign in, fill in a form, see an end without reloading, complete a task; long
    values wrap at 390 pixels.
    """
    with served_elsewhere() as served, browser(tmp_path) as page:
        page.go(f"{served.base}/ui")
        page.run(
            "document.querySelector('input[name=key]').value = 'wrong'; "
            "document.forms[0].submit()"
        )
        page.until("document.body.innerText.includes('This key is not valid')")
        page.run(
            f"document.querySelector('input[name=key]').value = '{OPERATOR_KEY}'; "
            "document.forms[0].submit()"
        )
        page.until("document.body.innerText.includes('Signed in as op')")

        page.go(f"{served.base}/ui/skills/slow")
        page.run(
            f"document.querySelector('[name=text]').value = '{'x' * 900}'; "
            "document.forms[1].submit()"
        )
        page.until("document.querySelector('main').innerText.includes('half way')")
        page.run("window.isTheSamePage = true")
        served.open_gate()
        page.until("document.querySelector('main').innerText.includes('completed')")
        same_page = page.run("window.isTheSamePage")
        widths = [page.run("document.documentElement.scrollWidth")]

        page.go(f"{served.base}/ui/skills/chore")
        page.run(
            "document.querySelector('[name=text]').value = 'tidy'; "
            "document.forms[1].submit()"
        )
        page.until("document.querySelector('[name=output]') !== null")
        page.run(
            "document.querySelector('[name=output]').value = '{\"done\": true}'; "
            "document.forms[1].submit()"
        )
        page.until("document.querySelector('.status')?.innerText === 'completed'")
        page.go(f"{served.base}/ui/executions")
        listed = page.run("document.querySelector('main').innerText")
        widths.append(page.run("document.documentElement.scrollWidth"))

    assert same_page is True, "it is not loaded again"
    assert "tidy" in listed and listed.count("completed") == 2
    assert max(widths) <= 390
    assert page.complaints == []


@pytest.mark.slow
def test_a_task_is_completed_by_keyboard_alone(tmp_path: Path) -> None:
    """Waiting tasks come first; while the page draws its state again, what is typed and
    the focus stay.
    """
    with served_elsewhere() as served, browser(tmp_path) as page:
        page.go(f"{served.base}/ui")
        page.press("Tab", "Tab")
        page.type(OPERATOR_KEY)
        page.press("Enter")
        page.until("document.body.innerText.includes('(operator)')")
        for name, text in (("chore", "tidy"), ("echo", "later")):
            body = {
                "caller": {"id": "t", "type": "user"},
                "skill_id": name,
                "inputs": {"text": text},
            }
            headers = {"x-api-key": OPERATOR_KEY}
            url = f"{served.base}/skills/{name}/invoke"
            httpx2.post(
                url, json=body, headers=headers, trust_env=False
            ).raise_for_status()
        page.go(f"{served.base}/ui/executions")
        first = page.run("document.querySelector('main h2 a').innerText")
        problems = page.check_accessibility()
        page.focus_by_tab("document.activeElement.innerText === 'chore'")
        page.until_drawn_again(2)
        kept = [page.run("document.activeElement.innerText")]
        page.press("Enter")
        page.until("document.querySelector('[name=output]') !== null")
        problems += page.check_accessibility()
        page.focus_by_tab("document.activeElement.name === 'output'")
        page.type('{"done":')
        page.until_drawn_again(2)
        page.type(" true}")
        page.press("Tab")
        page.until_drawn_again(2)
        kept += page.run(
            "[document.activeElement.innerText, "
            "document.querySelector('[name=output]').value]"
        )
        page.press("Enter")
        page.until("document.querySelector('.status')?.innerText === 'completed'")
        page.until("document.querySelector('[name=output]') === null")

    assert first == "chore"
    assert kept == ["chore", "Complete the task", '{"done": true}']
    assert problems == []


class Elsewhere:
    """The test skills, served from another thread."""

    def __init__(self) -> None:
        self.base = ""
        self.ready, self.done = threading.Event(), threading.Event()
        self._served: Served | None = None
        self._token: Any = None

    async def serve(self) -> None:
        """Serve until it is done."""
        async with serve_over_socket_from_memory() as served:
            self._served, self.base = served, served.base
            self._token = anyio.lowlevel.current_token()
            self.ready.set()
            await anyio.to_thread.run_sync(self.done.wait)

    def open_gate(self) -> None:
        """Let the slow skill end."""
        assert self._served is not None
        anyio.from_thread.run_sync(self._served.skills.gate.set, token=self._token)


@contextmanager
def served_elsewhere() -> Iterator[Elsewhere]:
    """Serve the test skills from another thread."""
    served = Elsewhere()
    thread = threading.Thread(target=anyio.run, args=(served.serve,))
    thread.start()
    assert served.ready.wait(300)
    try:
        yield served
    finally:
        served.done.set()
        thread.join(300)


class Page:
    """One page of a browser, by the DevTools protocol, as wide as a telephone."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._number = 0
        self.complaints: list[str] = []
        for method in ("Runtime.enable", "Log.enable", "Page.enable"):
            self.call(method)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=390,
            height=800,
            deviceScaleFactor=1,
            mobile=True,
        )

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method, and return its result."""
        self._number += 1
        self._connection.send(
            json.dumps({"id": self._number, "method": method, "params": parameters})
        )
        while True:
            message = json.loads(self._connection.recv(timeout=300))
            if (
                message.get("method") == "Log.entryAdded"
                and message["params"]["entry"]["source"] == "security"
            ):
                self.complaints.append(message["params"]["entry"]["text"])
            if message.get("id") == self._number:
                return message.get("result", {})

    def go(self, url: str) -> None:
        """Open an address."""
        self.call("Page.navigate", url=url)
        self.until(f"location.href === '{url}' && document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """Return what a script gives."""
        return (
            self.call("Runtime.evaluate", expression=script, returnByValue=True)
            .get("result", {})
            .get("value")
        )

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            code = {"Tab": 9, "Enter": 13}[key]
            text = {"text": "\r"} if key == "Enter" else {}
            for kind in ("keyDown", "keyUp"):
                more = text if kind == "keyDown" else {}
                self.call(
                    "Input.dispatchKeyEvent",
                    type=kind,
                    key=key,
                    code=key,
                    windowsVirtualKeyCode=code,
                    **more,
                )

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def focus_by_tab(self, condition: str) -> None:
        """Press Tab until the focus is where *condition* is true."""
        for _ in range(30):
            if self.run(condition) is True:
                return
            self.press("Tab")
        raise AssertionError(condition)

    def until_drawn_again(self, number: int) -> None:
        """Wait until the page has asked so often for its state."""
        self.run("performance.clearResourceTimings()")
        self.until(f"performance.getEntriesByType('resource').length >= {number}")

    def check_accessibility(self) -> list[str]:
        """Return what axe finds; nothing without axe, which `npm install axe-core` puts
        into node_modules.
        """
        place = Path(
            os.environ.get(
                "SKILLRUNTIME_AXE",
                Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js",
            )
        )
        if not place.exists():
            return []
        self.run(place.read_text("utf-8") + ";0")
        script = (
            "axe.run().then(found => found.violations.map(each => each.id + ': ' + "
            "each.nodes[0].html))"
        )
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        return list(answer["result"]["value"])

    def until(self, condition: str) -> None:
        """Wait until a script gives true."""
        deadline = time.monotonic() + 300
        while self.run(condition) is not True:
            assert time.monotonic() < deadline, (
                f"{condition}: {self.run('document.body.innerText')}"
            )
            time.sleep(0.05)


@contextmanager
def browser(directory: Path) -> Iterator[Page]:
    """Run Chromium without a window; skip where there is none."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    client = needs.package("websockets.sync.client")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={directory}",
        "--remote-debugging-port=0",
    ]
    process = subprocess.Popen(
        [program, *options, "about:blank"],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        port_file, deadline = directory / "DevToolsActivePort", time.monotonic() + 300
        while not port_file.exists() or not port_file.read_text().strip():
            assert time.monotonic() < deadline, "Chromium did not start"
            time.sleep(0.05)
        port = port_file.read_text().splitlines()[0]
        targets = httpx2.get(
            f"http://127.0.0.1:{port}/json/list", trust_env=False
        ).json()
        [address] = [
            each["webSocketDebuggerUrl"] for each in targets if each["type"] == "page"
        ]
        with client.connect(address, max_size=None, proxy=None) as connection:
            yield Page(connection)
    finally:
        process.kill()
        process.wait()


class Away:
    """A store whose database does not answer."""

    async def list(self, owner: str | None, *, limit: int, cursor: str | None) -> Any:
        """Fail as the database does."""
        raise DatabaseAwayError("gone")


async def test_a_page_is_drawn_without_the_database() -> None:
    """It says what is wrong, and looks again by itself."""
    async with serve_in_memory() as served:
        served.service.executions = Away()  # type: ignore[assignment]
        page = await look(
            served, "GET", "/ui/executions", cookie=f"skillruntime-key={KEY}"
        )

    assert page.status == 503
    assert b"database does not answer" in page.body and b"data-live" in page.body
