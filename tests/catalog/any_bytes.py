"""What holds for any bytes: the laws that the fuzzers try to break."""

from __future__ import annotations

from skillruntime.diagnostic import Diagnostic
from tests.catalog.parts import (
    Fixed,
    YamlFault,
    fix,
    is_valid,
    lint,
    read_frontmatter,
    read_yaml,
    scan,
    summarize,
    summary_of,
)


def gives_a_skill_or_a_diagnostic(data: bytes, *, is_whole: bool = True) -> None:
    """Nothing raises; without a skill there is a diagnostic; a name is always
    usable.
    """
    found: list[Diagnostic] = []

    summary = summary_of(data, "pdf/SKILL.md", "pdf", found, is_whole=is_whole)

    assert summary is not None or any(each.severity == "error" for each in found)
    if summary is not None:
        assert summary.name.isprintable()
        assert "/" not in summary.name
        assert summary.description.strip()
        (summary.name + summary.description + (summary.version or "")).encode()
        assert "\0" not in summary.name + summary.description + (summary.version or "")


def can_be_linted_and_fixed(data: bytes) -> None:
    """Nothing raises; fixing keeps the body and the validity, and has nothing left to
    do the second time.
    """
    fixed = fix(data, "pdf")

    again = fix(fixed.data, "pdf")

    before, after = lint(data, "pdf"), lint(fixed.data, "pdf")
    assert again == Fixed(fixed.data)
    assert is_valid(after) or not is_valid(before)
    assert read_frontmatter(fixed.data).body == read_frontmatter(data).body
    for diagnostic in (*before, *after):
        assert diagnostic.line is None or diagnostic.line >= 1


def is_read_alike_by_both_readers(block: str) -> None:
    """If the plain reader returns a summary and the text is YAML, YAML gives the same
    fields.
    """
    summary = scan(block)

    try:
        fields = read_yaml(block).value
    except YamlFault:
        return
    if summary is not None:
        assert isinstance(fields, dict)
        expected = summarize(fields, "SKILL.md", [])
        assert [str(each).strip() for each in summary] == [
            str(each).strip() for each in expected
        ]
