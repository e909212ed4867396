"""Any bytes give a skill or a diagnostic: the readers, the linter and the fixer run on
generated files.

``SKILLRUNTIME_FUZZ=100000`` runs that many. They are variations of the files in
``seeds``. `tests.catalog.fuzz` runs for as long as requested, guided by code coverage.
"""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.catalog.any_bytes import (
    can_be_linted_and_fixed,
    gives_a_skill_or_a_diagnostic,
    is_read_alike_by_both_readers,
)

EXAMPLES = int(
    os.environ.get("SKILLRUNTIME_FUZZ", 3 * settings.default.max_examples // 2)
)
SEEDS = [
    path.read_bytes() for path in sorted((Path(__file__).parent / "seeds").glob("*.md"))
]
PIECES = (
    '---|\n---\n|...|\n|\r\n|\r|\t| |  |: |:| #|# |- |-|\'|"|\\|\\x|\\"|[|]|{|}|&a'
    " |*a|!!int |!t|>-|%|@|`|?|? |<<:"
    " |~|null|true|on|2024-02-31|1e3|0x|\x00|\x07|\x7f|\ufeff|\x85|\u2028|\u00a0|技能|ﬁ|é|<!--"
    " x -->\n|```\n|[a](b)|name: |description: |metadata:\n  |version: |allowed-tools:"
    " |user-invocable: false\n"
)
TEXTS = [*PIECES.split("|"), "|", "|2", "x" * 300, "[" * 50, "- " * 50]
TOKENS = [*(text.encode() for text in TEXTS), b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80"]


@st.composite
def skill_files(draw: st.DrawFn) -> bytes:
    """Bytes that look like a SKILL.md for a while: a seed with cuts, insertions and
    repetitions.
    """
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 3)):
            case 0:
                data[at:at] = draw(st.sampled_from(TOKENS))
            case 1:
                del data[at : at + draw(st.integers(1, 40))]
            case 2:
                data[at:at] = data[at : at + draw(st.integers(1, 60))]
            case _:
                data[at : at + 1] = draw(st.binary(min_size=0, max_size=4))
    return bytes(data)


frontmatter_blocks = st.lists(
    st.one_of(
        st.sampled_from(TEXTS),
        st.sampled_from(
            [
                "name: pdf\n",
                "description: Reads\n",
                "\n",
                "  ",
                "a: ",
                "text",
                "more text",
                "  key: v\n",
            ]
        ),
    ),
    max_size=14,
).map(
    lambda pieces: (
        "name: pdf\ndescription: Reads PDFs\n" * (len(pieces) % 2) + "".join(pieces)
    )
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.one_of(skill_files(), st.binary(max_size=300)), is_whole=st.booleans())
def test_any_bytes_give_a_skill_or_a_diagnostic(data: bytes, is_whole: bool) -> None:
    """Whole files, and their beginnings."""
    gives_a_skill_or_a_diagnostic(data, is_whole=is_whole)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.one_of(skill_files(), st.binary(max_size=300)))
def test_any_bytes_can_be_linted_and_fixed(data: bytes) -> None:
    """Twice gives the same as once."""
    can_be_linted_and_fixed(data)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(block=frontmatter_blocks)
def test_the_plain_reader_agrees_with_yaml(block: str) -> None:
    """Else a skill would be another one, depending on which of them read it."""
    is_read_alike_by_both_readers(block)


def test_every_seed_keeps_the_laws() -> None:
    """Among them what a fuzzer once found."""
    for data in SEEDS:
        gives_a_skill_or_a_diagnostic(data)
        can_be_linted_and_fixed(data)
