"""Running the bundled skills' scripts as a runtime would, and the real files that they
work on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.in_process import Ran, run_script

SKILLS = Path(__file__).resolve().parents[2] / "skills"


@dataclass(frozen=True)
class Answer:
    """How a script ended: its exit code, the JSON it printed, and its stderr."""

    exit_code: int
    document: Any
    stderr: str

    @property
    def error(self) -> dict[str, Any]:
        """The only error of a failed call."""
        assert self.exit_code == 1, self.document
        assert self.document["status"] == "failed"
        (error,) = self.document["errors"]
        assert {"code", "message", "recoverable", "suggested_action"} <= set(error)
        return error


@dataclass(frozen=True)
class Scripts:
    """One skill's tools, run in a workspace."""

    skill: str
    workspace: Path
    is_here: bool = True
    """Whether they run in the process of the tests."""

    def contract(self, tool: str | None = None) -> dict[str, Any]:
        directory = SKILLS / self.skill
        path = (
            directory / "contract.json"
            if tool is None
            else directory / "contracts" / f"{tool}.json"
        )
        return json.loads(path.read_text(encoding="utf-8"))

    def call(
        self, arguments: Any, tool: str | None = None, **environment: str
    ) -> Answer:
        """Run the tool on *arguments* (text is sent as it is); what it prints must fit
        its contract.
        """
        contract = self.contract(tool)
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        passed = {
            name: os.environ[name]
            for name in ("PATH", "HOME", "SYSTEMROOT")
            if name in os.environ
        }
        passed |= {"no_proxy": "*"} | environment
        script = SKILLS / self.skill / contract["run"]["script"]
        if self.is_here:
            done = run_script(script, self.workspace, stdin=text, environment=passed)
        else:
            done = run_apart(script, self.workspace, text, passed)
        assert done.exit_code in (0, 1), done.stderr
        assert done.stdout, done.stderr
        document = json.loads(done.stdout)
        if done.exit_code == 0:
            checker = jsonschema.FormatChecker()
            jsonschema.Draft202012Validator(
                contract["output"], format_checker=checker
            ).validate(document)
            jsonschema.Draft202012Validator(contract["input"]).validate(
                json.loads(text)
            )
        return Answer(done.exit_code, document, done.stderr)

    def call_each(self, calls: Sequence[Any], tool: str | None = None) -> list[Answer]:
        """Run several calls, and return their answers in order."""
        return [self.call(arguments, tool) for arguments in calls]


def run_apart(
    script: Path, workspace: Path, text: str, environment: dict[str, str]
) -> Ran:
    """Run a script in a process of its own, as a runtime does."""
    command = [sys.executable, str(script)]
    done = subprocess.run(
        command,
        input=text.encode(),
        capture_output=True,
        cwd=workspace,
        env=environment,
        timeout=300,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def digest(tmp_path: Path) -> Scripts:
    """The news digest in an empty workspace."""
    return Scripts(
        "daily-news-digest", tmp_path, is_here=False
    )  # it leaves threads that read feeds


@pytest.fixture
def pdf(tmp_path: Path) -> Scripts:
    """The PDF tools in an empty workspace."""
    return Scripts("pdf-processing", tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Scripts:
    """The data tools in an empty workspace."""
    return Scripts("data-analysis", tmp_path)


@dataclass
class Site:
    """A web server on loopback: what each path answers, as (status, headers, body)."""

    address: str
    pages: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    hanging: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def url(self, path: str) -> str:
        return self.address + path


@pytest.fixture
def site() -> Iterator[Site]:
    """A server whose paths the test fills; a hanging request is released at the end."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            path = self.path.split("?")[0]
            if path in served.hanging:
                over.wait(300)
                return
            status, headers, body = served.pages.get(path, (404, {}, b"no such page"))
            self.send_response(status)
            for name, value in ({"Content-Type": "application/xml"} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:  # the reader had enough
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Site(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}
    )
    thread.start()
    yield served
    over.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def make_pdf() -> Callable[..., bytes]:
    """Write PDFs by hand: ``make_pdf(["text of page 1", ...])``, or raw objects."""
    return make_document


@pytest.fixture(scope="session")
def form_pdf() -> bytes:
    """A form with a text, a checkbox, a choice, a radio group, and a read-only text
    that was never drawn.
    """
    widget = "<< /Type /Annot /Subtype /Widget /P 3 0 R /F 4"
    text = "/DA (/Helv 12 Tf 0 g)"
    tick = "/AP << /N << /Yes 14 0 R /Off 15 0 R >> >>"
    options = "/Opt [[(DE) (Germany)] [(FR) (France)]]"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R /AcroForm 5 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font"
            " << /Helv 4 0 R >> >> /Contents 6 0 R /Annots [7 0 R 8 0 R 9 0 R 11 0 R 12"
            " 0 R 13 0 R] >>"
        ),
        (
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding "
            "/WinAnsiEncoding >>"
        ),
        (
            "<< /Fields [7 0 R 8 0 R 9 0 R 10 0 R 13 0 R] /DR << /Font << /Helv 4 0 R"
            f" >> >> {text} >>"
        ),
        _stream("BT /Helv 12 Tf 72 720 Td (Application form) Tj ET"),
        (
            f"{widget} /FT /Tx /T (name) /TU (Full name) /MaxLen 20 /Rect [72 680 300 "
            f"700] {text} >>"
        ),
        (
            f"{widget} /FT /Btn /T (agree) /V /Off /AS /Off /Rect [72 650 90 668]"
            f" {tick} >>"
        ),
        (
            f"{widget} /FT /Ch /T (country) /Ff 131072 {options} /Rect [72 620 200 640]"
            f" {text} >>"
        ),
        "<< /FT /Btn /T (size) /Ff 49152 /Kids [11 0 R 12 0 R] /V /Off >>",
        (
            f"{widget} /Parent 10 0 R /AS /Off /Rect [72 590 90 608] /AP << /N <<"
            " /small 14 0 R /Off 15 0 R >> >> >>"
        ),
        (
            f"{widget} /Parent 10 0 R /AS /Off /Rect [100 590 118 608] /AP << /N << "
            "/large 16 0 R /Off 15 0 R >> >> >>"
        ),
        (
            f"{widget} /FT /Tx /T (office) /Ff 1 /V (internal) /Rect [72 560 300 580] "
            f"{text} >>"
        ),
        _stream("2 2 m 16 16 l S", "/Type /XObject /Subtype /Form /BBox [0 0 18 18]"),
        _stream(" ", "/Type /XObject /Subtype /Form /BBox [0 0 18 18]"),
        _stream(
            "BT /Helv 8 Tf 1 5 Td (LARGE) Tj ET",
            "/Type /XObject /Subtype /Form /BBox [0 0 18 18] /Resources << /Font << "
            "/Helv 4 0 R >> >>",
        ),
    ]
    return make_document(objects=objects)


def make_document(
    pages: Sequence[str] = (), *, tables: bool = False, objects: Sequence[str] = ()
) -> bytes:
    """Return a PDF with one line of text a page, and with *tables* a ruled table of
    three rows on each.
    """
    if not objects:
        kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(pages)))
        listed = [
            "<< /Type /Catalog /Pages 2 0 R >>",
            f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
            (
                "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding "
                "/WinAnsiEncoding >>"
            ),
        ]
        for index, text in enumerate(pages):
            content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET\n" if text else ""
            content += TABLE if tables else ""
            page = (
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << "
                "/Font << /F1 3 0 R >> >>"
            )
            listed += [f"{page} /Contents {5 + 2 * index} 0 R >>", _stream(content)]
        objects = listed
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{place:010d} 00000 n \n".encode() for place in places)
    out += (
        f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R"
        f" >>\nstartxref\n{start}\n%%EOF\n".encode()
    )
    return bytes(out)


def _stream(content: str, keys: str = "") -> str:
    return f"<< {keys} /Length {len(content)} >>\nstream\n{content}\nendstream"


TABLE = (
    "72 600 m 372 600 l S 72 570 m 372 570 l S 72 540 m 372 540 l S 72 510 m 372 510 "
    "l S\n"
    "72 510 m 72 600 l S 222 510 m 222 600 l S 372 510 m 372 600 l S\n"
    "BT /F1 12 Tf 80 580 Td (Region) Tj 150 0 Td (Sales) Tj ET\n"
    "BT /F1 12 Tf 80 550 Td (North) Tj 150 0 Td (1,200) Tj ET\n"
    "BT /F1 12 Tf 80 520 Td (South) Tj 150 0 Td (950) Tj ET\n"
)
