"""``skillruntime doctor``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillruntime import __version__
from skillruntime.cli import group
from tests.skill_files import write_skill_files

CONTRACT = {
    "run": {"script": "scripts/run.py"},
    "requires": {"packages": ["no-such-package>=2"]},
}


@pytest.mark.processes
def test_what_is_there_and_what_is_missing_is_said(tmp_path: Path) -> None:
    """The extras, the sandboxes, the directories, and each tool that is not ready, with
    what to do.
    """
    files = {"contract.json": json.dumps(CONTRACT), "scripts/run.py": "print(1)"}
    write_skill_files(tmp_path, "sample", "Samples", files)

    as_json = CliRunner().invoke(group, ["doctor", "--skills", str(tmp_path), "--json"])
    drawn = CliRunner().invoke(group, ["doctor", "--skills", str(tmp_path)])

    found = json.loads(as_json.stdout)
    assert (as_json.exit_code, drawn.exit_code) == (0, 0)
    assert found["version"] == __version__
    assert found["extras"]["standard"] is True
    assert set(found["sandboxes"]) == {"bubblewrap", "landlock"}
    assert found["roots"] == [{"path": str(tmp_path), "trusted": False}]
    assert [each["message"] for each in found["unavailable"]["sample"]] == [
        "the Python package no-such-package is not installed"
    ]
    assert (
        "sample: the Python package no-such-package is not installed. " in drawn.stdout
    )


def test_a_variable_that_a_script_may_do_without_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that it needs is something that it lacks."""
    for name in ("REPORT_TOKEN", "REPORT_HOME"):
        monkeypatch.setenv(name, "x")
    source = (
        "import os, sys\n"
        "print(sys.argv, os.environ['REPORT_HOME'], os.getenv('REPORT_TOKEN'))\n"
    )
    write_skill_files(tmp_path, "sample", "Samples", {"scripts/run.py": source})

    as_json = CliRunner().invoke(group, ["doctor", "--skills", str(tmp_path), "--json"])
    drawn = CliRunner().invoke(group, ["doctor", "--skills", str(tmp_path)])

    found = json.loads(as_json.stdout)
    assert found["withheld"] == {"sample/run": ["REPORT_TOKEN"]}
    (missing,) = found["unavailable"]["sample/run"]
    assert "REPORT_HOME" in missing["message"]
    assert "  sample/run: REPORT_TOKEN\n" in drawn.stdout


def test_a_script_that_opens_connections_without_the_grant_is_a_note(
    tmp_path: Path,
) -> None:
    """It may work without the network, so it is not listed as lacking something."""
    source = "import socket, sys\nprint(sys.argv, socket.gethostname())\n"
    write_skill_files(tmp_path, "sample", "Samples", {"scripts/run.py": source})

    as_json = CliRunner().invoke(group, ["doctor", "--skills", str(tmp_path), "--json"])
    drawn = CliRunner().invoke(group, ["doctor", "--skills", str(tmp_path)])

    found = json.loads(as_json.stdout)
    assert found["without_network"] == ["sample/run"]
    assert found["unavailable"] == {}
    assert "Grants(network=True)})\n  sample/run\n" in drawn.stdout


def test_the_tools_that_are_called_by_name_are_listed(tmp_path: Path) -> None:
    """The definitions of untrusted skills have 8,000 tokens of a request together. That
    nothing runs these tools is a finding about each.
    """
    text = " ".join(f"word{number}" for number in range(60))
    properties = {
        f"p{number}": {"type": "string", "description": text} for number in range(40)
    }
    contract = {"description": "Says", "input": {"properties": properties}}
    for name in ("first", "second"):
        files = {"contracts/say.json": json.dumps(contract)}
        write_skill_files(tmp_path, name, "Samples", files)

    as_json = CliRunner().invoke(group, ["doctor", "--skills", str(tmp_path), "--json"])
    drawn = CliRunner().invoke(group, ["doctor", "--skills", str(tmp_path)])

    found = json.loads(as_json.stdout)
    assert found["called_by_name"] == ["second/say"]
    assert [*found["unavailable"]] == ["first/say", "second/say"]
    assert found["definition_tokens"] == 20_000
    assert found["untrusted_definition_tokens"] == 8_000
    assert (
        "Called by name with call_skill: the definitions of a request have at most "
        "20,000 tokens, and those of untrusted skills 8,000; "
        "SkillRuntime(definition_tokens=...) sets it\n  second/say\n"
    ) in drawn.stdout
