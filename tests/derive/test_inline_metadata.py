"""What a script says it needs (PEP 723): `skillruntime/derive/inline_metadata.py`."""

from __future__ import annotations

import pytest

from skillruntime.derive.inline_metadata import InlineMetadata, parse_inline_metadata

BLOCK = """#!/usr/bin/env python
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "requests<3",
#
#   "rich",
# ]
# ///
import requests
"""


def test_a_block_is_read_as_the_standard_says() -> None:
    """The example of PEP 723."""
    assert parse_inline_metadata(BLOCK) == InlineMetadata(
        ("requests<3", "rich"), ">=3.11"
    )


@pytest.mark.parametrize(
    "source",
    [
        "",
        "import this",
        "# /// script\n# dependencies = [\n# ///\n",
        "# /// script\n# dependencies = 5\n# ///\n",
        "# /// other\n# dependencies = ['x']\n# ///\n",
        BLOCK + BLOCK,
    ],
)
def test_a_missing_or_broken_block_declares_nothing(source: str) -> None:
    """Absent, broken, of another type, or there twice (which the standard forbids)."""
    assert parse_inline_metadata(source).dependencies == ()
