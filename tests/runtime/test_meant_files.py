"""A path parameter is taken where exactly one file of the workspace is meant."""

from __future__ import annotations

import json
import sys
import unicodedata
from pathlib import Path

import pytest

from skillruntime import SkillRuntime, discover
from tests import needs

SCHEMA = {
    "type": "object",
    "properties": {"file": {"type": "string", "format": "path"}},
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    (directory / "Data").mkdir(parents=True)
    for path in ("report.csv", "Data/sales 2026.csv", "Data/Übersicht.csv"):
        (directory / path).write_text(path)
    (tmp_path / "secret.csv").write_text("secret")
    (directory / "link.csv").symlink_to(tmp_path / "secret.csv")
    return directory


def find(workspace: Path, written: str) -> Path | None:
    """Return what *written* means in *workspace*."""
    return SkillRuntime(workspace=workspace).session().workspace.find(written)


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("report.csv", "report.csv"),
        ("REPORT.csv", "report.csv"),
        ("report.csv ", "report.csv"),
        ("report.csv\n", "report.csv"),
        ("'report.csv'", "report.csv"),
        ('"report.csv"', "report.csv"),
        ("./Report.csv", "report.csv"),
        ("report.csv#rows", "report.csv"),
        ("$WORKSPACE/report.csv", "report.csv"),
        ("data\\sales 2026.csv", "Data/sales 2026.csv"),
        ("data/sales%202026.csv", "Data/sales 2026.csv"),
        (unicodedata.normalize("NFD", "data/übersicht.csv"), "Data/Übersicht.csv"),
        ("data", "Data"),
        ("{}/REPORT.csv", "report.csv"),
        ("file://{}/Data/sales%202026.csv", "Data/sales 2026.csv"),
    ],
)
def test_a_file_that_is_there_is_found(
    workspace: Path, written: str, path: str
) -> None:
    """The same rule as for the files of a skill."""
    found = find(workspace, written.replace("{}", str(workspace)))

    assert found == workspace / path


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("new.csv", "new.csv"),
        (" 'new.csv'\n", "new.csv"),
        ("file://{}/new%201.csv", "new 1.csv"),
        ("new#1.csv", "new#1.csv"),
        ("a%20b.csv", "a%20b.csv"),
    ],
)
def test_a_new_file_has_no_quotes_and_no_scheme(
    workspace: Path, written: str, path: str
) -> None:
    """Everything else of its name stays."""
    found = find(workspace, written.replace("{}", str(workspace)))

    assert found == workspace / path


@pytest.mark.parametrize(
    "written",
    [
        "../secret.csv",
        "../SECRET.csv",
        "link.csv",
        "'/etc/passwd'",
        "file:///etc/passwd",
    ],
)
def test_what_lies_outside_is_refused(workspace: Path, written: str) -> None:
    """However it is written."""
    assert find(workspace, written) is None


def test_two_files_that_can_be_meant_are_a_new_one(workspace: Path) -> None:
    """An exact path still means itself."""
    (workspace / "Report.csv").write_text("other")

    assert find(workspace, "REPORT.csv") == workspace / "REPORT.csv"
    assert find(workspace, "report.csv") == workspace / "report.csv"


def test_a_path_parameter_is_read_by_this_rule(workspace: Path) -> None:
    """The function receives the path of the file that is there."""
    runtime = SkillRuntime(workspace=workspace)

    @runtime.implements("size", contract={"input": SCHEMA})
    def size(arguments: dict[str, str]) -> str:
        return Path(arguments["file"]).read_text()

    assert runtime.call_sync("size", {"file": "REPORT.CSV\n"}).data == "report.csv"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("'report.csv'", "report.csv"),
        ("REPORT.csv", "report.csv"),
        ("new.csv ", "new.csv"),
        ("file://{}/Data/sales%202026.csv", "Data/sales 2026.csv"),
    ],
)
def test_another_spelling_is_recorded_as_a_repair(
    workspace: Path, written: str, meant: str
) -> None:
    """Like any other repair, with what was sent and what it was read as."""
    runtime = SkillRuntime(workspace=workspace)
    runtime.implements("size", contract={"input": SCHEMA})(lambda arguments: 1)
    sent = written.replace("{}", str(workspace))

    response = runtime.call_sync("size", {"file": sent})

    assert (response.metadata or {})["repairs"] == [
        {"path": "/file", "rule": "path-spelling", "before": sent, "after": meant}
    ]


@pytest.mark.parametrize("written", ["report.csv", "./report.csv", "{}/report.csv"])
def test_a_path_that_leads_to_the_file_needs_no_repair(
    workspace: Path, written: str
) -> None:
    """Relative, absolute, or with a point."""
    runtime = SkillRuntime(workspace=workspace)
    runtime.implements("size", contract={"input": SCHEMA})(lambda arguments: 1)

    response = runtime.call_sync("size", {"file": written.format(workspace)})

    assert "repairs" not in (response.metadata or {})


@pytest.mark.usefixtures("sandbox_if_untrusted")
@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX)
@pytest.mark.parametrize("trusted", [True, False])
def test_a_script_gets_the_file_that_is_meant(
    workspace: Path, tmp_path: Path, trusted: bool
) -> None:
    """An untrusted one a copy of it, under its own name."""
    directory = tmp_path / "skills" / "reader"
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text(
        "---\nname: reader\ndescription: Reads. Use to read.\n---\nRead.\n"
    )
    (directory / "run.py").write_text(
        "import json, os, sys\nfile = json.load(sys.stdin)['file']\n"
        "print(json.dumps([os.path.relpath(file), open(file).read()]))\n"
    )
    contract = {"version": "1.0.0", "input": SCHEMA, "run": {"script": "run.py"}}
    (directory / "contract.json").write_text(json.dumps(contract))
    runtime = SkillRuntime(
        discover(directory.parent, trusted=trusted),
        approve=lambda request: True,
        workspace=workspace,
    )

    response = runtime.call_sync("reader", {"file": "`DATA\\Sales 2026.csv`"})

    assert response.data == ["Data/sales 2026.csv"] * 2
