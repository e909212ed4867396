from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click import unstyle
from click.testing import CliRunner, Result

from skillruntime.cli.tokens import command

SKILLS = str(Path(__file__).parents[2] / "skills")


def run(*arguments: str, terminal: bool = False) -> Result:
    environment = {"COLUMNS": "100"} | ({"FORCE_COLOR": "1"} if terminal else {})
    return CliRunner().invoke(command, list(arguments), env=environment)


def test_a_table_by_skill_with_totals_and_sessions() -> None:
    """A person sees each skill's tiers, what sessions cost against loading everything,
    and the method.
    """
    result = run(SKILLS, terminal=True)

    assert result.exit_code == 0
    shown = unstyle(result.stdout)
    assert "pdf-processing" in shown
    assert "4 skills" in shown
    assert "session of 1 activation:" in shown
    assert "All figures in tokens of gpt-4o: o200k_base (exact)." in shown


def test_a_pipe_gets_a_line_for_each_skill_and_the_sums_go_to_stderr() -> None:
    """Tabs between name, entry, body, files and tools; stdout has only these lines."""
    result = run(SKILLS)

    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert {row[0] for row in rows} == {
        "code-review",
        "daily-news-digest",
        "data-analysis",
        "pdf-processing",
    }
    bodies = [int(row[2]) for row in rows]
    assert bodies == sorted(bodies, reverse=True)
    assert {len(row) for row in rows} == {5}
    assert all(figure.isdecimal() for row in rows for figure in row[1:])
    assert "session of 1 activation: " in result.stderr


@pytest.mark.parametrize("terminal", [False, True])
def test_a_skill_that_is_not_counted_is_named(tmp_path: Path, terminal: bool) -> None:
    """Its error is on stderr, and no sums stand where there is nothing to sum."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "SKILL.md").write_text("---\nname: broken\n", "utf-8")

    result = run(str(tmp_path), terminal=terminal)

    assert result.exit_code == 0
    assert result.stdout == ""
    shown = unstyle(result.stderr)
    assert f"No skills found in {tmp_path}" in shown
    assert "[frontmatter-unclosed]" in shown
    assert "session of" not in shown


def test_json_is_the_whole_report() -> None:
    """A machine gets one document on stdout, with the unit, the method, and the cost of
    sessions.
    """
    document = json.loads(run(SKILLS, "--json").stdout)

    assert (document["unit"], document["exact"], document["exceeded"]) == (
        "tokens",
        True,
        [],
    )
    assert list(document["totals"]["session"]) == ["1", "3", "10"]
    assert {skill["name"] for skill in document["skills"]} >= {
        "pdf-processing",
        "daily-news-digest",
    }


def test_limits_fail_a_build() -> None:
    """Each limit that is exceeded is an error on stderr with both figures, and the exit
    code is 1.
    """
    result = run(SKILLS, "--max-catalog-tokens", "10", "--max-body-tokens", "100")

    assert result.exit_code == 1
    assert "tokens, more than 10" in result.stderr
    assert result.stderr.count("tokens, more than 100") == 4


def test_limits_that_hold_pass() -> None:
    """Within its limits a directory exits with 0 and reports no error."""
    result = run(
        SKILLS, "--max-catalog-tokens", "100000", "--max-body-tokens", "100000"
    )

    assert result.exit_code == 0
    assert "error" not in result.stderr


def test_an_estimate_is_called_one() -> None:
    """For a model without a public tokenizer the figures say that they are an estimate,
    and from where.
    """
    result = run(SKILLS, "--model", "claude-sonnet-4-5")

    assert "(an estimate)" in result.stderr
    assert "VentureBeat" in result.stderr


def test_advice_says_what_would_be_saved(tmp_path: Path) -> None:
    """Each piece of advice has its saving, its reason and its place."""
    skill = tmp_path / "merge-pdf"
    skill.mkdir()
    body = "# Use\n\nRun it.\n\n# API reference\n\n" + "`option` does a thing.\n" * 400
    (skill / "SKILL.md").write_text(
        f"---\nname: merge-pdf\ndescription: Merges PDF files.\n---\n{body}",
        encoding="utf-8",
    )

    result = run(str(tmp_path), "--advise")

    assert (
        "tokens each activation: merge-pdf: the section 'API reference'"
        in result.stderr.replace("\n", " ")
    )
    assert "SKILL.md:9" in result.stderr


def test_a_missing_path_is_a_usage_error() -> None:
    """A path that does not exist is reported as by every command."""
    assert run("no/such/place").exit_code == 2


@pytest.mark.parametrize("style", ["compact", "reference"])
def test_the_catalogs_style_can_be_chosen(style: str) -> None:
    """The catalog is costed in the style that is used."""
    assert json.loads(run(SKILLS, "--json", "--style", style).stdout)["style"] == style


@pytest.mark.processes
def test_the_command_is_registered() -> None:
    """``skillruntime tokens`` leads here."""
    answer = subprocess.run(
        [
            sys.executable,
            "-c",
            "from skillruntime.cli import main; main(['tokens', '--help'])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "--max-catalog-tokens" in answer.stdout
