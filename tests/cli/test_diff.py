"""``skillruntime diff``: files, skills, directories and git revisions; the exit code
that a build can rely on.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from skillruntime.cli import group

V1: dict[str, Any] = {
    "version": "1.0.0",
    "input": {
        "type": "object",
        "required": ["topics"],
        "additionalProperties": False,
        "properties": {"topics": {"type": "string"}},
    },
}
V2: dict[str, Any] = {
    **V1,
    "version": "2.0.0",
    "input": {
        **V1["input"],
        "properties": {"topics": {"type": "array", "items": {"type": "string"}}},
    },
}


def diff(*arguments: str) -> Result:
    return CliRunner().invoke(group, ["diff", *arguments], env={"COLUMNS": "200"})


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the contract of a version 1, one of a version 2, and one that
    lies about it.
    """
    monkeypatch.chdir(tmp_path)
    for name, document in {
        "old": V1,
        "new": V2,
        "lying": {**V2, "version": "1.1.0"},
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    return tmp_path


def test_a_version_that_is_raised_far_enough_passes(work: Path) -> None:
    """The change, its place, its counterexample and the part to raise are shown; exit
    0.
    """
    result = diff("old.json", "new.json")

    assert result.exit_code == 0, result.output
    assert "MAJOR" in result.output
    assert "input /topics" in result.output
    assert 'accepted before, refused now: {"topics": "a"}' in result.output


def test_a_version_that_is_too_low_fails(work: Path) -> None:
    """Exit 1, and what the version must be."""
    result = diff("old.json", "lying.json")

    assert result.exit_code == 1
    assert (
        "version too low: the version must be at least 2.0.0, not 1.1.0"
        in result.output
    )


def test_json_is_one_document(work: Path) -> None:
    """A program reads the verdict as data."""
    result = diff("old.json", "lying.json", "--json", "--suggest")

    document = json.loads(result.stdout)
    (contract,) = document["contracts"]
    assert (document["ok"], contract["bump"], contract["required_version"]) == (
        False,
        "major",
        "2.0.0",
    )
    assert contract["changes"][0]["counterexample"] == {"topics": "a"}
    assert contract["migration"]["steps"] == [{"wrap": "/topics"}]


def test_directories_of_skills_are_compared_by_name(work: Path) -> None:
    """A contract that is gone breaks its callers; one that is new does not."""
    for side, names in {"before": ["a", "b"], "after": ["b", "c"]}.items():
        for name in names:
            directory = work / side / name
            directory.mkdir(parents=True)
            (directory / "contract.json").write_text(json.dumps(V1), encoding="utf-8")

    document = json.loads(diff("before", "after", "--json").stdout)

    assert [(each["name"], each["bump"]) for each in document["contracts"]] == [
        ("a", "major"),
        ("b", "none"),
        ("c", "minor"),
    ]


def test_a_tool_that_is_gone_is_judged_by_the_version_of_its_skill(work: Path) -> None:
    """With the next major version a skill may drop a tool; a version that cannot be
    read is a usage error.
    """
    for side, version, tools in (
        ("before", "1.0.0", "ab"),
        ("after", "2.0.0", "a"),
        ("odd", "banana", "a"),
    ):
        contracts = work / side / "contracts"
        contracts.mkdir(parents=True)
        (work / side / "SKILL.md").write_text(
            "---\nname: pdf\ndescription: Reads PDF files.\n---\n"
        )
        (work / side / "descriptor.json").write_text(
            json.dumps({"id": "pdf", "version": version})
        )
        for tool in tools:
            (contracts / f"{tool}.json").write_text(
                json.dumps({"input": V1["input"]}), encoding="utf-8"
            )

    assert [diff("before", side).exit_code for side in ("after", "odd")] == [0, 2]


def test_two_skills_are_compared_whatever_their_directories_are_called(
    work: Path,
) -> None:
    """A copy of the old skill, kept under another name, is still its first version."""
    for side, document in {"digest-old": V1, "digest": V2}.items():
        (work / side).mkdir()
        (work / side / "contract.json").write_text(
            json.dumps(document), encoding="utf-8"
        )

    (compared,) = json.loads(diff("digest-old", "digest", "--json").stdout)["contracts"]

    assert (compared["name"], compared["bump"]) == ("digest", "major")
    assert [change["path"] for change in compared["changes"]] == ["/topics"]


@pytest.mark.processes
def test_a_git_revision_is_a_side(work: Path) -> None:
    """``skillruntime diff HEAD skills/digest``: what changed since the last commit."""
    directory = work / "skills" / "digest"
    directory.mkdir(parents=True)
    (directory / "contract.json").write_text(json.dumps(V1), encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (
        ["init", "-q"],
        ["add", "skills"],
        [*who, "commit", "-q", "-m", "one"],
    ):
        subprocess.run(["git", *arguments], cwd=work, check=True, capture_output=True)
    (directory / "contract.json").write_text(
        json.dumps({**V2, "version": "1.0.1"}), encoding="utf-8"
    )

    result = diff("HEAD", "skills/digest", "--json")

    (contract,) = json.loads(result.stdout)["contracts"]
    assert result.exit_code == 1
    assert (contract["name"], contract["bump"], contract["old_version"]) == (
        "digest",
        "major",
        "1.0.0",
    )
    assert diff("HEAD:skills/digest", "HEAD:skills/digest").exit_code == 0


@pytest.mark.processes
@pytest.mark.parametrize(
    "spec", ["nowhere.json", "--output=x", "no-such-revision:skills", ":", "HEAD; ls"]
)
def test_what_is_neither_path_nor_revision_is_a_usage_error(
    work: Path, spec: str
) -> None:
    """Exit 2, and nothing of it reaches git as an option."""
    result = diff("--", spec, "new.json")

    assert result.exit_code == 2
    assert not (work / "x").exists()


def test_a_broken_contract_is_an_envelope(work: Path) -> None:
    """Exit 1 and INVALID_SKILL, never a traceback."""
    (work / "broken.json").write_text('{"input": {"type": "strin"}}', encoding="utf-8")
    (work / "cut.json").write_text('{"input": {', encoding="utf-8")

    for name in ("broken.json", "cut.json"):
        result = diff("old.json", name, "--json")
        assert result.exit_code == 1
        assert json.loads(result.stdout)["errors"][0]["code"] == "INVALID_SKILL"


def test_a_breaking_change_without_any_version_fails(work: Path) -> None:
    """Callers cannot see what no version says."""
    for name, document in {"old": V1, "new": V2}.items():
        bare = {key: value for key, value in document.items() if key != "version"}
        (work / f"{name}.json").write_text(json.dumps(bare), encoding="utf-8")

    result = diff("old.json", "new.json")

    assert result.exit_code == 1
    assert "give the contract a version" in result.output


def test_validate_tries_the_migrations(work: Path) -> None:
    """A migration that does not lead into the new shape is a finding, with the
    arguments that it fails for.
    """
    migration = {"from": "1.x", "to": "2.0.0", "accepts": V1["input"], "steps": []}
    directory = work / "news"
    directory.mkdir()
    (directory / "SKILL.md").write_text(
        "---\nname: news\ndescription: News.\n---\nBody.\n", encoding="utf-8"
    )
    (directory / "contract.json").write_text(
        json.dumps({**V2, "migrations": [migration]}), encoding="utf-8"
    )

    result = CliRunner().invoke(group, ["validate", "news", "--json"])

    findings = json.loads(result.stdout)["diagnostics"]
    assert "migration-fails" in [finding["rule"] for finding in findings]


@pytest.mark.parametrize(
    ("until", "is_over"), [("2001-01-01", True), ("2999-01-01", False)]
)
def test_validate_says_when_the_day_of_old_calls_is_over(
    work: Path, until: str, is_over: bool
) -> None:
    """The author may take the migration out now."""
    directory = work / "news"
    directory.mkdir()
    (directory / "SKILL.md").write_text(
        "---\nname: news\ndescription: News.\n---\nBody.\n", encoding="utf-8"
    )
    deprecated = {"versions": "1.x", "until": until}
    (directory / "contract.json").write_text(
        json.dumps({**V2, "deprecated": deprecated}), encoding="utf-8"
    )

    result = CliRunner().invoke(group, ["validate", "news", "--json"])

    findings = json.loads(result.stdout)["diagnostics"]
    rules = [finding["rule"] for finding in findings]
    assert ("deprecation-ended" in rules) is is_over


def test_a_counterexample_by_the_practical_reading_alone_is_called_what_it_is(
    tmp_path: Path,
) -> None:
    """An open schema still admits the removed parameter, so its calls are not said to
    be refused.
    """
    members = {"a": {"type": "string"}, "b": {"type": "string"}}
    for name, kept in (("old", "ab"), ("new", "b")):
        schema = {"type": "object", "properties": {key: members[key] for key in kept}}
        (tmp_path / f"{name}.json").write_text(
            json.dumps({"version": "1.0.0", "input": schema})
        )

    result = CliRunner().invoke(
        group, ["diff", str(tmp_path / "old.json"), str(tmp_path / "new.json")]
    )

    assert 'accepted before, not declared now: {"a": "a"}' in result.output
    assert "refused now" not in result.output


PLURAL: dict[str, Any] = {
    **V1,
    "input": {
        **V1["input"],
        "required": ["subjects"],
        "properties": {"subjects": {"type": "array", "items": {"type": "string"}}},
    },
}
SUBJECT: dict[str, Any] = {
    **V1,
    "input": {
        **V1["input"],
        "required": ["subject"],
        "properties": {"subject": {"type": "string"}},
    },
}


def test_a_complete_migration_is_written_into_the_contract_file(work: Path) -> None:
    """With its version; a second time there is nothing to write."""
    (work / "v1.json").write_text(json.dumps(SUBJECT), encoding="utf-8")
    (work / "v2.json").write_text(json.dumps(PLURAL), encoding="utf-8")

    written = diff("v1.json", "v2.json", "--write")
    again = diff("v1.json", "v2.json", "--write")

    document = json.loads((work / "v2.json").read_text(encoding="utf-8"))
    assert (written.exit_code, again.exit_code) == (0, 1)
    assert document["version"] == "2.0.0"
    assert document["migrations"][0]["steps"] == [
        {"rename": {"from": "/subject", "to": "/subjects"}},
        {"wrap": "/subjects"},
    ]
    assert "old calls are taken already" in again.stderr


def test_an_incomplete_migration_is_not_written(work: Path) -> None:
    """The file stays as it is."""
    before = (work / "new.json").read_bytes()
    other = {**V1, "input": {**V1["input"], "properties": {}, "required": []}}
    other["input"]["properties"] = {"subject": {"type": "integer"}}
    (work / "new.json").write_text(json.dumps(other), encoding="utf-8")
    kept = (work / "new.json").read_bytes()

    result = diff("new.json", "old.json", "--write")

    assert result.exit_code == 1
    assert "not complete" in result.stderr
    assert (work / "new.json").read_bytes() == kept != before


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("Pass `subject` to it.", True),
        ('Send {"subject": "AI"}.', True),
        ("Run it with --subject AI.", True),
        ("Choose a subject, and one of the subjects.", False),
        ("Pass `subjects`.", False),
    ],
)
def test_instructions_that_name_a_parameter_that_is_gone_are_found(
    work: Path, text: str, is_named: bool
) -> None:
    """A model would send what SKILL.md says."""
    (work / "v1.json").write_text(json.dumps(SUBJECT), encoding="utf-8")
    skill = work / "digest"
    skill.mkdir()
    (skill / "contract.json").write_text(json.dumps(PLURAL), encoding="utf-8")
    (skill / "SKILL.md").write_text(
        f"---\nname: digest\ndescription: News.\n---\n{text}\n", encoding="utf-8"
    )

    (contract,) = json.loads(diff("v1.json", "digest", "--json").stdout)["contracts"]

    rules = [change["rule"] for change in contract["changes"]]
    assert ("instructions-outdated" in rules) is is_named


def test_the_changelog_of_a_version_is_written_in_markdown(work: Path) -> None:
    """What broke, and how long old calls work."""
    (work / "v1.json").write_text(json.dumps(SUBJECT), encoding="utf-8")
    (work / "v2.json").write_text(json.dumps(PLURAL), encoding="utf-8")
    diff("v1.json", "v2.json", "--write")

    result = diff("v1.json", "v2.json", "--markdown")

    assert result.output.startswith("### v2 2.0.0\n\nBreaking:\n\n- `subject`: ")
    assert "Old calls still work until 3.0.0: they are converted" in result.output
