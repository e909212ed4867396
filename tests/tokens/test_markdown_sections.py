from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillruntime.tokens.markdown_sections import sections


def test_headings_inside_code_are_not_sections() -> None:
    """A comment in a fenced or an indented block opens no section."""
    body = "# A\n\n```sh\n# not a heading\n```\n\n    # nor this\n\n## B\ntext\n"

    assert [(part.title, part.level, part.line) for part in sections(body)] == [
        ("A", 1, 1),
        ("B", 2, 9),
    ]


def test_underlined_headings_are_sections() -> None:
    """The format's Markdown has headings of both kinds."""
    assert [
        part.title for part in sections("Title\n=====\ntext\n\nSub\n---\nmore")
    ] == ["Title", "Sub"]


@given(st.text(st.sampled_from("#a `\n\r-=\t\x0c\u2028"), max_size=80))
def test_sections_put_together_are_the_body(body: str) -> None:
    """No text is lost or repeated, except for white space before the first heading."""
    assert "".join(part.text for part in sections(body)).strip() == body.strip()
