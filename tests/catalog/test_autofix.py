"""Mechanical errors are corrected; the rest of the file does not change."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillruntime.catalog import fix_skill, validate
from skillruntime.catalog.checks.autofix import Fixed, fix
from tests.catalog.conftest import WriteSkill
from tests.catalog.parts import lint

BODY = "\n# PDF\n\n---\n  kept   as it is\n"
GOOD = f"---\nname: pdf\ndescription: Use when a PDF comes.\n---\n{BODY}"


UNTOUCHED = [
    GOOD,
    GOOD.replace("---\n\n", "user-invocable: false\n---\n\n"),
    GOOD.replace("name: pdf", "name: quite-another"),
    "no frontmatter",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\ufeff" + GOOD, GOOD),
        ("\n<!-- made -->\n" + GOOD, GOOD),
        (GOOD.replace("---\n\n#", "...\n\n#"), GOOD),
        (GOOD.replace("name: pdf", "Name: pdf"), GOOD),
        (GOOD.replace("name: pdf", "name: PDF"), GOOD),
        (GOOD.replace("name: pdf\n", ""), GOOD),
        (GOOD.replace("comes.", "comes\x07."), GOOD),
        (
            GOOD.replace("Use when a", 'Use when: a "new"\n  or C:\\old'),
            GOOD.replace(
                "Use when a PDF comes.", "'Use when: a \"new\" or C:\\old PDF comes.'"
            ),
        ),
        (
            GOOD.replace(
                "---\n\n", "version: 1.10\nmetadata:\n    a: b\nauthor: me\n---\n\n"
            ),
            GOOD.replace(
                "---\n\n",
                "metadata:\n    a: b\n    version: '1.10'\n    author: 'me'\n---\n\n",
            ),
        ),
        (
            GOOD.replace("---\n\n", "allowed-tools: [Read, 'Bash(git:*)']\n---\n\n"),
            GOOD.replace("---\n\n", "allowed-tools: 'Read Bash(git:*)'\n---\n\n"),
        ),
        (
            GOOD.replace("---\n\n", "user-invocable: false\n---\n\n"),
            GOOD.replace("---\n\n", "user-invocable: false\n---\n\n"),
        ),
        (
            GOOD.replace("name: pdf", "name: quite-another"),
            GOOD.replace("name: pdf", "name: quite-another"),
        ),
        ("no frontmatter", "no frontmatter"),
    ],
)
def test_each_correction_gives_the_exact_text(text: str, expected: str) -> None:
    """And a second fix has nothing to do."""
    fixed = fix(text.encode(), "pdf")

    assert fixed.data.decode() == expected
    assert bool(fixed.done) == (text != expected)
    assert fix(fixed.data, "pdf") == Fixed(fixed.data)


def test_line_endings_are_kept() -> None:
    """A file of Windows stays one."""
    text = GOOD.replace("name: pdf", "name: PDF").replace("\n", "\r\n")

    assert fix(text.encode(), "pdf").data == GOOD.replace("\n", "\r\n").encode()


def test_a_file_is_corrected_in_place(tmp_path: Path, write_skill: WriteSkill) -> None:
    """Replaced whole, with its mode."""
    path = write_skill("pdf", text=GOOD.replace("when a", "when: a")) / "SKILL.md"
    path.chmod(0o640)
    assert not validate(path)[0].ok

    assert fix_skill(path) == ("description was put in quotes",)

    assert validate(path)[0].ok
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in path.parent.iterdir()] == ["SKILL.md"]


def test_validation_finds_every_skill_below(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """By path; a directory without one, and one that is not there, are findings too."""
    write_skill("b", at="x/b")
    write_skill("a", text="nothing")
    (tmp_path / "empty").mkdir()

    found = validate(tmp_path / "skills")

    assert [(Path(each.path).parent.name, each.ok) for each in found] == [
        ("a", False),
        ("b", True),
    ]
    for path in ("empty", "nowhere"):
        assert [each.rule for each in validate(tmp_path / path)[0].diagnostics] == [
            "skill-missing"
        ]


def test_an_invalid_contract_is_reported(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """A skill is valid only if its contracts can be read too."""
    (write_skill("pdf") / "contract.json").write_text("{")

    assert [each.rule for each in validate(tmp_path / "skills")[0].diagnostics] == [
        "contract-invalid"
    ]


def test_a_file_that_only_another_file_names_is_advice(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """The format advises against chains of references; not against a file that SKILL.md
    names too.
    """
    text = (
        "---\n"
        "name: a\n"
        "description: Does a. Use for a.\n"
        "---\n"
        "Read [one](references/one.md), and known.md there.\n"
    )
    directory = write_skill("a", text=text)
    references = directory / "references"
    references.mkdir()
    links = (
        "[two](two.md) [known](known.md) [gone](gone.md) [self](one.md) "
        "[up](../SKILL.md) [data](../assets/d.csv)\n"
    )
    (references / "one.md").write_text(
        f"# One\n\n{links}\n```\n[example](three.md)\n```\n"
    )
    for name in ("two.md", "known.md", "three.md"):
        (references / name).write_text("Text\n")
    (directory / "assets").mkdir()
    (directory / "assets" / "d.csv").write_text("a\n")

    found = validate(directory)[0].diagnostics

    assert [
        (each.rule, each.line, each.column, each.message.split(",")[0])
        for each in found
    ] == [
        ("reference-chain", 3, 1, "it leads on to references/two.md"),
        ("reference-chain", 3, 82, "it leads on to assets/d.csv"),
    ]
    assert found[0].path.endswith("references/one.md")
    assert validate(directory)[0].ok


def test_only_rules_that_fix_corrects_are_fixable() -> None:
    """An unknown field that a client gives a meaning to stays, as advice."""
    data = GOOD.replace("---\n\n", "hooks: x\n---\n\n").encode()

    assert fix(data, "pdf") == Fixed(data)
    assert [each.rule for each in lint(data, "pdf")] == ["unknown-field"]


def test_text_after_the_closing_dashes_moves_to_its_own_line() -> None:
    """`---# PDF` is what a missing line break leaves."""
    fixed = fix(b"---\nname: pdf\ndescription: Use when a PDF comes\n---# PDF\n", "pdf")

    assert (
        fixed.data == b"---\nname: pdf\ndescription: Use when a PDF comes\n---\n# PDF\n"
    )
    assert fixed.done == ("a line break was put after the closing ---",)
