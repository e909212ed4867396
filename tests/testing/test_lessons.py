"""What a failed call shows about the arguments and files of a script:
`skill_tests/lessons.py`.
"""

from __future__ import annotations

import ast
import io
import json
import subprocess
import textwrap
from pathlib import Path

import pytest

from skillruntime.testing.skill_tests.inputs import (
    crowded_data,
    pdf_documents,
    repository,
    shown_documents,
)
from tests import needs
from tests.testing.test_skill_tests import outcome

EXPECTING = {
    "a number among texts": """
        count, path = int(sys.argv[1]), sys.argv[2]
        print(count, len(open(path).read()))
    """,
    "the words of its usage line": """
        words = [word for word in sys.argv[1:] if word != "--important"]
        if len(words) < 3 or words[0] != "merge":
            sys.exit(f"Usage: {sys.argv[0]} merge RAW_DIR <rows json> [--important]")
        if not os.path.isdir(words[1]):
            sys.exit(f"Error: {words[1]} is not a directory")
        print(json.load(open(words[2])))
    """,
    "the words of a usage line under its heading": """
        words = [word for word in sys.argv[1:] if word != "--quiet"]
        if len(words) != 2:
            print("Usage:", "  python read.py COUNT INPUT.csv", sep=os.linesep)
            sys.exit(2)
        print(int(words[0]), len(open(words[1]).read()))
    """,
    "places that may be left out": """
        source, depth = None, None
        if len(sys.argv) > 1:
            source = sys.argv[1]
        if len(sys.argv) > 2:
            depth = int(sys.argv[2])
        if depth is None:
            sys.exit("usage: read.py <source-file> <depth>")
        print(len(open(source).read()), depth)
    """,
    "a file for each further word": """
        for path in sys.argv[1:]:
            print(len(open(path).read()))
    """,
    "a file inside a directory": """
        if not os.path.exists(os.path.join(sys.argv[1], "SKILL.md")):
            sys.exit(f"No SKILL.md found at {sys.argv[1]}: SKILL.md does not exist")
        print("found")
    """,
    "a directory that the message does not name": """
        if not os.path.exists(os.path.join(sys.argv[1], "plan.json")):
            sys.exit("plan.json not found")
        print("found")
    """,
    "the document that the instructions show": """
        for row in json.load(open(sys.argv[1])):
            left, right = row["box"][0], row["box"][2]
            assert right - left == 40, "another document"
        print("read")
    """,
    "a document with the members that it reads": """
        document = json.load(open(sys.argv[1]))
        print(document["total"] + 1, [row["label"] for row in document["rows"]])
    """,
    "an array of such documents": """
        print([row["label"] + "" for row in json.load(open(sys.argv[1]))])
    """,
}
EXPECTING |= {
    "a directory of a document that was unpacked": """
        if not os.path.isdir(os.path.join(sys.argv[1], "word")):
            sys.exit(f"Error: {sys.argv[1]}/word not found")
        print(len(open(os.path.join(sys.argv[1], "word", "document.xml")).read()))
    """,
    "a directory with a file of the kind that it reads": """
        import glob
        found = glob.glob(os.path.join(sys.argv[1], "*.sarif"))
        if not os.path.isdir(sys.argv[1]):
            sys.exit(f"{sys.argv[1]} is not a directory")
        if not found:
            sys.exit("nothing to merge")
        print(len(json.load(open(found[0]))["runs"]))
    """,
    "options that its parser does not require": """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--branch")
        parser.add_argument("--depth", type=int)
        sent = parser.parse_args()
        if not sent.branch or sent.depth is None:
            parser.error("--branch and --depth are required")
        print(sent.branch * sent.depth)
    """,
    "a text that is JSON": """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--services", required=True)
        sent = parser.parse_args()
        try:
            services = json.loads(sent.services)
        except ValueError as error:
            sys.exit(f"Invalid JSON for --services: {error}: not valid JSON")
        print([each["host"] for each in services["hosts"]])
    """,
    "a repository with an untracked file": """
        import subprocess
        status = subprocess.run(
            ["git", "status", "--porcelain"], capture_output=True, text=True
        )
        if status.returncode:
            sys.exit(status.stderr)
        assert " M two.txt" in status.stdout and "?? three.txt" in status.stdout
        print(status.stdout, sys.argv[1:])
    """,
}
EXPECTING |= {
    "a file that the script's own message names after its name": """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("source")
        source = parser.parse_args().source
        if not os.path.exists(source):
            parser.error(f"{source} does not exist")
        print(len(open(source).read()))
    """,
    "a file, after a warning about another one": """
        print("settings.json not found, using defaults", file=sys.stderr)
        print(len(open(sys.argv[1]).read()))
    """,
    "a file without a suffix": """
        print(len(open(os.path.join(sys.argv[1], "Makefile")).read()))
    """,
}
SHOWN = '```json\n[{"box": [10, 20, 50, 60] /* left, top, right, bottom */}]\n```\n'


def write_reader(directory: Path, code: str, body: str = "") -> None:
    """Write a skill with the script *code*, whose contract is derived."""
    (directory / "scripts").mkdir(parents=True)
    (directory / "SKILL.md").write_text(
        f"---\nname: read\ndescription: Reads json files.\n---\n{body}"
    )
    (directory / "scripts" / "read.py").write_text(textwrap.dedent(code))


@pytest.mark.processes
@pytest.mark.parametrize("code", EXPECTING.values(), ids=EXPECTING)
def test_a_script_is_called_again_with_what_it_expects(
    tmp_path: Path, code: str
) -> None:
    """Its words are texts for the contract, which was derived."""
    imports = "import json, os, sys\n\n"
    write_reader(tmp_path / "read", imports + textwrap.dedent(code), SHOWN)

    result = outcome(tmp_path, calls=30)

    assert result.failures == []
    assert result.succeeded


def test_a_shown_document_is_tried_only_if_the_script_takes_its_members() -> None:
    """Those with the most of them come first."""
    modules = [ast.parse("print(row['name'], row['age'])")]
    blocks = ['{"port": 1}', '{"name": "x"}', '{"name": 1.50, "age": 2}', "{broken"]
    instructions = "\n".join(f"```json\n{block}\n```\n" for block in blocks)

    shown = [*map(json.loads, shown_documents.json_documents(modules, instructions))]

    assert shown[:2] == [{"name": 1.5, "age": 2}, {"name": "x"}]
    assert len(shown) == 4
    assert shown[3] == [shown[2], shown[2]]


@pytest.mark.parametrize("has_form", [True, False])
def test_a_made_pdf_has_a_form_or_none(has_form: bool) -> None:
    pypdf = needs.package("pypdf")

    data = pdf_documents.pdf_document(pdf_documents.PLAIN_PAGES, has_form=has_form)
    read = pypdf.PdfReader(io.BytesIO(data), strict=True)

    assert len(read.pages) == 10
    kinds = {name: part["/FT"] for name, part in (read.get_fields() or {}).items()}
    expected = {"name": "/Tx", "number": "/Tx", "notes": "/Tx"}
    expected |= {"agreed": "/Btn", "paid": "/Btn", "size": "/Ch", "days": "/Ch"}
    assert kinds == (expected if has_form else {})


def test_made_pages_are_of_several_kinds() -> None:
    """A page longer than what is shown, pages without text, one that is unreadable."""
    pypdf = needs.package("pypdf")

    crowded = pypdf.PdfReader(
        io.BytesIO(pdf_documents.pdf_document(pdf_documents.CROWDED_PAGES)), strict=True
    )
    unreadable = pypdf.PdfReader(
        io.BytesIO(pdf_documents.pdf_document(pdf_documents.UNREADABLE_PAGES))
    )

    lengths = [len(page.extract_text()) for page in crowded.pages]
    assert lengths[0] > 5_000
    assert lengths.count(0) > 20
    assert unreadable.pages[0].extract_text()
    with pytest.raises(NotImplementedError):
        unreadable.pages[-1].extract_text()


@pytest.mark.parametrize(
    "data",
    [
        b'["\\ud800"]',
        b"[" + b"9" * 4_300 + b"]",
        b"[1e400]",
        b'{"a": {"b": []}}',
        b"not JSON",
        b"",
    ],
)
def test_a_document_that_cannot_be_enlarged_is_left_out(data: bytes) -> None:
    assert crowded_data.crowded_document(data) is None


@pytest.mark.parametrize(
    "data",
    [
        json.dumps({f"member{number}": [{}] for number in range(850)}).encode(),
        b'[{"a":' * 900 + b"1" + b"}]" * 900,  # some versions of Python refuse this
    ],
)
def test_lists_do_not_multiply(data: bytes) -> None:
    enlarged = crowded_data.crowded_document(data) or b""

    assert len(enlarged) < 2_000_000


@pytest.mark.parametrize(
    "data", [b"a,a,b\n1,2,3\n", b"a,,,b\n1,2,3,4\n", b"a,b\n", b""]
)
def test_a_table_with_unclear_columns_is_not_enlarged(data: bytes) -> None:
    assert crowded_data.crowded_table(data) is None


def test_an_enlarged_table_keeps_its_columns() -> None:
    """Also those that further columns are called, and with another delimiter."""
    table = b'"a,b";price;day\n"x";"-0.5";2024-02-28\n"y";7;2024-02-29\n'

    enlarged = (crowded_data.crowded_table(table) or b"").decode().splitlines()

    assert enlarged[0].startswith("a,b;price;day;started;")
    assert enlarged[1].startswith("x;-0.5;2024-02-28;")
    assert enlarged[2].startswith("y 1;8;2024-03-01;")
    assert len(enlarged) == 121


def test_enlarged_lines_keep_their_form() -> None:
    """Other line ends, and no line end after the last one."""
    lines = crowded_data.crowded_lines("one.\r\n```python\ntwo").splitlines()

    assert lines[:6] == ["one.", "```python", "two", "one 1.", "```python", "two 1"]


HOSTILE = """
import sys
sys.exit(f"{sys.argv[1]}/../../outside.txt not found: {sys.argv[1]}/../../outside/SKILL.md")
"""


@pytest.mark.processes
def test_no_lesson_leads_outside_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages of an untrusted script, and the names of its parameters, become
    paths.
    """
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()
    directory = tmp_path / "skills" / "read"
    write_reader(directory, HOSTILE)
    contract = {
        "version": "1.0.0",
        "input": {"properties": {"../../../up": {"type": "string"}}},
        "run": {"script": "scripts/read.py"},
    }

    outcome(tmp_path / "skills", calls=6)
    (directory / "contract.json").write_text(json.dumps(contract))
    outcome(tmp_path / "skills", calls=6)

    assert [*tmp_path.rglob("outside*"), *tmp_path.rglob("up*")] == []


@pytest.mark.processes
def test_a_traceback_is_no_lesson_where_the_contract_is_written(tmp_path: Path) -> None:
    """It promises that any text is taken."""
    directory = tmp_path / "read"
    code = "import json, sys\nprint(int(json.load(sys.stdin)['count']))\n"
    write_reader(directory, code)
    contract = {
        "version": "1.0.0",
        "input": {"properties": {"count": {"type": "string"}}, "required": ["count"]},
        "run": {"script": "scripts/read.py"},
    }
    (directory / "contract.json").write_text(json.dumps(contract))

    result = outcome(tmp_path, calls=6)

    assert "ValueError" in result.failures[0].message


@pytest.mark.processes
def test_a_later_call_teaches_the_others_nothing(tmp_path: Path) -> None:
    """An option that one mode needs is refused in the others, which would hide their
    faults.
    """
    code = """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--mode", choices=["plain", "page"], default="plain")
        parser.add_argument("--zone")
        parser.add_argument("--deep", action="store_true")
        sent = parser.parse_args()
        if sent.mode == "page" and not sent.zone:
            parser.error("--zone is required for pages")
        if sent.mode != "page" and sent.zone:
            parser.error("a zone is for pages")
        if sent.deep and sent.mode == "plain":
            undefined
        print("done")
    """
    write_reader(tmp_path / "read", code)

    result = outcome(tmp_path, calls=30)

    assert {"NameError" in failure.message for failure in result.failures} == {True}


@pytest.mark.processes
def test_a_made_repository_is_apart_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git names the repository of a hook in a variable."""
    git = needs.program("git")
    mine = tmp_path / "mine"
    mine.mkdir()
    subprocess.run([git, "init", "-q", str(mine)], check=True)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "README.md").write_text("mine")
    before = {path: path.stat().st_mtime_ns for path in (mine / ".git").rglob("*")}
    monkeypatch.setenv("GIT_DIR", str(mine / ".git"))

    made = repository.make_repository(workspace)

    assert [*made] == ["src/one.py", "two.txt", "three.txt"]
    assert (workspace / "README.md").read_text() == "mine"
    assert (workspace / ".git" / "refs" / "heads" / "main").exists()
    assert before == {
        path: path.stat().st_mtime_ns for path in (mine / ".git").rglob("*")
    }


@pytest.mark.processes
def test_a_missing_program_is_not_a_missing_file(tmp_path: Path) -> None:
    code = """
        import subprocess, sys
        subprocess.run(["no-such-program", *sys.argv[1:]])
    """
    write_reader(tmp_path / "read", code)

    result = outcome(tmp_path, calls=4)

    assert [hindrance.reason for hindrance in result.hindrances] == [
        "it runs 'no-such-program', which is not installed"
    ]


@pytest.mark.processes
@pytest.mark.parametrize("word", ["not a number ", "not found ", "/", "xml."])
def test_a_long_message_is_read_in_linear_time(tmp_path: Path, word: str) -> None:
    """An untrusted script may write anything."""
    code = f"import sys\nprint('not found', {word!r} * 100_000)\nsys.exit(sys.argv)\n"
    write_reader(tmp_path / "read", code)

    result = outcome(tmp_path, calls=3)

    assert result.made == 3
