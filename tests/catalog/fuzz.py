"""Fuzzes the readers, the linter and the fixer with atheris, guided by which code is
reached.

    pip install atheris python -m tests.catalog.fuzz CORPUS tests/catalog/seeds
    -max_total_time=600 -dict=tests/catalog/fuzz.dict

CORPUS is an empty directory that collects what reaches further; the other options are
libFuzzer's. What breaks a law is written to a file, and belongs into ``seeds``,
shortened.
"""

from __future__ import annotations

import sys

import atheris  # no dependency of the project

with atheris.instrument_imports(include=["skillruntime"]):
    from tests.catalog.any_bytes import (
        can_be_linted_and_fixed,
        gives_a_skill_or_a_diagnostic,
        is_read_alike_by_both_readers,
    )


def break_a_law(data: bytes) -> None:
    """Try *data* as a file, and what is between its dashes as frontmatter."""
    gives_a_skill_or_a_diagnostic(data)
    can_be_linted_and_fixed(data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    end = text.find("\n---\n", 3)
    is_read_alike_by_both_readers(
        text[4 : end + 1] if text.startswith("---\n") and end > 0 else text
    )


if __name__ == "__main__":
    atheris.Setup(sys.argv, break_a_law)
    atheris.Fuzz()
