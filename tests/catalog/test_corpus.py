"""Real skills, and what was done to some of them: our verdicts next to the reference's,
skills-ref 0.1.1.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from skillruntime.catalog import discover
from skillruntime.diagnostic import Diagnostic
from tests import needs
from tests.catalog.parts import (
    cut,
    fix,
    is_valid,
    lint,
    read_frontmatter,
    scan,
    summarize,
    summary_of,
)

reference = needs.package("skills_ref")

SKIPPED = {
    *(
        "no_frontmatter",
        "no_closing_line",
        "no_delimiters",
        "four_dashes",
        "indented_dashes",
        "toml_frontmatter",
    ),
    *(
        "frontmatter_list",
        "frontmatter_text",
        "empty_frontmatter",
        "empty_file",
        "whitespace_only",
    ),
    *("description_missing", "description_empty"),
}
"""The kinds of damage after which there is no valid skill; each of these files is
reported as an error.
"""


@pytest.fixture(scope="module")
def files(corpus: Path) -> list[Path]:
    return sorted(corpus.rglob("SKILL.md"))


STEPS = pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
"""Which of the files are tried with the reference, which takes 4 ms for one."""


@STEPS
def test_the_verdict_is_that_of_the_reference(files: list[Path], step: int) -> None:
    """On every file (every fourth in a quick run); where it crashes, ours is an
    error. A field that is not of the format is advice here.
    """
    from skills_ref.validator import validate

    differing = []
    crashes = set()
    for path in files[::step]:
        try:
            faults = validate(path.parent)
            theirs = all("Unexpected fields" in fault for fault in faults)
        except (UnicodeDecodeError, AttributeError) as crash:
            crashes.add(type(crash).__name__)
            theirs = False
        ours = is_valid(lint(path.read_bytes(), path.parent.name))
        if ours != theirs:
            differing.append(str(path))

    assert differing == []
    assert step > 1 or crashes == {"UnicodeDecodeError", "AttributeError"}


@pytest.mark.parametrize(
    "text",
    [
        "description: one a---b two",
        'description: "---"',
        "description: |\n  a\n  ---\n  b",
    ],
)
def test_dashes_inside_a_value_do_not_end_the_frontmatter_unlike_the_reference(
    text: str,
) -> None:
    """The reference cuts the file at the first three dashes, even inside a value."""
    from skills_ref.errors import ParseError
    from skills_ref.parser import parse_frontmatter

    data = f"---\nname: pdf\n{text}\nlicense: MIT\n---\n# PDF\n"

    assert is_valid(lint(data.encode(), "pdf"))
    assert cut(data.encode()).body == "# PDF"
    with contextlib.suppress(ParseError):
        assert parse_frontmatter(data)[1] != "# PDF"


@STEPS
def test_the_reference_prompt_is_byte_for_byte_the_same(
    files: list[Path], step: int
) -> None:
    """For every skill that the reference can read (every fourth in a quick run), one by
    one and all together.
    """
    from skills_ref.prompt import to_prompt

    whole = []
    for path in files[::step]:
        if "---" in (cut(path.read_bytes()).block or ""):
            continue  # where the two differ on purpose
        try:
            theirs = to_prompt([path.parent])
        except Exception:
            continue
        catalog = discover(path.parent, use_index=False).select(
            where=lambda skill: skill.model_invocable
        )
        name = next(iter(catalog), None)
        if (
            name is not None
            and str(catalog[name].read_frontmatter().get("name")).strip() == name
        ):  # it can be used as it is
            assert catalog.to_prompt("reference") == theirs
            whole.append((name, path))
    together = dict(reversed(whole))
    catalog = discover(*(path.parent for path in together.values()), use_index=False)
    assert catalog.to_prompt("reference") == to_prompt(
        [together[name].parent for name in sorted(together)]
    )
    assert len(whole) > 700 // step


def test_the_plain_reader_equals_yaml_on_every_file(files: list[Path]) -> None:
    """And reads nearly all real files without YAML."""
    plain = real = 0
    for path in files:
        data = path.read_bytes()
        parts = cut(data)
        is_real = "malformed" not in path.parts
        real += is_real and parts.block is not None
        summary = scan(parts.block) if parts.block is not None else None
        if summary is None:
            continue
        plain += is_real
        read = read_frontmatter(data)
        if read.document is not None and read.fields is not None:
            expected = summarize(read.fields, "", [])
            assert [str(each).strip() for each in summary] == [
                str(each).strip() for each in expected
            ], path
    assert plain / real > 0.99


def test_damaged_files_are_read_as_the_author_meant_them(corpus: Path) -> None:
    """Of the damaged files, those that leave a skill give it, with the text that the
    author wrote in it.
    """
    rows = [
        json.loads(line)
        for line in (corpus / "index.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    losing = {}
    for row in rows:
        if row["kind"] != "derived":
            continue
        path = corpus / row["path"].removeprefix("skills_corpus/")
        found: list[Diagnostic] = []
        summary = summary_of(path.read_bytes(), str(path), path.parent.name, found)
        if summary is None:
            assert any(each.severity == "error" for each in found)
            losing[row["variant"]] = path
            continue
        written, meant = (
            " ".join(summary.description.split()),
            " ".join((row["intended_description"] or "").split()),
        )
        reported = {each.rule for each in found} & {
            "cut-by-comment",
            "duplicate-key",
            "yaml-repaired",
            "control-character",
        }
        assert meant in written or written in meant or reported, path
    assert set(losing) == SKIPPED


def test_one_discovery_reads_them_all(corpus: Path) -> None:
    """Every file is a skill, equal to one, or reported as an error."""
    catalog = discover(corpus)

    errors = [each for each in catalog.diagnostics if each.severity == "error"]
    offered = {Path(each.path).read_bytes() for each in catalog.values()}
    faulty = {each.path for each in errors}
    for file in corpus.rglob("SKILL.md"):
        assert file.read_bytes() in offered or str(file) in faulty
    assert discover(corpus).diagnostics == catalog.diagnostics


def test_correcting_a_file_keeps_its_meaning(files: list[Path]) -> None:
    """No valid file becomes invalid, no body changes, no description is lost; most
    invalid ones become valid.
    """
    corrected = 0
    for path in files:
        data, name = path.read_bytes(), path.parent.name
        fixed = fix(data, name)
        if not fixed.done:
            continue
        before, after = (
            summary_of(data, "", name, []),
            summary_of(fixed.data, "", name, []),
        )
        assert before is None or (
            after is not None
            and after.description.split() == before.description.split()
        ), path
        assert read_frontmatter(fixed.data).body == read_frontmatter(data).body
        assert is_valid(lint(fixed.data, name)) or not is_valid(lint(data, name))
        corrected += is_valid(lint(fixed.data, name))
    assert corrected > 200
