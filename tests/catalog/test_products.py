"""`validate --for`: what known products reject or ignore."""

from __future__ import annotations

import pytest

from skillruntime.catalog import PRODUCTS, validate
from skillruntime.diagnostic import Severity
from tests.catalog.conftest import WriteSkill

TEXT = "---\nname: my-claude\ndescription: Reads <b>all</b>.\nmodel: opus\nlicense: MIT\n---\nBody.\n"


def findings(write_skill: WriteSkill, products: list[str], text: str = TEXT) -> list[tuple[str, str]]:
    path = write_skill("my-claude", text=text)
    found = validate(path, products=products)[0].diagnostics
    return [(each.rule, each.message) for each in found if each.rule.startswith("product-")]


def test_a_product_that_rejects_fields_gives_errors(write_skill: WriteSkill) -> None:
    """Unknown fields, reserved words and tags, as an upload to claude.ai is checked."""
    assert findings(write_skill, ["claude.ai"]) == [
        ("product-rejects", "an upload to claude.ai or the Claude API: the field 'model' is rejected"),
        ("product-rejects", "an upload to claude.ai or the Claude API: description must not contain < or >"),
        ("product-rejects", "an upload to claude.ai or the Claude API: name must not contain 'claude'"),
    ]


def test_a_product_that_ignores_fields_gives_advice(write_skill: WriteSkill) -> None:
    """Codex reads three fields; Claude Code knows `model`."""
    assert findings(write_skill, ["codex", "claude-code", "agentskills"]) == [
        ("product-ignores", "Codex ignores 'model', 'license'"),
        ("product-ignores", "Claude Code ignores 'license'"),
        ("product-rejects", "the Agent Skills format: the field 'model' is rejected"),
    ]


def test_nothing_is_said_of_products_that_were_not_asked_for(write_skill: WriteSkill) -> None:
    """And a skill with the format's own fields passes everywhere."""
    plain = "---\nname: pdf\ndescription: Reads.\n---\n"

    assert findings(write_skill, []) == []
    path = write_skill("pdf", text=plain)
    found = validate(path, products=list(PRODUCTS))[0].diagnostics
    assert [each for each in found if each.severity is Severity.ERROR] == []


def test_limits_count_characters(write_skill: WriteSkill) -> None:
    """As the products do, not bytes."""
    text = f"---\nname: my-claude\ndescription: {'ä' * 1025}\n---\n"

    assert findings(write_skill, ["codex"], text) == [
        ("product-rejects", "Codex: description has 1025 characters; at most 1024 are accepted")
    ]
    assert findings(write_skill, ["codex"], text.replace("ä" * 2, "ä", 1)) == []


def test_a_name_that_an_upload_refuses(write_skill: WriteSkill) -> None:
    """Capitals and doubled hyphens, as quick_validate.py of anthropics/skills checks; Claude Code takes any name."""
    text = "---\nname: My--Skill\ndescription: Reads.\ndisallowed-tools: Bash\n---\n"

    assert findings(write_skill, ["claude-code"], text) == []
    assert findings(write_skill, ["claude.ai"], text)[-1] == (
        "product-rejects",
        "an upload to claude.ai or the Claude API: name must have only lowercase letters, digits and single hyphens "
        "between them",
    )


def test_an_unknown_product_is_an_error(write_skill: WriteSkill) -> None:
    """The message lists the known ones."""
    with pytest.raises(ValueError, match=r"unknown product 'cursor'; use one of agentskills, claude\.ai"):
        findings(write_skill, ["cursor"])


def test_every_product_has_a_source() -> None:
    """A table without sources could not be checked."""
    assert all("." in product.source for product in PRODUCTS.values())
