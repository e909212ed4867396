"""An untrusted skill whose name looks like a trusted one is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillruntime.catalog.discovery import discover
from skillruntime.catalog.root_snapshot import Root
from tests.catalog.conftest import WriteSkill


@pytest.mark.parametrize(
    ("name", "is_reported"),
    [
        ("pdf-processlng", True),
        ("pdf-proce\u0455sing", True),
        ("PDF_Processing", True),
        ("pdf-procesing", True),
        ("pdf-processings", True),
        ("pdf-rpocessing", True),
        ("pdfprocessing", True),
        ("df-processing", True),
        ("pdf-extraction", False),
        ("processing", False),
    ],
)
def test_a_name_that_looks_like_a_trusted_one_is_reported(
    tmp_path: Path, write_skill: WriteSkill, name: str, is_reported: bool
) -> None:
    """Look-alike letters, another case, one edit; also from a second root of the same view."""
    write_skill("pdf-processing", at="trusted/pdf-processing")
    write_skill(name, at=f"other/{name}")
    roots = [Root(str(tmp_path / "skills" / "trusted"), trusted=True), Root(str(tmp_path / "skills" / "other"))]

    catalog = discover(*roots)

    assert ("look-alike-name" in {each.rule for each in catalog.diagnostics}) is is_reported
    assert ("look-alike-name" in {each.rule for each in catalog.for_model().diagnostics}) is is_reported


def test_names_of_equal_trust_are_not_compared(tmp_path: Path, write_skill: WriteSkill) -> None:
    """``report`` and ``reports`` of one author are not an attack; short names are not one either."""
    for name in ("reports", "report"):
        write_skill(name)
    assert discover(tmp_path / "skills").diagnostics == ()

    write_skill("pdf", at="own/pdf")
    write_skill("pdb", at="other/pdb")
    roots = [Root(str(tmp_path / "skills" / "own"), trusted=True), Root(str(tmp_path / "skills" / "other"))]
    assert discover(*roots).diagnostics == ()
