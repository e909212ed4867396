"""What a skill needs, on the command line: `show`, `prepare`, and the grants of
`call`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skillruntime.cli import group

Run = Callable[..., Result]

CONTRACT = {
    "version": "1.0.0",
    "input": {"type": "object", "properties": {"api_key": {"type": "string"}}},
    "requires": {"network": ["api.example.com"], "environment": ["THE_TOKEN"]},
    "run": {"script": "scripts/run.py"},
}
SOURCE = '# /// script\n# dependencies = ["no-such-package>=2"]\n# ///\n'


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on one needy skill."""
    monkeypatch.setenv("SKILLRUNTIME_CACHE", "off")
    monkeypatch.delenv("THE_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    skill = tmp_path / "skills" / "needy"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: needy\ndescription: Needs. Use when needed.\n---\nDo.\n"
    )
    (skill / "contract.json").write_text(json.dumps(CONTRACT))
    (skill / "scripts" / "run.py").write_text(SOURCE)

    def run_command(*arguments: str, text: str | None = None) -> Result:
        return CliRunner().invoke(
            group,
            [*arguments, "--skills", "skills"],
            input=text,
            env={"COLUMNS": "200"},
        )

    return run_command


def test_show_says_what_a_skill_asks_for_and_what_is_missing(run: Run) -> None:
    """Before anyone calls it, with the next step."""
    shown = run("show", "needy").stdout
    document = json.loads(run("show", "needy", "--json").stdout)

    assert "asks for network: api.example.com" in shown
    assert "not ready: the environment variable THE_TOKEN is not set" in shown
    assert (
        "not ready: it needs no-such-package>=2, which is not installed, and has no "
        "lock" in shown
    )
    assert "uv lock --script scripts/run.py" in shown
    assert [each["kind"] for each in document["missing"]["needy"]] == [
        "environment",
        "package",
        "grant",
    ]


def test_prepare_without_a_lock_names_the_command(run: Run) -> None:
    """It does not make the lock itself: that is the author's decision."""
    result = run("prepare", "needy")

    assert result.exit_code == 1
    assert "has no lock (scripts/run.py.lock)" in result.stderr
    assert "uv lock --script scripts/run.py" in result.stderr


def test_prepare_of_a_skill_without_packages_does_nothing(
    run: Run, tmp_path: Path
) -> None:
    """And says so."""
    (tmp_path / "skills" / "needy" / "scripts" / "run.py").write_text("print(1)")

    result = run("prepare", "needy", "--json")

    assert json.loads(result.stdout) == {"skill": "needy", "prepared": {}}


@pytest.mark.processes
@pytest.mark.usefixtures("some_sandbox")
def test_call_grants_what_its_options_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the options the call is refused, and the error names them."""
    monkeypatch.setenv("THE_TOKEN", "canary-5")
    source = "import json, os; print(json.dumps('THE_TOKEN' in os.environ))"
    (tmp_path / "skills" / "needy" / "scripts" / "run.py").write_text(source)

    refused = run("call", "needy", "--yes", "{}")
    granted = run("call", "needy", "--yes", "--network", "--env", "THE_TOKEN", "{}")

    assert refused.exit_code == 1
    assert (
        "Add --env NAME, --network, --write DIRECTORY or --dotfile PATH to grant it"
        in refused.stderr
    )
    assert granted.stdout.strip() == "true", granted.stderr


@pytest.mark.processes
@pytest.mark.usefixtures("some_sandbox")
def test_call_grants_a_dotfile(run: Run, tmp_path: Path) -> None:
    """Without the option the call that names it is refused, and the error names the
    option.
    """
    skill = tmp_path / "skills" / "needy"
    schema = {"properties": {"path": {"type": "string", "format": "path"}}}
    document = {"version": "1.0.0", "input": schema, "run": CONTRACT["run"]}
    (skill / "contract.json").write_text(json.dumps(document))
    source = "import json, sys; print(open(json.load(sys.stdin)['path']).read())"
    (skill / "scripts" / "run.py").write_text(source)
    (tmp_path / ".state").write_text("12345")

    refused = run("call", "needy", "--yes", "path=.state")
    granted = run("call", "needy", "--yes", "--dotfile", ".state", "path=.state")

    assert "the call names '.state', which begins with a dot" in refused.stderr
    assert "--dotfile PATH" in refused.stderr
    assert granted.stdout.strip() == "12345", granted.stderr


@pytest.mark.processes
@pytest.mark.usefixtures("some_sandbox")
def test_call_names_the_options_for_what_a_sandbox_refused(
    run: Run, tmp_path: Path
) -> None:
    """With the options that the error names, the script does its work."""
    skill = tmp_path / "skills" / "needy"
    document = {"version": "1.0.0", "input": {}, "run": CONTRACT["run"]}
    (skill / "contract.json").write_text(json.dumps(document))
    source = "import socket; socket.socket(); print(open('a b.txt').read())"
    (skill / "scripts" / "run.py").write_text(source)
    (tmp_path / "a b.txt").write_text("12345")

    refused = run("call", "needy", "--yes", "{}")
    some = run("call", "needy", "--yes", "--network", "{}")
    granted = run("call", "needy", "--yes", "--network", "--file", ".", "{}")

    assert "If it needs this, add --network --file ." in refused.stderr
    assert "If it needs this, add --file ." in some.stderr
    assert granted.stdout.strip() == "12345", granted.stderr
