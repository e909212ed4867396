"""The pages for people: drawn on the server, nothing unescaped, looked at with a real browser where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from pathlib import Path
from urllib.parse import urlencode

import anyio
import anyio.from_thread
import pytest

from skillruntime.remote.http_message import WireRequest, WireResponse
from skillruntime.server.console import Pages
from tests.server.serving import BASE, KEY, Served, serve_in_memory, serve_over_socket_from_memory

pytestmark = pytest.mark.anyio


async def look(
    served: Served, method: str, path: str, form: dict[str, str] | None = None, **headers: str
) -> WireResponse:
    """Ask for a page."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = urlencode(form).encode() if form is not None else b""
    return await Pages(served.service).answer(
        WireRequest(method, BASE + path, {"host": "127.0.0.1:8400", **named}, body)
    )


async def test_the_skills_are_listed_to_who_may_see_them() -> None:
    """A private skill appears with a key alone; the key is kept in a cookie that scripts cannot read."""
    async with serve_in_memory() as served:
        other_caller = await look(served, "GET", "/ui")
        entered = await look(served, "POST", "/ui/key", {"key": KEY})
        cookie = entered.headers["set-cookie"].partition(";")[0]
        known = await look(served, "GET", "/ui", cookie=cookie)

    assert b"/ui/skills/echo" in other_caller.body and b"/ui/skills/hidden" not in other_caller.body
    assert b"/ui/skills/hidden" in known.body
    assert "HttpOnly; SameSite=Strict" in entered.headers["set-cookie"]
    assert "default-src 'none'" in known.headers["content-security-policy"]


async def test_a_contract_is_a_form_and_an_execution_is_followed() -> None:
    """Fill in, invoke, and see the output."""
    async with serve_in_memory() as served:
        form = await look(served, "GET", "/ui/skills/echo")
        sent = await look(served, "POST", "/ui/skills/echo", {"text": "<b>Hello</b>"})
        while b"Output" not in (shown := await look(served, "GET", sent.headers["location"])).body:
            await anyio.lowlevel.checkpoint()

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


@pytest.mark.parametrize("headers", [{"sec_fetch_site": "cross-site"}, {"origin": "https://evil.example"}])
async def test_a_form_of_another_place_does_nothing(headers: dict[str, str]) -> None:
    """Cross-site request forgery."""
    async with serve_in_memory() as served:
        page = await look(served, "POST", "/ui/skills/echo", {"text": "x"}, **headers)

    assert page.status == 403
    assert served.skills.ran == []


async def test_what_is_not_there() -> None:
    """An unknown skill, execution or page; a private skill is one of them."""
    async with serve_in_memory() as served:
        paths = ["/ui/skills/nothing", "/ui/skills/hidden", "/ui/executions/exec-none", "/ui/no/such/page"]
        pages = [await look(served, "GET", path) for path in paths]

    assert [page.status for page in pages] == [404] * 4
    assert pages[0].body == pages[1].body


def test_a_real_browser_draws_it(tmp_path: Path) -> None:
    """Headless Chromium shows the skills as they are served, without a complaint about the page's own policy."""
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    address: list[str] = []
    ready, done = threading.Event(), threading.Event()

    async def serve() -> None:
        async with serve_over_socket_from_memory() as served:
            address.append(served.base)
            ready.set()
            await anyio.to_thread.run_sync(done.wait)

    thread = threading.Thread(target=anyio.run, args=(serve,))
    thread.start()
    try:
        assert ready.wait(300)
        shot = tmp_path / "page.png"
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path}",
            "--enable-logging=stderr",
        ]
        drawn = subprocess.run(
            [browser, *options, f"--screenshot={shot}", "--window-size=900,700", f"{address[0]}/ui/skills/echo"],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        dom = subprocess.run(
            [browser, *options, "--dump-dom", f"{address[0]}/ui"],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        ).stdout
    finally:
        done.set()
        thread.join(30)

    assert shot.stat().st_size > 5_000
    assert "Content Security Policy" not in drawn.stderr
    assert re.search(r"<h1>Skills</h1>.*>echo</a>", dom, re.DOTALL)
