from __future__ import annotations

from typing import Any

from skillruntime.tokens import count
from skillruntime.tokens.advice import Advice, advise


def found(
    name: str = "pdf-tools",
    description: str = "Merges PDF files.",
    body: str = "",
    **schemas: Any,
) -> list[Advice]:
    return advise(
        name,
        description,
        body,
        schemas,
        path="SKILL.md",
        count=lambda text: count(text).tokens,
    )


def test_a_lean_skill_gets_no_advice() -> None:
    """A short description, a short body and a plain schema have nothing to save."""
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "The file."}},
    }

    assert found(body="# Use\n\nRun it.\n", merge=schema) == []


def test_an_opening_that_says_nothing_is_found() -> None:
    """The words before the description proper are quoted, with what they cost in every
    conversation.
    """
    advice = found(
        description="PDF tools: this skill is used for merging PDF files and for splitting "
        "them."
    )

    assert [(one.rule, one.tokens, one.when) for one in advice] == [
        ("description-repeats-name", 7, "every conversation")
    ]
    assert "'PDF tools: this skill is used'" in advice[0].message


def test_a_long_description_says_what_is_over() -> None:
    """A description well above the format's hundred tokens is advised to that size."""
    advice = found(description="Merges PDF files, word by word. " * 20)

    assert [(one.rule, one.tokens) for one in advice] == [("description-long", 81)]


def test_a_reference_section_is_better_moved() -> None:
    """A long section to look things up in goes to references/; its line, its size and
    the file's name are given.
    """
    body = (
        "# Use\n\nRun it.\n\n"
        + "Do this. " * 300
        + "\n\n# API reference\n\n"
        + "`option` does a thing.\n" * 200
    )

    advice = found(body=body)

    assert [(one.rule, one.line, one.when) for one in advice] == [
        ("section-to-reference", 7, "each activation")
    ]
    assert advice[0].tokens == 1379
    assert "references/api-reference.md" in advice[0].hint


def test_rules_that_every_use_needs_stay() -> None:
    """A long section of rules or steps is never reference material, even with a large
    share.
    """
    body = "# Use\n\nRun it.\n\n# Critical rules\n\n" + "Never do that.\n" * 400

    assert found(body=body) == []


def test_a_body_over_the_formats_limit_says_by_how_much() -> None:
    """Where no section can be moved as it is, the excess itself is the advice."""
    advice = found(body="# Steps\n\n" + "Then do this next thing.\n" * 1000)

    assert [(one.rule, one.tokens) for one in advice] == [("body-long", 1003)]


def test_a_parameters_documentation_is_better_not_sent() -> None:
    """A parameter's description that is documentation is advised into x-documentation,
    which costs nothing.
    """
    long = {
        "properties": {
            "path": {
                "type": "string",
                "description": "The file to read, and more about it. " * 8,
            }
        }
    }
    moved = {
        "properties": {
            "path": {
                "type": "string",
                "x-documentation": "The file to read, and more about it. " * 8,
            }
        }
    }

    assert [(one.rule, one.tokens, one.when) for one in found(read=long)] == [
        ("parameter-description-long", 41, "every request")
    ]
    assert "read/path" in found(read=long)[0].message
    assert found(read=moved) == []


def test_a_tools_own_description_has_a_skills_limit() -> None:
    """A tool's description may be as long as a skill's description, and is advised
    above that.
    """
    within = {
        "description": "Reads a file, page by page. " * 12,
        "properties": {"path": {"type": "string"}},
    }
    above = {
        "description": "Reads a file, page by page. " * 20,
        "properties": {"path": {"type": "string"}},
    }

    assert found(read=within) == []
    assert [(one.rule, one.tokens) for one in found(read=above)] == [
        ("tool-description-long", 61)
    ]
