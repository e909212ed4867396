"""The list for a model: never above the budget, always the same bytes, no injected
tags.
"""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillruntime.catalog import SkillMetadata
from skillruntime.catalog.rendering import (
    STYLES,
    estimate_tokens,
    first_sentence,
    render,
)


def skill(name: str, description: str = "Reads. Use when asked.") -> SkillMetadata:
    return SkillMetadata(name, description, f"/skills/{name}/SKILL.md")


def words(text: str) -> int:
    """Count tokens as simply as can be checked by eye."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def test_each_style_has_its_form() -> None:
    """Written out, for one skill."""
    one = [skill("pdf", "Reads <PDF> & more.")]

    assert (
        render(one).text
        == "Skills (load one by name before using it):\n- pdf: Reads &lt;PDF> & more."
    )
    assert (
        render(one, style="markdown").text
        == "## Skills\n\n- **pdf**: Reads &lt;PDF> & more."
    )
    assert render(one, style="xml").text == (
        "<available_skills>\n"
        "<skill><name>pdf</name><description>Reads &lt;PDF&gt; &amp; "
        "more.</description></skill>\n"
        "</available_skills>"
    )
    assert json.loads(render(one, style="json").text) == {
        "skills": [{"name": "pdf", "description": "Reads <PDF> & more."}]
    }
    assert render(one, style="reference").text == (
        "<available_skills>\n<skill>\n<name>\npdf\n</name>\n<description>\n"
        "Reads &lt;PDF&gt; &amp; more.\n</description>\n"
        "<location>\n/skills/pdf/SKILL.md\n</location>\n</skill>\n</available_skills>"
    )


def test_skills_beyond_the_budget_are_shortened_then_named_then_counted() -> None:
    """Pins are listed in full; the report names each skill; the text says how many are
    missing.
    """
    many = [
        skill(f"skill-{number:02}", "One sentence here. And another one there.")
        for number in range(20)
    ]

    result = render(many, 150, pins=["skill-19"], count=words)

    assert result.tokens <= 150
    assert result.tokens == words(result.text)
    assert result.included == ("skill-19",)
    assert result.shortened
    assert sorted(
        result.included + result.shortened + result.name_only + result.omitted
    ) == [s.name for s in many]
    small = render(many, 60, count=words)
    assert (
        f"{len(small.omitted)} more skills are not listed; find them with "
        "search_skills." in small.text
    )


def test_a_budget_of_zero_gives_an_empty_text() -> None:
    """Zero tokens are zero tokens; below zero is an error, as is a style that is
    none.
    """
    assert render([skill("pdf")], 0, count=words).text == ""
    with pytest.raises(ValueError, match="must not be negative"):
        render([], -1)
    with pytest.raises(ValueError, match="use one of compact"):
        render([], style="loud")


def test_the_order_of_the_skills_does_not_matter() -> None:
    """The same skills give the same bytes."""
    skills = [skill(name) for name in ("b", "a", "c")]

    assert render(skills).text == render(skills[::-1]).text


def test_the_compact_style_costs_at_most_five_tokens_a_skill() -> None:
    """Above name and description, counted for gpt-4o."""
    from skillruntime.tokens import count

    def counted(text: str) -> int:
        return count(text, "gpt-4o").tokens

    many = [
        skill(f"make-report-{number}", f"Makes report {number}. Use when asked.")
        for number in range(100)
    ]
    bare = sum(counted(each.name) + counted(each.description) for each in many)

    assert (render(many, count=counted).tokens - bare) / len(many) <= 5


def test_sentences_end_at_their_punctuation() -> None:
    """In English and Chinese; not inside a version or an address."""
    assert first_sentence("Reads v1.5 at a.com. Use it.") == "Reads v1.5 at a.com."
    assert first_sentence("从文件中提取文本。当处理时使用。") == "从文件中提取文本。"
    assert first_sentence("one sentence only") == "one sentence only"


HOSTILE = st.text(
    alphabet=st.one_of(
        st.sampled_from("<>/&\"'#-*`:\n\r\t\u2028\u202e\u200b\x00{}[],\\ "),
        st.characters(codec="utf-8"),
    ),
    max_size=60,
)
TAGS = re.compile(r"<[^>]*>")


@settings(max_examples=60)
@given(
    entries=st.dictionaries(
        st.text(st.characters(categories=("L", "N")), min_size=1, max_size=8),
        HOSTILE,
        max_size=8,
    )
)
def test_no_metadata_can_close_a_tag_or_open_a_section(entries: dict[str, str]) -> None:
    """Whatever a description holds, the frame is that of harmless ones: a line each,
    and our tags only.
    """
    skills = [skill(name, description) for name, description in entries.items()]
    listed = len(skills)

    compact = render(skills).text
    assert compact.count("\n") == (listed or 0)
    assert "<" not in compact
    assert "<" not in render(skills, style="markdown").text
    ours = {
        "<available_skills>",
        "</available_skills>",
        "<skill>",
        "</skill>",
        "<name>",
        "</name>",
    }
    ours |= {"<description>", "</description>", "<location>", "</location>"}
    for style in ("xml", "reference"):
        assert set(TAGS.findall(render(skills, style=style).text)) <= ours
    if skills:
        document = json.loads(render(skills, style="json").text)
        assert len(document["skills"]) == listed
        assert "<" not in render(skills, style="json").text


@settings(max_examples=40)
@given(
    descriptions=st.lists(HOSTILE, max_size=30),
    budget=st.integers(0, 600),
    style=st.sampled_from(list(STYLES)),
    pins=st.lists(st.integers(0, 30), max_size=4),
)
def test_never_above_the_budget(
    descriptions: list[str], budget: int, style: str, pins: list[int]
) -> None:
    """The token count is that of the text, and every skill is in exactly one list."""
    skills = [
        skill(f"s{number}", description)
        for number, description in enumerate(descriptions)
    ]

    result = render(
        skills, budget, style, pins=[f"s{number}" for number in pins], count=words
    )

    assert result.tokens == words(result.text) <= budget
    listed = result.included + result.shortened + result.name_only + result.omitted
    assert sorted(listed) == sorted(each.name for each in skills)


@pytest.mark.parametrize("style", list(STYLES))
def test_never_above_the_budget_with_five_thousand(style: str) -> None:
    """The same with many skills, and with every counter."""
    skills = [
        skill(f"skill-{number}", "word " * (number % 60) + ". End.")
        for number in range(5_000)
    ]

    for budget in (0, 37, 1_000, 30_000):
        result = render(skills, budget, style)
        assert result.tokens == estimate_tokens(result.text) <= budget
        assert result.estimated
