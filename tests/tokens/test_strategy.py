"""The three ways of giving skills to a model: `skillruntime/tokens/strategy.py`, and the page that shows them."""

from __future__ import annotations

import pytest

from skillruntime.tokens import SkillCost, TokenReport, cheaper_from, strategies, to_html


def report(number: int, *, schema: int) -> TokenReport:
    """A report of *number* alike skills, each with one tool of *schema* tokens, or none for 0."""
    schemas = (("tool", schema),) if schema else ()
    skills = tuple(
        SkillCost(f"skill-{index}", f"skill-{index}/SKILL.md", metadata=40, body=1_000, schemas=schemas)
        for index in range(number)
    )
    return TokenReport("gpt-4o", "o200k_base", True, "compact", 45 * number, skills)


def test_the_sums_are_those_of_a_conversation_written_out() -> None:
    """Two skills used: five requests load and call, three call only; each carries what came before."""
    progressive, per_skill, eager = strategies(report(2, schema=200), 2)

    # The catalog is 2 x 45 and the own tools 312; a load adds 1,000 + 200 + 115.
    assert (progressive.first, progressive.last, progressive.requests) == (402, 3_032, 5)
    assert progressive.sent == 402 + (402 + 1_315) + (402 + 1_315) + (402 + 2_630) + (402 + 2_630)
    assert (per_skill.first, per_skill.last, per_skill.requests) == (400, 2_400, 3)
    assert per_skill.sent == 400 + 1_400 + 2_400
    assert (eager.last, eager.sent) == (2_080, 3 * 2_080)


@pytest.mark.parametrize(
    ("number", "schema", "turn"),
    [
        (1, 100, 0),  # one small tool costs less than the tools that load skills
        (20, 500, 7),
        (500, 500, 184),
        (40, 0, 3),  # instructions only: the load is the answer
    ],
)
def test_where_one_tool_per_skill_becomes_cheaper(number: int, schema: int, turn: int) -> None:
    """Few skills with small parameters are cheaper as tools; many are cheaper loaded on demand."""
    assert cheaper_from(report(number, schema=schema)) == turn


def test_skills_that_the_catalog_hides_may_never_be_cheaper_as_tools() -> None:
    """Their long descriptions cost nothing in the catalog, and would be sent with each tool."""
    hidden = tuple(SkillCost(f"skill-{index}", "SKILL.md", metadata=1_000, body=100) for index in range(20))
    found = TokenReport("gpt-4o", "o200k_base", True, "compact", 0, hidden)

    assert cheaper_from(found) is None
    assert "Progressive disclosure sends less than one tool per skill" in to_html(found)


@pytest.mark.parametrize(
    ("number", "schema", "sentence"),
    [
        (1, 100, "One tool per skill sends less than progressive disclosure"),
        (20, 500, "<b>One tool per skill</b> is cheaper from"),
    ],
)
def test_the_page_says_both_halves(number: int, schema: int, sentence: str) -> None:
    """Which of the two is cheaper, and when the other one is."""
    page = to_html(report(number, schema=schema))

    assert sentence in page
    assert "ne tool per skill" in page
    assert "rogressive disclosure" in page


def test_text_from_skills_is_shown_as_text() -> None:
    """A name that is markup is escaped, and one that reorders text is isolated."""
    evil = SkillCost("<script>x</script>\u202e", "x/SKILL.md", metadata=1, body=1)

    page = to_html(TokenReport("gpt-4o", "o200k_base", True, "compact", 1, (evil,), (("<b>", "broken & <i>"),)))

    assert "<bdi>&lt;script&gt;x&lt;/script&gt;" in page
    assert "broken &amp; &lt;i&gt;" in page


def test_a_page_without_skills_is_still_a_page() -> None:
    """Nothing is divided by zero."""
    assert "0 skills." in to_html(TokenReport("gpt-4o", "o200k_base", True, "compact", 0, ()))
