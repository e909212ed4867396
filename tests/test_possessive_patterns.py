"""`skillruntime/possessive_patterns.py`, which Python 3.11.0 to 3.11.4 need."""

from __future__ import annotations

import re

import pytest

from skillruntime.possessive_patterns import compile_possessive

COMMENT = r"/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)"


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (COMMENT, "a /* b * c */ d", ["/* b * c */"]),
        (r"(?:a|ab)*+b", "aab", ["aab"]),
        (r"(?:x(?:b(?!/))*+)++c", "xbbxc", ["xbbxc"]),
        (r"(?P<n>a)?+b", "ab b", ["a", ""]),
        (r"(?:a){1,2}+a", "aa", []),
    ],
)
def test_a_possessive_quantifier_never_gives_back(
    pattern: str, text: str, found: list[str]
) -> None:
    """As in a release without the fault, and also in one with it."""
    assert compile_possessive(pattern, 0).findall(text) == found


def test_flags_names_and_bytes_are_kept() -> None:
    """The pattern has the methods, the groups and the text of any other."""
    compiled = compile_possessive(rb"(?P<word>a++)\.", re.IGNORECASE)

    assert compiled.pattern == rb"(?P<word>a++)\."
    assert compiled.flags == re.IGNORECASE
    assert compiled.groupindex == {"word": 1}
    assert compiled.sub(rb"\g<word>!", b"aA.") == b"aA!"
