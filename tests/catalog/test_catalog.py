"""The mapping of skills: visibility, views, suggestions, and the way to a skill and its
contracts.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from skillruntime.catalog import Root, SkillCatalog, discover
from skillruntime.errors import InvalidSkillError, SkillNotFoundError
from tests.catalog.conftest import WriteSkill

CONTRACT = {
    "version": "2.0.0",
    "input": {"type": "object", "properties": {"pages": {"type": "integer"}}},
}
HIDDEN = (
    "---\n"
    "name: secret\n"
    "description: Hidden treasure\n"
    "disable-model-invocation: true\n"
    "---\n"
    "body"
)


@pytest.fixture
def skills(tmp_path: Path, write_skill: WriteSkill) -> Path:
    write_skill("pdf-processing", "Reads PDFs. Use when a PDF comes.")
    write_skill(
        "news",
        text="---\n"
        "name: news\n"
        "description: Reads feeds\n"
        "tags: [daily]\n"
        "user-invocable: false\n"
        "---\n"
        "# News",
    )
    write_skill("secret", text=HIDDEN)
    return tmp_path / "skills"


def test_an_empty_catalog_works() -> None:
    """It has no skills and no diagnostics, and renders to an empty list."""
    catalog = SkillCatalog()

    assert (len(catalog), catalog.diagnostics, catalog.refresh()) == (0, (), catalog)
    assert catalog.to_prompt() == ""
    assert catalog.to_prompt("reference") == "<available_skills>\n</available_skills>"


def test_activation_reads_the_body(skills: Path) -> None:
    """Only then: the file of the moment."""
    catalog = discover(skills)
    (skills / "news" / "SKILL.md").write_text(
        "---\nname: news\ndescription: Reads feeds\n---\n\n# Later\n"
    )

    skill = catalog.activate("news")

    assert (skill.name, skill.body, skill.directory, skill.trusted) == (
        "news",
        "# Later",
        skills / "news",
        False,
    )
    assert skill.frontmatter == {"name": "news", "description": "Reads feeds"}


def test_an_unknown_name_suggests_the_closest(skills: Path) -> None:
    """A few names, never the list; a hidden one is not among them."""
    catalog = discover(skills)

    with pytest.raises(SkillNotFoundError) as caught:
        catalog.activate("pdf_procesing")
    assert caught.value.suggested_action == "Use one of: pdf-processing"
    assert catalog.suggest("secrets") == []
    with pytest.raises(SkillNotFoundError, match="There is no skill"):
        catalog.activate("x" * 10_000)


def test_a_hidden_skill_does_not_appear_for_models(skills: Path) -> None:
    """A person's view has it; prompt, search, suggestion and the model's view do not,
    errors included.
    """
    catalog = discover(skills)
    view = catalog.for_model()

    assert "secret" in catalog
    assert catalog.activate("secret").body == "body"
    assert "secret" not in catalog.to_prompt() + catalog.to_prompt("json")
    assert catalog.search("hidden treasure") == []
    assert "secret" not in view
    with pytest.raises(SkillNotFoundError) as hidden:
        view.activate("secret")
    with pytest.raises(SkillNotFoundError) as absent:
        view.activate("absent")
    assert str(hidden.value).replace("secret", "absent") == str(absent.value)
    assert not any("secret" in each.path for each in view.diagnostics)


def test_views_contain_only_the_selected_skills(skills: Path) -> None:
    """By name, by pattern, by tag, by a function: the others do not exist there."""
    catalog = discover(skills)

    assert list(catalog.select(["pdf-*"])) == ["pdf-processing"]
    assert list(catalog.select(exclude=["news"])) == ["pdf-processing", "secret"]
    assert list(catalog.select(tags=["Daily"])) == ["news"]
    assert list(catalog.select(where=lambda skill: skill.user_invocable)) == [
        "pdf-processing",
        "secret",
    ]
    with pytest.raises(SkillNotFoundError):
        catalog.select(["pdf-*"]).activate("news")


def test_a_name_is_found_in_any_normal_form(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Full-width and decomposed names are one name (NFKC, as the reference compares
    them).
    """
    write_skill("cafe\u0301", at="café")

    catalog = discover(tmp_path / "skills")

    assert list(catalog) == ["café"]
    assert catalog["cafe\u0301"].name == "café"


def test_contracts_are_read_by_their_callable_names(skills: Path) -> None:
    """contract.json is the skill's own, contracts/NAME the tools'; YAML counts as JSON
    does.
    """
    (skills / "pdf-processing" / "contract.json").write_text(json.dumps(CONTRACT))
    (skills / "pdf-processing" / "contracts").mkdir()
    (skills / "pdf-processing" / "contracts" / "merge.yaml").write_text(
        "version: 1.0.0\n"
        "input:\n"
        "  type: object\n"
        "  properties: {since: {const: 2024-01-01}, n: {minimum: 1.5}}\n"
    )
    catalog = discover(skills)

    skill, contract = catalog.contract("pdf-processing/merge")

    assert sorted(skill.contracts) == ["pdf-processing", "pdf-processing/merge"]
    assert contract.version == "1.0.0"
    assert contract.input.document["properties"] == {
        "since": {"const": "2024-01-01"},
        "n": {"minimum": 1.5},
    }
    assert catalog.contract("pdf-processing")[1].version == "2.0.0"
    with pytest.raises(SkillNotFoundError) as caught:
        catalog.contract("pdf-processing/split")
    assert "pdf-processing/merge" in (caught.value.suggested_action or "")
    with pytest.raises(SkillNotFoundError, match="has no contract"):
        catalog.contract("news")


def test_a_name_below_a_faulty_contract_is_answered_with_the_fault(
    skills: Path,
) -> None:
    """A caller of a tool that was derived before learns what has happened since, not
    that there was never one.
    """
    (skills / "news" / "contract.json").write_text("{")

    with pytest.raises(InvalidSkillError, match=r"contract\.json is not valid JSON"):
        discover(skills).contract("news/run")


@pytest.mark.parametrize(
    "document",
    [
        "{",
        "[]",
        '{"input": 3}',
        '{"version": "x"}',
        '{"a": NaN}',
        "[" * 100_000,
        "\xff",
        '{"input": {"$ref": "#/nowhere"}}',
    ],
)
def test_an_invalid_contract_does_not_affect_the_skill(
    skills: Path, document: str
) -> None:
    """It is a diagnostic, and an error when it is called; its sibling is whole."""
    (skills / "news" / "contracts").mkdir()
    (skills / "news" / "contracts" / "bad.json").write_bytes(document.encode("latin-1"))
    (skills / "news" / "contracts" / "good.json").write_text(json.dumps(CONTRACT))
    catalog = discover(skills)

    skill = catalog.activate("news")

    assert list(skill.contracts) == ["news/good"]
    assert [each.rule for each in skill.diagnostics] == ["contract-invalid"]
    with pytest.raises(InvalidSkillError):
        catalog.contract("news/bad")


def test_a_contract_outside_the_skill_is_not_read(skills: Path, tmp_path: Path) -> None:
    """A link cannot bring one in."""
    (tmp_path / "outside.json").write_text(json.dumps(CONTRACT))
    (skills / "news" / "contract.json").symlink_to(tmp_path / "outside.json")

    skill = discover(skills).activate("news")

    assert dict(skill.contracts) == {}
    assert [each.rule for each in skill.diagnostics] == ["contract-invalid"]


def test_the_first_version_is_used_and_disagreement_is_reported(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """The contract's, the descriptor's, metadata.version, a top-level version."""
    text = (
        "---\n"
        "name: pdf\n"
        "description: Reads\n"
        "version: 4.0.0\n"
        "metadata:\n"
        "  version: 3.0.0\n"
        "---\n"
    )
    directory = write_skill("pdf", text=text)
    catalog = discover(tmp_path / "skills")
    assert catalog["pdf"].version == "3.0.0"

    (directory / "descriptor.json").write_text('{"version": "2.5.0"}')
    assert catalog.activate("pdf").version == "2.5.0"
    (directory / "contract.json").write_text(json.dumps(CONTRACT))
    skill = catalog.activate("pdf")

    assert skill.version == "2.0.0"
    assert [each.rule for each in skill.diagnostics] == ["version-disagreement"]


def test_a_skill_that_is_gone_or_too_large_is_an_error_of_its_own(skills: Path) -> None:
    """Between discovery and activation anything may happen."""
    catalog = discover(skills)
    (skills / "news" / "SKILL.md").write_bytes(
        b"---\nname: news\ndescription: x\n---\n" + b"x" * 5_000_000
    )
    with pytest.raises(InvalidSkillError, match="larger than 4 MiB"):
        catalog.activate("news")

    (skills / "news" / "SKILL.md").unlink()
    with pytest.raises(SkillNotFoundError, match="no longer exists"):
        catalog.activate("news")
    if hasattr(os, "mkfifo"):
        os.mkfifo(skills / "news" / "SKILL.md")
        with pytest.raises(InvalidSkillError, match="not a regular file"):
            catalog.activate("news")
        (skills / "news" / "SKILL.md").unlink()
    assert dict(catalog["news"].read_frontmatter()) == {}


def test_a_view_for_one_caller_hides_everything_else(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """In lookups, length, iteration, search, suggestions, rendering, activation; a
    refresh keeps it.
    """
    for name in ("pdf-read", "pdf-write", "news"):
        write_skill(name, f"Handles {name} documents.")
    write_skill("theirs", "Handles their documents.", at="../others/theirs")
    own, others = (
        Root(str(tmp_path / "skills"), scope="us"),
        Root(str(tmp_path / "others"), scope="them"),
    )
    catalog = discover(own, others)

    view = catalog.select(
        ["pdf-*", "absent"],
        where=lambda skill: "write" not in skill.name and skill.scope == "us",
    )

    assert (list(view), len(view), "news" in view, bool(view)) == (
        ["pdf-read"],
        1,
        False,
        True,
    )
    assert [hit.name for hit in view.search("documents")] == ["pdf-read"]
    assert view.suggest("pdf-writ") == ["pdf-read"]
    assert view.render().included == ("pdf-read",)
    assert view.activate("pdf-read").name == "pdf-read"
    with pytest.raises(SkillNotFoundError):
        view.activate("theirs")
    write_skill("pdf-more", "Handles more documents.")
    assert list(view.refresh()) == ["pdf-more", "pdf-read"]
    assert list(view.select(["news"])) == []


def test_nothing_that_a_view_answers_names_a_hidden_skill(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Versions, shadowed names, diagnostics, pins, errors, exact names and nested
    views.
    """
    write_skill(
        "pdf",
        text="---\nname: pdf\ndescription: Reads.\nversion: 2.0.0\n---\n",
        at="pdf",
    )
    write_skill(
        "pdf",
        text="---\nname: pdf\ndescription: Read.\nversion: 1.0.0\n---\n",
        at="../others/pdf",
    )
    write_skill("payroll", "Reads salaries. Use when salaries are asked for.")
    write_skill(
        "payroll",
        "Other salaries. Use when salaries are asked for.",
        at="../others/payroll",
    )
    write_skill(
        "payroll-broken",
        text="---\nname: payroll-broken\ndescription: Reads: all.\n---\n",
    )
    catalog = discover(
        Root(str(tmp_path / "skills"), scope="us"),
        Root(str(tmp_path / "others"), scope="them"),
    )
    assert "them:payroll" in catalog

    view = catalog.select(where=lambda skill: skill.version != "1.0.0").select("pdf")

    assert [each.version for each in view.versions("pdf")] == ["2.0.0"]
    assert (
        list(view.every_version())
        == list(view.keys())
        == [name for name, _ in view.items()]
        == ["pdf"]
    )
    for name in (
        "payroll",
        "them:payroll",
        "payroll@1.0.0",
        "pdf@1.0.0",
        "pdf@^1",
        "PAYROLL",
        "payrol",
    ):
        assert name not in view
        assert view.get(name) is None
        with pytest.raises(SkillNotFoundError) as refused:
            view.activate(name)
        assert "payroll" not in str(refused.value.suggested_action)
    assert view.search("payroll salaries") == []
    assert view.search("payroll") == []
    assert view.suggest("payroll") == []
    assert view.render(400, pins=["payroll"]).included == ("pdf",)
    assert "payroll" not in view.to_prompt("json") + view.to_prompt("xml")
    assert not any("payroll" in str(each) for each in view.diagnostics)


def test_a_single_name_is_not_read_letter_by_letter(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """One of the letters of ``"pdf-*"`` is a pattern that admits all."""
    for name in ("pdf-forms", "news"):
        text = f"---\nname: {name}\ndescription: Does it.\n---\nBody.\n"
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(text)
    catalog = discover(tmp_path, use_index=False)

    assert list(catalog.select(include="pdf-*")) == ["pdf-forms"]
    assert list(catalog.select(exclude="pdf-*")) == ["news"]
