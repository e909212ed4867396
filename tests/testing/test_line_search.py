"""Calls that execute further lines of a script: `skill_tests/search/`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.runtime.sandbox.protocol import Finished, SandboxCommand, SandboxLevel
from skillruntime.runtime.scripts.process import PlainProcess
from skillruntime.runtime.scripts.python_start import python_words
from skillruntime.testing.skill_tests.inputs.script_literals import (
    read_literals,
    read_modules,
)
from skillruntime.testing.skill_tests.search.reached_lines import (
    TracingSandbox,
    noted_steps,
)
from tests import needs
from tests.testing.test_skill_tests import checks_of, outcome, write_skill

SCRIPT = """\
import sys
import own
def double(n):
    return 2 * n
for n in range(2):
    own.show(double(n))
print("on stderr", file=sys.stderr, end="")
sys.exit(3)
"""
TEXT = {"type": "string", "default": "a"}
PATH = {"type": "string", "format": "path"}


class Echo:
    """A sandbox that runs nothing, and writes the command to stderr."""

    level: SandboxLevel = "none"

    async def run(
        self,
        command: SandboxCommand,
        *,
        on_stopped: Callable[[bool], object] | None = None,
    ) -> Finished:
        return Finished(0, b"", " ".join(command.argv).encode())


def schema_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def recorded_text(path: Path, code: str, /, **properties: Any) -> str:
    """Return the cases that are recorded from a skill with these *properties*."""
    directory = write_skill(path, code, input=schema_of(**properties))
    outcome(path, calls=150, record=True)
    return (directory / "tests" / "cases.yaml").read_text()


@pytest.mark.processes
@pytest.mark.parametrize("folder", ["scripts", "."])
def test_a_traced_script_prints_the_same(tmp_path: Path, folder: str) -> None:
    """Its steps are noted, by file of the skill, and only where they are asked for."""
    directory = tmp_path / folder
    directory.mkdir(exist_ok=True)
    (directory / "main.py").write_text(SCRIPT)
    (directory / "own.py").write_text("def show(text):\n    print(text)\n")
    command = SandboxCommand(
        (sys.executable, *python_words(tmp_path, directory / "main.py")),
        tmp_path,
        skills=(tmp_path,),
    )
    run = partial(anyio.run, TracingSandbox(PlainProcess()).run, command)

    plain = run()
    with noted_steps() as steps:
        traced = run()

    prefix = "" if folder == "." else f"{folder}/"
    assert (plain.stdout, plain.stderr) == (b"0\n2\n", b"on stderr")
    assert (traced.stdout, traced.stderr) == (plain.stdout, plain.stderr)
    assert (plain.exit_code, traced.exit_code) == (3, 3)
    assert {step for step in steps if step[0] == f"{prefix}own.py"} == {
        (f"{prefix}own.py", 0, 1),
        (f"{prefix}own.py", 0, 2),
    }
    assert (f"{prefix}main.py", 6, 5) in steps


def test_only_python_is_traced(tmp_path: Path) -> None:
    """The words of another interpreter stay as they are."""
    words = ("/usr/bin/node", "/skill/scripts/a.js", "x.py")
    command = SandboxCommand(words, tmp_path, skills=(tmp_path,))

    with noted_steps() as steps:
        finished = anyio.run(TracingSandbox(Echo()).run, command)

    assert finished.stderr.decode() == " ".join(words)
    assert steps == set()


def test_a_note_that_was_cut_is_left_out(tmp_path: Path) -> None:
    """Only the end of stderr is kept."""
    argv = ("/bin/sh", "<steps of the traced script>AAAA\n")
    command = SandboxCommand(argv, tmp_path, skills=(tmp_path,))

    with noted_steps() as steps:
        finished = anyio.run(TracingSandbox(Echo()).run, command)

    assert (finished.stderr, steps) == (b"/bin/sh ", set())


@pytest.mark.processes
def test_a_trace_is_never_the_cause_of_a_failure(tmp_path: Path) -> None:
    """A call that fails is repeated without it."""
    code = 'if sys.gettrace(): raise KeyError("traced")\nresult = {"text": "a"}'
    write_skill(tmp_path, code)

    result = outcome(tmp_path)

    assert (result.status, result.failures) == ("passed", [])


@pytest.mark.processes
def test_a_text_of_the_source_is_tried(tmp_path: Path) -> None:
    """Those beside the name of a parameter, in lists and in patterns."""
    code = """
    import re
    text = sent.get("text", "a")
    result = {"text": "nothing"}
    if text == "open sesame":
        result["text"] = "open"
    elif re.search(r"^no\\\\. \\\\d{3}", text, re.MULTILINE):
        result["text"] = "a number"
    elif text.startswith("x-"):
        result["text"] = "further"
    """

    written = recorded_text(tmp_path, code, text=TEXT)

    for text in ("open", "a number", "further"):
        assert f'data: {{"text": "{text}"}}' in written


@pytest.mark.processes
def test_a_number_beyond_a_bound_of_the_source_is_tried(tmp_path: Path) -> None:
    """And the number at the bound."""
    code = 'result = {"text": "many" if sent.get("n", 0) > 740 else "few"}'

    written = recorded_text(tmp_path, code, n={"type": "integer"})

    assert '- arguments: {"n": 741}\n  data: {"text": "many"}' in written


@pytest.mark.processes
def test_a_file_with_the_members_that_the_script_reads_is_made(tmp_path: Path) -> None:
    """Deep members too, of the kinds that the script needs."""
    code = """
    result = {"text": "no file"}
    if "path" in sent:
        data = json.load(open(sent["path"]))
        if "reports" not in data:
            sys.exit("no reports")
        total = 0
        for report in data["reports"]:
            total += report.get("sales", 0)
        result = {"text": str(total)}
    """

    written = recorded_text(tmp_path, code, path=PATH | {"examples": ["a.json"]})

    assert '- arguments: {"path": "a.json"}\n  data: {"text": "7"}' in written
    members = json.loads((tmp_path / "repeat/tests/a.json").read_text())
    assert [report["sales"] for report in members["reports"]] == [3, 4]


@pytest.mark.processes
def test_a_directory_with_the_files_that_the_script_looks_for_is_made(
    tmp_path: Path,
) -> None:
    """By name, suffix and pattern."""
    code = """
    from pathlib import Path
    root = Path(sent.get("root", "."))
    found = [len([*root.glob("**/locales/**/*.json")]), len([*root.rglob("*.po")])]
    if (root / "setup.toml").exists():
        found.append("setup")
    result = {"text": str(found)}
    """

    written = recorded_text(tmp_path, code, root={"type": "string", "default": "."})

    assert '"root": "project"}\n  data: {"text": "[2, 2, \'setup\']"}' in written


@pytest.mark.processes
@pytest.mark.parametrize(
    ("units", "member"),
    [
        (["a1", "a2", "b1", "b2", "c1", "c2"], "c2"),
        (["m", "mm", "cm", "dm", "km", "in", "ft", "yd", "mi", "K"], "K"),
    ],
)
def test_members_of_two_enums_are_tried_together(
    tmp_path: Path, units: list[str], member: str
) -> None:
    """Those at equal positions, because they often mean the same, also of many."""
    unit = {"type": "string", "enum": units, "default": units[0]}
    code = f"""
    result = {{"text": "other"}}
    if (sent.get("from"), sent.get("to")) == ("{member}", "{member}"):
        result["text"] = "both"
    """

    written = recorded_text(tmp_path, code, **{"from": unit, "to": unit})

    assert 'data: {"text": "both"}' in written


@pytest.mark.processes
def test_values_that_are_refused_alike_speak_for_the_others(tmp_path: Path) -> None:
    """Calls are left for other parameters."""
    code = """
    if sent.get("columns"):
        refused = {"code": "INVALID_INPUT", "message": f"no {sent['columns']}"}
        print(json.dumps({"status": "failed", "errors": [refused]}))
        sys.exit(1)
    result = {"text": sent["text"]}
    """
    columns = {"type": "array", "items": {"type": "string"}}
    write_skill(tmp_path, code, input=schema_of(text=TEXT, columns=columns))

    result = outcome(tmp_path, calls=18)

    # The hard texts are the last.
    assert result.succeeded >= 8


@pytest.mark.processes
def test_the_search_ends_when_nothing_new_is_reached(tmp_path: Path) -> None:
    """It does not use up the calls."""
    write_skill(tmp_path, 'result = {"text": sent["text"]}')

    result = outcome(tmp_path, calls=1000)

    assert result.status == "passed"
    assert result.made < 80


@pytest.mark.processes
@pytest.mark.parametrize(
    ("error", "checks"),
    [('ValueError("no name")', set()), ('RuntimeError("broken")', {"traceback"})],
)
def test_an_error_about_the_form_of_a_made_file_does_not_fail(
    tmp_path: Path, error: str, checks: set[str]
) -> None:
    """No contract describes the content of a file."""
    code = f"""
    result = {{"text": ""}}
    if "path" in sent and not open(sent["path"]).read():
        raise {error}
    """
    path = PATH | {"examples": ["a.txt"]}
    write_skill(tmp_path, code, input=schema_of(path=path))

    result = outcome(tmp_path, calls=150)

    assert checks_of(result) == checks


def test_literals_are_read_from_the_modules_of_a_script(tmp_path: Path) -> None:
    """Without what decides whether the script is started or imported."""
    (tmp_path / "main.py").write_text(
        "import re\nfrom own import f\n"
        'if args.mode in ("fast", "slow"): f()\n'
        'if len(text) > 40: print(row["name"], row.get("day"), text[:50])\n'
        'if __name__ == "__main__": re.match(r"v\\d", "v1")\n'
    )
    (tmp_path / "own.py").write_text('def f():\n    KINDS = ["a", "\\x1b[0m"]\n')

    literals = read_literals(read_modules(tmp_path / "main.py"))

    assert literals.beside["mode"] == ["fast", "slow"]
    assert literals.lengths == [40, 50]
    assert literals.keys == ["name", "day"]
    assert literals.texts == ["fast", "slow", "a"]
    assert literals.patterns[0] == "v1"
    assert [len(line) for line in literals.as_text().splitlines()][-4:] == [
        40,
        41,
        50,
        51,
    ]


@pytest.mark.processes
def test_a_recorded_directory_of_python_files_is_found_again(tmp_path: Path) -> None:
    """Python files beside the cases are tests; those in directories belong to calls."""
    code = """
    from pathlib import Path
    result = {"text": "none"}
    if [*Path(sent.get("root", ".")).rglob("example.py")]:
        result["text"] = "python"
    """
    directory = write_skill(
        tmp_path, code, input=schema_of(root={"type": "string", "default": "."})
    )
    outcome(tmp_path, calls=60, record=True)

    result = outcome(tmp_path, calls=1)

    assert 'data: {"text": "python"}' in (directory / "tests/cases.yaml").read_text()
    assert result.failures == []


@pytest.mark.processes
def test_a_case_that_yaml_reads_in_another_way_is_not_recorded(tmp_path: Path) -> None:
    """A number such as 1e+17 would be a text."""
    code = 'result = {"text": "a", "n": 1e17 if sent.get("big") else 1.5}'
    directory = write_skill(tmp_path, code, input=schema_of(big={"type": "boolean"}))
    outcome(tmp_path, record=True)

    result = outcome(tmp_path, calls=1)

    assert '"n": 1.5' in (directory / "tests/cases.yaml").read_text()
    assert result.failures == []


@pytest.mark.processes
def test_a_value_that_a_refusal_lists_is_tried_in_the_same_call(tmp_path: Path) -> None:
    code = """
    names = {"left": ["src" + "/one.py", "two " + "words"], "right": ["thr" + "ee"]}
    found = names.get(sent.get("side"), [])
    wanted = sent.get("only")
    if wanted and found and wanted[0] not in found:
        sys.exit(f"no such file. Its files: {', '.join(found)}.")
    result = {"text": " ".join(wanted and found and wanted or found)}
    """
    side = {"enum": ["left", "right", "none"], "default": "none"}
    only = {"type": "array", "items": {"type": "string"}, "maxItems": 2}

    cases = recorded_text(tmp_path, code, side=side, only=only)

    assert '"only": ["src/one.py"]' in cases or '"only": ["three"]' in cases


@pytest.mark.processes
def test_only_a_call_that_needs_a_repository_is_made_in_one(tmp_path: Path) -> None:
    """The others are recorded, since a case has no repository."""
    needs.program("git")
    code = """
    import subprocess
    result = {"text": "a repository" if os.path.exists(".git") else "none"}
    if "text" not in sent:
        command = ["git", "rev-parse", "--is-inside-work-tree"]
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode:
            sys.exit(answer.stderr)
    """

    cases = recorded_text(tmp_path, code, text={"type": "string"})

    assert '"none"' in cases
    assert "repository" not in cases


CUTTING = {
    "rows": "names = [row['name'] for row in rows]; shown = names[:100]",
    "characters": "shown = [value[:40] for value in longest]",
    "odd values": "shown = odd[:4]",
    "groups": "shown = sorted({row['region'] for row in rows})[:25]",
    "columns": "shown = list(rows[0])[:20]",
}


@pytest.mark.processes
@pytest.mark.parametrize(
    ("what", "suffix"), [("rows", ".json"), *((what, ".csv") for what in CUTTING)]
)
def test_a_recorded_case_has_more_than_a_script_shows(
    tmp_path: Path, what: str, suffix: str
) -> None:
    """Else it would not show that a later version cuts elsewhere."""
    if suffix == ".csv":
        read = "rows = [*csv.DictReader(open(sent['path']))]"
    else:
        read = "rows = json.load(open(sent['path']))"
    code = f"""
    import csv
    {read}
    values = [str(value) for row in rows for value in row.values()]
    longest = sorted(values, key=len)[-3:]
    odd = [value for value in values if value.endswith("word35")]
    {CUTTING[what]}
    result = {{"text": json.dumps(shown)}}
    """
    directory = write_skill(
        tmp_path,
        code,
        input={
            **schema_of(path=PATH | {"examples": [f"input{suffix}"]}),
            "required": ["path"],
        },
    )
    outcome(tmp_path, calls=60, record=True)
    script = directory / "scripts" / "repeat.py"
    text = script.read_text()
    changed = re.sub(r"\[:(\d+)", lambda cut: f"[:{int(cut[1]) + 1}", text)
    script.write_text(changed)

    assert changed != text
    assert checks_of(outcome(tmp_path, calls=1)) == {"case"}
