"""Skills tested from their contracts: `skillruntime/testing/skill_tests/`."""

from __future__ import annotations

import io
import json
import shutil
import textwrap
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from skillruntime.testing import CallableResult, SkillTests, run_skill_tests
from skillruntime.testing.skill_tests.inputs import made_files, office_documents
from tests import needs

CONTRACT: dict[str, Any] = {
    "version": "1.0.0",
    "description": "Repeat a text.",
    "input": {
        "type": "object",
        "required": ["text"],
        "additionalProperties": False,
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": 9},
            "times": {"type": "integer", "minimum": 1, "maximum": 3, "default": 1},
        },
    },
    "output": {
        "type": "object",
        "required": ["text"],
        "properties": {
            "text": {"type": "string"},
            "file": {"type": "string", "format": "path"},
        },
    },
    "annotations": {"read_only": True, "idempotent": True},
    "run": {"script": "scripts/repeat.py", "timeout_seconds": 30},
}
GOOD = 'result = {"text": sent["text"] * sent.get("times", 1)}'


def write_skill(root: Path, code: str, **changes: Any) -> Path:
    """Write a skill whose script computes ``result`` from ``sent`` by *code*."""
    directory = root / "repeat"
    (directory / "scripts").mkdir(parents=True)
    (directory / "SKILL.md").write_text(
        "---\nname: repeat\ndescription: Repeats a text.\n---\nCall `repeat`.\n"
    )
    (directory / "contract.json").write_text(json.dumps(CONTRACT | changes))
    (directory / "scripts" / "repeat.py").write_text(
        "import json, os, sys, time, uuid\n\nsent = json.load(sys.stdin)\n"
        f"{textwrap.dedent(code)}\nprint(json.dumps(result))\n"
    )
    return directory


def result_of(root: Path, code: str = GOOD, **changes: Any) -> CallableResult:
    """Test the skill that `write_skill` writes, without a sandbox."""
    write_skill(root, code, **changes)
    return outcome(root)


def outcome(root: Path, calls: int = 12, **options: Any) -> CallableResult:
    # A busy machine must not leave out a call.
    tests = SkillTests(trust=True, calls=calls, **{"seconds": 600.0, **options})
    report = run_skill_tests(root, tests=tests)
    return report.skills[0].callables[0]


def checks_of(result: CallableResult) -> set[str]:
    return {failure.check for failure in result.failures}


@pytest.mark.processes
def test_a_skill_without_faults_passes(tmp_path: Path) -> None:
    """Every call that the contract takes gives a result."""
    result = result_of(tmp_path)

    assert result.status == "passed"
    assert result.failures == []
    assert result.succeeded == result.made
    assert result.made >= 5


FAULTS = {
    "an exception": ("traceback", 'result = {}\nif "times" in sent: sent["none"]'),
    "an exception after the result is known": ("traceback", f"{GOOD}\nresult.none"),
    "a signal": ("exit", "import signal\nos.kill(os.getpid(), signal.SIGSEGV)"),
    "a wrong type": ("output", 'result = {"text": len(sent["text"])}'),
    "a missing key": ("output", 'result = {"texts": sent["text"]}'),
    "a print": ("output", f'print("working")\n{GOOD}'),
    "a print before an error": (
        "output",
        'if "times" in sent:\n    print("working")\n'
        '    print(\'{"status": "failed", "errors": '
        '[{"code": "INVALID_INPUT", "message": "not now"}]}\')\n    sys.exit(1)\n'
        f"{GOOD}",
    ),
    "no output": ("output", "sys.exit(0)"),
    "a file that is written": ("read-only", f'open("log.txt", "w").close()\n{GOOD}'),
    "a file that is not there": ("files", f'{GOOD}\nresult["file"] = "out.txt"'),
    "a number that changes": ("idempotent", f"{GOOD}\nresult['n'] = time.time_ns()"),
    "an escape sequence": ("escape", 'result = {"text": "\\x1b[31mred"}'),
    "a bound": (
        "bound",
        GOOD + '\nif sent.get("times") == 3:\n'
        '    print(\'{"status": "failed", "errors": '
        '[{"code": "INVALID_INPUT", "message": "too many"}]}\')\n    sys.exit(1)',
    ),
}


@pytest.mark.processes
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_the_contract_shows_is_found(tmp_path: Path, fault: str) -> None:
    """Each check of the table finds the fault that it is for."""
    check, code = FAULTS[fault]

    result = result_of(tmp_path, code)

    assert checks_of(result) == {check}
    assert result.status == "failed"


@pytest.mark.processes
def test_a_call_beyond_the_timeout_is_a_failure(tmp_path: Path) -> None:
    """`timeout_seconds` is what the contract promises."""
    run = {"script": "scripts/repeat.py", "timeout_seconds": 1}

    result = result_of(tmp_path, f"time.sleep(60)\n{GOOD}", run=run)

    assert "time" in checks_of(result)


@pytest.mark.processes
def test_the_scripts_own_parser_takes_what_a_written_contract_takes(
    tmp_path: Path,
) -> None:
    """The contract has a member that argparse does not know."""
    mode = {"type": "string", "enum": ["fast", "slow"]}
    line = {"parser": "argparse", "parameters": [{"name": "mode", "flag": "--mode"}]}
    directory = write_skill(
        tmp_path,
        GOOD,
        input={"type": "object", "properties": {"mode": mode}},
        run={"script": "scripts/repeat.py", "command_line": line},
    )
    (directory / "scripts" / "repeat.py").write_text(
        "import argparse, json\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--mode', choices=['fast'])\nparser.parse_args()\n"
        "print(json.dumps({'text': 'a'}))\n"
    )

    result = outcome(tmp_path)

    [failure] = result.failures
    assert (failure.check, failure.arguments) == ("usage", {"mode": "slow"})


def write_derived(root: Path, code: str) -> None:
    """Write a skill whose contract is derived from its script, a command line."""
    directory = root / "derived"
    (directory / "scripts").mkdir(parents=True)
    (directory / "SKILL.md").write_text(
        "---\nname: derived\ndescription: Prints words.\n---\n"
        "Run `python scripts/say.py hello`.\n"
    )
    (directory / "scripts" / "say.py").write_text(
        "import argparse, sys\n\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('word', help='what to say')\n"
        f"{textwrap.dedent(code)}\nprint(parser.parse_args().word)\n"
    )


DERIVED_FAULTS = {
    "none": ("parser.add_argument('--loud', action='store_true')", []),
    "the script takes what its contract refuses": (
        "if len(sys.argv) == 1: sys.argv.append('hello')",
        [("usage", {})],
    ),
    "help that cannot be printed": (
        "parser.format_help = lambda: parser.usage % 1",
        [("traceback", {"help": True})],
    ),
}


@pytest.mark.processes
@pytest.mark.parametrize("fault", DERIVED_FAULTS)
def test_a_derived_contract_is_compared_with_the_scripts_own_parser(
    tmp_path: Path, fault: str
) -> None:
    """With ``--help`` and with a command line that the contract refuses."""
    code, expected = DERIVED_FAULTS[fault]
    write_derived(tmp_path, code)

    result = outcome(tmp_path)

    assert result.succeeded == result.made
    assert [(each.check, each.arguments) for each in result.failures] == expected


UNREAD = (
    "sizes = [str(n) for n in range(3)]\nparser.add_argument('--size', choices=sizes)\n"
)


@pytest.mark.processes
def test_a_part_that_was_not_read_from_the_script_blames_no_script(
    tmp_path: Path,
) -> None:
    """The contract says itself that it may take more than the script."""
    write_derived(tmp_path, UNREAD)

    result = outcome(tmp_path)

    assert result.failures == []
    assert 0 < result.succeeded < result.made


@pytest.mark.processes
def test_a_part_that_was_not_read_excuses_no_other(tmp_path: Path) -> None:
    """Of another argument the contract knows the choices, and the script has others."""
    write_derived(
        tmp_path,
        f"{UNREAD}mode = parser.add_argument('--mode')\n"
        "vars(mode)['choices'] = ['fast']\n",
    )

    result = outcome(tmp_path)

    assert {each.check for each in result.failures} == {"usage"}
    assert all("mode" in each.message for each in result.failures)


@pytest.mark.processes
def test_a_shown_command_with_a_path_elsewhere_blames_no_script(tmp_path: Path) -> None:
    """`/path/to/skill` is a place that the reader fills in."""
    write_derived(
        tmp_path,
        "if sys.argv[1:] == ['/path/to/skill']: raise ValueError('no such skill')",
    )
    path = tmp_path / "derived" / "SKILL.md"
    path.write_text(path.read_text().replace("hello", "/path/to/skill"))

    result = outcome(tmp_path)

    assert result.failures == []
    assert result.succeeded < result.made


@pytest.mark.processes
def test_two_skills_of_the_same_name_are_both_tested(tmp_path: Path) -> None:
    """The catalog qualifies the name of one of them."""
    write_derived(tmp_path / "one", "")
    write_derived(tmp_path / "two", "parser.add_argument('--loud')")

    report = run_skill_tests(tmp_path, tests=SkillTests(trust=True, calls=2))

    statuses = [(each.name, each.status) for each in report.skills]
    assert len(statuses) == 2
    assert ("derived", "passed") in statuses
    assert {status for _, status in statuses} == {"passed"}


@pytest.mark.processes
def test_one_tool_is_tested_alone(tmp_path: Path) -> None:
    """A name that no tool has is a failure, and not a test that passes."""
    write_skill(tmp_path, GOOD)
    write_derived(tmp_path, "")

    report = run_skill_tests(
        tmp_path,
        tests=SkillTests(trust=True, calls=1, only=("derived/say", "derived/sing")),
    )

    [skill] = report.skills
    assert [(each.name, each.status) for each in skill.callables] == [
        ("derived", "failed"),
        ("derived/say", "passed"),
    ]
    assert "no tool 'derived/sing'" in skill.callables[0].failures[0].message


@pytest.mark.processes
def test_the_value_of_a_secret_variable_in_an_answer_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that encodes a secret gets around the runtime's own masks only if it is
    not given as it is; the check compares what reaches the model.
    """
    monkeypatch.setenv("SOME_API_KEY", "an-abundant-secret")
    code = 'result = {"text": "an-abundant" + "-secret"}'

    result = result_of(tmp_path, code)

    assert checks_of(result) == {"secret"}


@pytest.mark.processes
def test_a_failing_call_is_shrunk_and_printed_as_a_command(tmp_path: Path) -> None:
    """The smallest call that still fails, and how to repeat it."""
    result = result_of(tmp_path, f'{GOOD}\nif sent["text"] > "": result.none')

    failure = result.failures[0]
    assert failure.arguments == {"text": "a"}
    assert failure.command == (
        f'skillruntime call repeat \'{{"text": "a"}}\' --skills {tmp_path} --trust'
    )


@pytest.mark.processes
def test_a_refusal_in_the_words_of_the_script_does_not_fail(tmp_path: Path) -> None:
    """A schema cannot say everything: a script may refuse a text."""
    code = (
        f'{GOOD}\nif "é" in sent["text"]:\n    print("only ASCII", file=sys.stderr)\n'
        "    sys.exit(1)"
    )

    result = result_of(tmp_path, code)

    assert result.failures == []
    assert result.succeeded < result.made


@pytest.mark.processes
def test_files_that_a_call_names_are_made(tmp_path: Path) -> None:
    """The suffix that the description shows says which kind."""
    path = {
        "type": "string",
        "format": "path",
        "description": "The table. Example: 'sales.csv'",
    }
    schema = {"type": "object", "required": ["path"], "properties": {"path": path}}
    code = 'result = {"text": open(sent["path"]).readline()}'
    write_skill(tmp_path, code, input=schema)

    result = outcome(tmp_path, calls=3)

    assert result.status == "passed"
    assert result.succeeded == result.made


@pytest.mark.processes
def test_a_schema_of_several_parts_is_tested(tmp_path: Path) -> None:
    """A parameter may be declared in a part, and take several types."""
    schema = {
        "allOf": [{"properties": {"level": {"type": "integer"}}}],
        "properties": {"mode": {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}},
    }
    code = 'result = {"text": str(sent.get("level"))}'
    write_skill(tmp_path, code, input={"type": "object", **schema})

    result = outcome(tmp_path, calls=60)

    assert result.status == "passed"
    assert result.succeeded == result.made


@pytest.mark.processes
@pytest.mark.parametrize("name", ["report.pdf", "table.csv", "data.json"])
def test_a_reader_of_plain_files_has_no_failures(tmp_path: Path, name: str) -> None:
    """The other forms of a file are not what its contract describes."""
    path = {"type": "string", "format": "path", "examples": [name]}
    readers = {
        "report.pdf": "from pypdf import PdfReader\n"
        "text = [p.extract_text() for p in PdfReader(sent['path']).pages]",
        "table.csv": "import csv\nwith open(sent['path']) as file:\n"
        "    reader = csv.reader(file)\n    text = [next(reader), *reader]",
        "data.json": "text = [row['name'] for row in json.load(open(sent['path']))]",
    }
    if name == "report.pdf":
        needs.package("pypdf")
    code = f"{readers[name]}\nresult = {{'text': str(text)}}"
    schema = {"type": "object", "required": ["path"], "properties": {"path": path}}
    write_skill(tmp_path, code, input=schema)

    result = outcome(tmp_path, calls=60)

    assert result.failures == []
    assert result.succeeded >= 3


@pytest.mark.processes
def test_a_file_of_each_listed_kind_is_made(tmp_path: Path) -> None:
    """The description lists them with the kind that the example shows."""
    path = {"type": "string", "format": "path", "examples": ["a.csv"]}
    schema = {"type": "object", "required": ["path"], "properties": {"path": path}}
    code = 'result = {"text": open(sent["path"]).readline()}\n'
    code += 'if sent["path"].endswith("json"): result.none'

    result = result_of(
        tmp_path, code, input=schema, description="Reads a table (CSV, JSON, Parquet)."
    )

    assert result.failures[0].arguments == {"path": "input.json"}


@pytest.mark.processes
def test_fixtures_take_the_place_of_made_files(tmp_path: Path) -> None:
    """A file below the skill's tests/ has what the skill needs."""
    path = {"type": "string", "format": "path"}
    schema = {"type": "object", "required": ["path"], "properties": {"path": path}}
    code = (
        'result = {"text": open(sent["path"]).read()}\nassert "own" in result["text"]'
    )
    directory = write_skill(tmp_path, code, input=schema)
    (directory / "tests").mkdir()
    (directory / "tests" / "data.txt").write_text("my own")

    result = outcome(tmp_path)

    assert result.status == "passed"


@pytest.mark.processes
def test_a_sample_that_the_skill_bundles_takes_the_place_of_a_made_file(
    tmp_path: Path,
) -> None:
    """It has the members that the script expects."""
    path = {"type": "string", "format": "path", "examples": ["campaign.json"]}
    schema = {"type": "object", "required": ["path"], "properties": {"path": path}}
    code = 'result = {"text": json.load(open(sent["path"]))["channel"]}'
    directory = write_skill(tmp_path, code, input=schema)
    (directory / "assets").mkdir()
    (directory / "assets" / "expected.json").write_text("{}")
    (directory / "assets" / "sample_campaign.json").write_text('{"channel": "web"}')

    result = outcome(tmp_path, calls=1)

    assert result.status == "passed"
    assert result.succeeded == result.made


@pytest.mark.processes
def test_what_is_missing_is_named_by_the_line_that_says_so(tmp_path: Path) -> None:
    """Other lines may follow it."""
    code = 'sys.exit("brand.webp not found\\nServer: a")'

    result = result_of(tmp_path, code, annotations={})

    assert [each.reason for each in result.hindrances] == [
        "it needs files that were not there: brand.webp not found"
    ]


@pytest.mark.processes
def test_what_lies_in_tests_workspace_is_there_in_every_call(tmp_path: Path) -> None:
    """A configuration file, for example, which no parameter names."""
    code = 'result = {"text": open("settings.txt").read() + sent["text"]}'
    directory = write_skill(tmp_path, code)
    (directory / "tests" / "workspace").mkdir(parents=True)
    (directory / "tests" / "workspace" / "settings.txt").write_text("on")

    result = outcome(tmp_path)

    assert result.status == "passed"
    assert result.succeeded == result.made


@pytest.mark.processes
def test_a_directory_is_made_where_the_script_wants_one(tmp_path: Path) -> None:
    """The message about a made-up text, and then about a made file, names it."""
    schema = {
        "type": "object",
        "required": ["source"],
        "properties": {"source": {"type": "string"}},
    }
    code = """
    if not os.path.isdir(sent["source"]):
        sys.exit(f"{sent['source']} is not a directory")
    result = {"text": " ".join(sorted(os.listdir(sent["source"])))}
    """

    result = result_of(tmp_path, code, input=schema)

    assert result.status == "passed"
    assert result.succeeded == result.made


@pytest.mark.processes
def test_a_bound_is_tried_beside_the_parameters_that_it_needs(tmp_path: Path) -> None:
    """The number alone is refused for another reason."""
    schema = {
        "type": "object",
        "properties": {
            "by": {"type": "string", "enum": ["day"]},
            "most": {"type": "integer", "minimum": 1, "maximum": 9},
        },
        "examples": [{"by": "day", "most": 4}],
    }
    refusal = (
        'print(json.dumps({"status": "failed", "errors": '
        '[{"code": "INVALID_INPUT", "message": "refused"}]}))'
    )
    code = (
        'result = {"text": "a"}\nmost = sent.get("most")\n'
        f'if most and ("by" not in sent or most == 9):\n    {refusal}\n    sys.exit(1)'
    )

    result = result_of(tmp_path, code, input=schema)

    assert [(each.check, each.arguments) for each in result.failures] == [
        ("bound", {"most": 9})
    ]


@pytest.mark.processes
def test_calls_that_a_reference_shows_are_made(tmp_path: Path) -> None:
    """A JSON block of a text in `references/` that fits the contract."""
    code = f'{GOOD}\nassert sent["text"] != "shown"'
    directory = write_skill(tmp_path, code)
    (directory / "references").mkdir()
    (directory / "references" / "calls.md").write_text(
        '# Calls\n\n```json\n{"text": "shown"}\n```\n'
    )

    result = outcome(tmp_path)

    first = result.failures[0]
    assert (first.check, first.kind) == ("traceback", "example")
    assert first.arguments == {"text": "shown"}


def test_made_documents_are_what_their_suffix_says() -> None:
    """Each can be opened by a library for its kind."""
    needs.package("python_calamine")
    needs.package("pypdf")
    import pypdf
    import python_calamine

    workbook = python_calamine.load_workbook(
        io.BytesIO(made_files.made_file("a.xlsx") or b"")
    )
    document = pypdf.PdfReader(io.BytesIO(made_files.made_file("a.pdf") or b""))
    archive = zipfile.ZipFile(io.BytesIO(made_files.made_file("a.docx") or b""))

    rows = workbook.get_sheet_by_index(0).to_python()
    assert rows[1] == ["Ann", "north", "2024-11-20", 3, 12.5]
    assert workbook.sheet_names == ["Sheet1", "Sheet2"]
    assert document.pages[9].extract_text() == "A line of text on page 10."
    text = ElementTree.fromstring(archive.read("word/document.xml")).itertext()
    assert "".join(text) == (
        "TitleA paragraph of text.Another one, by Zoë.onetwo"
        "namevalueAnn3Bob10The last paragraph."
    )


def test_a_made_workbook_has_the_cells_that_were_asked_for() -> None:
    python_calamine = needs.package("python_calamine")

    data = office_documents.workbook(
        {"Cells": [["a & b", None, True], [1.5, "=A2*2"]], "Empty": []}
    )

    read = python_calamine.load_workbook(io.BytesIO(data))
    assert read.get_sheet_by_name("Cells").to_python()[0] == ["a & b", "", True]
    assert read.get_sheet_by_name("Empty").to_python() == []


@pytest.mark.parametrize("suffix", office_documents.OFFICE_SUFFIXES)
def test_a_made_document_declares_each_of_its_parts(suffix: str) -> None:
    parts = office_documents.unpacked(made_files.made_file(f"a{suffix}") or b"")

    declared = parts["[Content_Types].xml"].decode()
    related = "".join(
        text.decode() for name, text in parts.items() if name.endswith(".rels")
    )
    for name, text in parts.items():
        ElementTree.fromstring(text)
        if not name.endswith(".rels") and name != "[Content_Types].xml":
            assert f'PartName="/{name}"' in declared
            assert name.partition("/")[2] in related


@pytest.mark.processes
def test_a_script_that_asks_a_person_is_not_at_fault(tmp_path: Path) -> None:
    """Only a person can test its interactive option."""
    code = f'{GOOD}\nif sent.get("times", 1) > 1: input("Why? ")'

    result = result_of(tmp_path, code)

    assert result.failures == []
    assert 0 < result.succeeded < result.made


@pytest.mark.processes
def test_what_lacks_a_variable_is_not_testable(tmp_path: Path) -> None:
    """It is counted apart, and the remedy is an option of the command."""
    result = result_of(tmp_path, requires={"environment": ["NO_SUCH_VARIABLE"]})

    assert result.status == "not testable"
    assert result.made == 0
    assert result.hindrances[0].remedy == "set the variable, and add --env NAME"


@pytest.mark.processes
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("JSON.parse(readFileSync(0, 'utf8'))", "it reads a JSON document from"),
        ("await fetch('http://127.0.0.1:9/')", "it needs the network"),
    ],
)
def test_what_a_script_of_node_lacks_is_named(
    tmp_path: Path, code: str, reason: str
) -> None:
    needs.program("node")
    directory = tmp_path / "read"
    (directory / "scripts").mkdir(parents=True)
    (directory / "SKILL.md").write_text(
        "---\nname: read\ndescription: Reads a document.\n---\nRun scripts/read.mjs.\n"
    )
    (directory / "scripts" / "read.mjs").write_text(
        "import { readFileSync } from 'node:fs'\n"
        f"console.log({code}, process.argv[2], readFileSync)\n"
    )

    result = outcome(tmp_path)

    assert result.status == "not testable"
    assert result.hindrances[0].reason.startswith(reason)


def test_a_skill_of_instructions_passes(tmp_path: Path) -> None:
    """There is nothing to call."""
    directory = tmp_path / "notes"
    directory.mkdir()
    (directory / "SKILL.md").write_text(
        "---\nname: notes\ndescription: Writes notes.\n---\nWrite.\n"
    )

    report = run_skill_tests(tmp_path, tests=SkillTests(trust=True))

    assert [(skill.status, skill.callables) for skill in report.skills] == [
        ("passed", [])
    ]


@pytest.mark.processes
def test_own_cases_are_compared_with_what_comes_back(tmp_path: Path) -> None:
    """A part of the data is enough; an expected error is a success."""
    directory = write_skill(tmp_path, GOOD)
    (directory / "tests").mkdir()
    (directory / "tests" / "cases.yaml").write_text(
        "- arguments: {text: ab, times: 2}\n  data: {text: abab}\n"
        "- arguments: {text: ab, times: 2}\n  data: {text: ab}\n"
        "- arguments: {}\n  error: MISSING_REQUIRED_PARAM\n"
    )

    result = outcome(tmp_path)

    assert [(failure.check, failure.arguments) for failure in result.failures] == [
        ("case", {"text": "ab", "times": 2})
    ]


@pytest.mark.processes
def test_a_faulty_cases_file_is_a_failure_of_the_skill(tmp_path: Path) -> None:
    """Its author reads which key is wrong."""
    directory = write_skill(tmp_path, GOOD)
    (directory / "tests").mkdir()
    (directory / "tests" / "cases.yaml").write_text("- arguments: {}\n  dat: 1\n")

    result = outcome(tmp_path)

    assert "has 'dat'; its keys are" in result.failures[0].message


@pytest.mark.processes
def test_the_directory_that_is_tested_stays_as_it_is(tmp_path: Path) -> None:
    """A trusted script that writes beside itself writes into the copy."""
    code = f'open(os.path.dirname(__file__) + "/cache.txt", "w").close()\n{GOOD}'
    directory = write_skill(tmp_path, code)

    outcome(tmp_path)

    assert sorted(path.name for path in (directory / "scripts").iterdir()) == [
        "repeat.py"
    ]


WRITING = """
result = {"text": sent["text"] * sent.get("times", 1), "id": time.time_ns()}
with open("out.txt", "w") as file:
    file.write("3 rows, " + time.strftime("%Y-%m-%d %H:%M:%S"))
print("done in 1.5 ms", file=sys.stderr)
if "é" in sent["text"]:
    sys.exit(3)
"""
HIDDEN_FAULTS = {
    "none": ("", ""),
    "a number in the result": ('sent["text"] *', '"b" *'),
    "a member that is new": ("time.time_ns()}", 'time.time_ns(), "new": 1}'),
    "a number in a written file": ('"3 rows', '"4 rows'),
    "another file": ('"out.txt"', '"other.txt"'),
    "one file more": ("result =", 'open("more.txt", "w").close(); result ='),
    "a text on stderr": ('"done in 1', '"ended in 1'),
    "an ignored option": ('sent.get("times", 1)', "1"),
    "an exit code": ("sys.exit(3)", "sys.exit(4)"),
    "a call that is no longer refused": ('if "é" in sent["text"]', "if False"),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A skill with the cases that were recorded from it."""
    root = tmp_path_factory.mktemp("recorded")
    directory = write_skill(root, WRITING, annotations={})
    outcome(root, record=True)
    return directory


@pytest.mark.processes
@pytest.mark.parametrize("fault", HIDDEN_FAULTS)
def test_recorded_cases_find_what_no_contract_shows(
    tmp_path: Path, recorded: Path, fault: str
) -> None:
    """What came back once is expected from then on: the result, the files, stderr, and
    the calls that the script refuses.
    """
    before, after = HIDDEN_FAULTS[fault]
    shutil.copytree(recorded, tmp_path / recorded.name)
    script = tmp_path / recorded.name / "scripts" / "repeat.py"
    assert before in script.read_text()
    script.write_text(script.read_text().replace(before, after))

    result = outcome(tmp_path)

    expected = set() if fault == "none" else {"case"}
    assert checks_of(result) == expected


@pytest.mark.processes
def test_recorded_cases_expect_nothing_of_what_varies(recorded: Path) -> None:
    """A mark stands for it; the rest is written out."""
    written = (recorded / "tests" / "cases.yaml").read_text()

    first = written.split("- arguments", 2)[1]
    lines = first.splitlines()
    assert lines[:3] == [
        ': {"text": "a"}',
        '  data: {"text": "a", "id": "<any>"}',
        '  stderr: "done in <any>"',
    ]
    assert lines[3].startswith('  files: {"out.txt": "sha256:')
    assert lines[4:] == ["  exact: true"]


@pytest.mark.processes
def test_an_exact_case_finds_only_the_files_that_it_names(tmp_path: Path) -> None:
    """The files of other cases do not change what a script finds in its directory."""
    path = {"type": "string", "format": "path"}
    schema = {"type": "object", "required": ["path"], "properties": {"path": path}}
    code = 'result = {"text": " ".join(sorted(os.listdir()))}'
    directory = write_skill(tmp_path, code, input=schema)
    (directory / "tests").mkdir()
    for name in ("a.txt", "b.txt"):
        (directory / "tests" / name).write_text("x")
    (directory / "tests" / "cases.yaml").write_text(
        "- arguments: {path: a.txt}\n  data: {text: a.txt}\n  exact: true\n"
        "- arguments: {path: a.txt}\n  data: {text: a.txt b.txt}\n"
    )

    result = outcome(tmp_path)

    assert result.failures == []


@pytest.mark.processes
def test_an_own_case_whose_file_is_missing_fails(tmp_path: Path) -> None:
    """It is not a thing that this machine lacks."""
    code = f'{GOOD}\nif sent["text"] == "b": open("none.txt")'
    directory = write_skill(tmp_path, code)
    (directory / "tests").mkdir()
    (directory / "tests" / "cases.yaml").write_text(
        "- arguments: {text: b}\n  data: {text: b}\n"
    )

    result = outcome(tmp_path)

    assert "expected a result, got" in result.failures[0].message


@pytest.mark.processes
def test_an_option_is_tried_beside_the_option_that_it_needs(tmp_path: Path) -> None:
    """Then a recorded case shows that the script ignores it."""
    schema = {
        "type": "object",
        "properties": {
            "list": {"type": "boolean"},
            "upper": {"type": "boolean"},
            "sort": {"type": "string", "enum": ["up", "down"], "default": "up"},
        },
    }
    code = """
    result = {"text": ""}
    if sent.get("list") and sent.get("upper"):
        result["text"] = "ab" if sent.get("sort") != "down" else "ba"
    """
    directory = write_skill(tmp_path, code, input=schema)
    outcome(tmp_path, record=True)
    script = directory / "scripts" / "repeat.py"
    script.write_text(script.read_text().replace('sent.get("sort")', '"up"'))

    result = outcome(tmp_path)

    assert checks_of(result) == {"case"}


@pytest.mark.processes
def test_a_text_that_the_script_offers_is_tried(tmp_path: Path) -> None:
    """The message that refuses a made-up text says which texts there are."""
    schema = {"type": "object", "properties": {"mode": {"type": "string"}}}
    code = """
    if sent.get("mode", "plain") not in ("plain", "odd"):
        sys.exit(f"{sent['mode']!r} is unknown; choose 'plain' or 'odd'")
    result = {"text": str(len(sent.get("mode", "plain")))}
    """
    directory = write_skill(tmp_path, code, input=schema)
    outcome(tmp_path, record=True)

    written = (directory / "tests" / "cases.yaml").read_text()

    assert '- arguments: {"mode": "odd"}\n  data: {"text": "3"}\n' in written


@pytest.mark.processes
def test_an_option_for_an_output_file_that_exists_is_tried(tmp_path: Path) -> None:
    """The script refuses to overwrite it, so a call without the file is made first."""
    path = {"type": "string", "format": "path", "examples": ["new.txt"]}
    schema = {
        "type": "object",
        "properties": {"out": path, "overwrite": {"type": "boolean"}},
    }
    code = """
    out = sent.get("out")
    result = {"text": "nothing"}
    if out and os.path.exists(out) and not sent.get("overwrite"):
        sys.exit("the output exists")
    if out:
        open(out, "w").close()
    """
    directory = write_skill(tmp_path, code, input=schema, annotations={})

    outcome(tmp_path, calls=24, record=True)

    written = (directory / "tests" / "cases.yaml").read_text()
    assert (directory / "tests" / "existing.txt").is_file()
    assert '- arguments: {"out": "existing.txt"}\n  error' in written
    assert '- arguments: {"out": "existing.txt", "overwrite": true}\n  data' in written


@pytest.mark.processes
def test_texts_inside_an_object_are_replaced_by_texts_of_other_alphabets(
    tmp_path: Path,
) -> None:
    """Such as the value of a field of a form."""
    fields = {"type": "object", "additionalProperties": {"type": "string"}}
    schema = {
        "type": "object",
        "required": ["fields"],
        "properties": {"fields": fields},
        "examples": [{"fields": {"name": "Ann"}}],
    }
    code = 'sent["fields"].get("name", "").encode("latin-1")\nresult = {"text": ""}'

    result = result_of(tmp_path, code, input=schema)

    assert checks_of(result) == {"traceback"}


@pytest.mark.processes
def test_recording_twice_adds_nothing(tmp_path: Path) -> None:
    """The author's own file stays as it is."""
    directory = write_skill(tmp_path, GOOD)
    outcome(tmp_path, record=True)
    written = (directory / "tests" / "cases.yaml").read_text()

    outcome(tmp_path, record=True)

    assert (directory / "tests" / "cases.yaml").read_text() == written
