from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillruntime.tokens import count
from skillruntime.tokens.pages import page
from tests import needs

pytest.importorskip("tiktoken", reason=needs.to_install("tiktoken"))


def tokens(text: str) -> int:
    return count(text, "gpt-4o").tokens


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(st.sampled_from("ab #.\n,。的{}😀"), max_size=400),
    limit=st.integers(4, 60),
)
def test_pages_put_together_are_the_text_and_none_is_above_its_limit(
    text: str, limit: int
) -> None:
    """Reading on to the end loses nothing, repeats nothing, and stays within the limit
    on every page.
    """
    parts, start = [], 0

    while start < len(text):
        part = page(text, limit, tokens, start=start)
        assert part.text
        assert part.tokens <= limit
        parts.append(part.text)
        start = part.end

    assert "".join(parts) == text


def test_a_page_ends_before_a_heading() -> None:
    """In the second half of what fits, a break before a heading is preferred."""
    text = "# A\n\n" + "word " * 30 + "\n\nmore text here\n# B\n" + "word " * 30

    part = page(text, 50, tokens)

    assert part.text.endswith("more text here\n")
    assert text[part.end :].startswith("# B")


def test_a_page_of_json_ends_after_an_item() -> None:
    """In a text without lines the cut is after a comma or an object's end, not inside a
    word.
    """
    text = (
        '{"rows":[' + ",".join('{"name":"somebody","age":41}' for _ in range(40)) + "]}"
    )

    part = page(text, 100, tokens)

    assert part.text[-1] in ",}"


def test_what_fits_is_one_page() -> None:
    """A text within the limit comes whole and is the last page."""
    part = page("short", 10, tokens)

    assert (part.text, part.tokens, part.is_last) == ("short", 1, True)


def test_a_limit_of_nothing_gives_an_empty_page() -> None:
    """A limit of nothing gives nothing, and is not the last page."""
    part = page("some text", 0, tokens)

    assert (part.text, part.is_last) == ("", False)
