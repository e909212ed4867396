"""The strict check: the reference's verdict, with position and hint, all errors at
once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from skillruntime.catalog import discover, validate
from tests.catalog.parts import is_valid, lint

GOOD = "---\nname: pdf\ndescription: Reads PDFs. Use when a PDF comes.\n---\n# PDF\n"


def found(
    text: str, directory: str = "pdf", **options: object
) -> list[tuple[str, int | None, int | None]]:
    # The tests below give options of these types.
    diagnostics = lint(text.encode(), directory, **options)  # type: ignore[arg-type]
    assert [
        each.rule for each in diagnostics if not each.hint
    ] == []  # the guide: each finding says what to do
    return [(each.rule, each.line, each.column) for each in diagnostics]


def test_a_valid_skill_has_no_diagnostics() -> None:
    """No error, no warning, no advice."""
    assert found(GOOD, files=["references/forms.md"], count=len) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("name: pdf", "name: PDF"), [("name-form", 2, 7), ("name-mismatch", 2, 7)]),
        (("name: pdf", "name: -pdf"), [("name-form", 2, 7), ("name-mismatch", 2, 7)]),
        (("name: pdf", "name: p--df"), [("name-form", 2, 7), ("name-mismatch", 2, 7)]),
        (("name: pdf", "name: p_df"), [("name-form", 2, 7), ("name-mismatch", 2, 7)]),
        (
            ("name: pdf", f"name: {'p' * 65}"),
            [("name-length", 2, 7), ("name-mismatch", 2, 7)],
        ),
        (("name: pdf\n", ""), [("name-missing", 2, 1)]),
        (("name: pdf", "name:"), [("name-missing", 2, 6)]),
        (("name: pdf", "name: [pdf]"), [("yaml-flow", 2, 7), ("name-missing", 2, 7)]),
        (("Reads PDFs. Use when a PDF comes.", ""), [("description-missing", 3, 13)]),
        (
            ("Reads PDFs. Use when a PDF comes.", "Reads PDFs."),
            [("description-when", 3, 14)],
        ),
        (("Reads", "Reads " + "all " * 300), [("description-length", 3, 14)]),
        (("Reads PDFs", "Reads: PDFs"), [("yaml-invalid", 3, 19)]),
        (("Reads PDFs", "&a PDFs"), [("yaml-anchor", 3, 14)]),
        (("Reads PDFs", "!!str PDFs"), [("yaml-tag", 3, 14)]),
        (
            ("PDFs.", "PDFs # now."),
            [("cut-by-comment", 3, 25), ("description-when", 3, 14)],
        ),
        (("---\n#", "version: 1\nauthor: me\n---\n#"), [("unknown-field", 4, 10)]),
        (("---\n#", "name: pdf\n---\n#"), [("duplicate-key", 4, 1)]),
        (("---\n#", "metadata:\n  a:\n    - b\n---\n#"), [("metadata-form", 6, 5)]),
        (("---\n#", "metadata: x\n---\n#"), [("metadata-form", 4, 11)]),
        (
            ("---\n#", "allowed-tools:\n  - Read\n---\n#"),
            [("allowed-tools-form", 5, 3)],
        ),
        (
            ("---\n#", f"compatibility: {'x' * 501}\n---\n#"),
            [("compatibility-form", 4, 16)],
        ),
        (("---\n#", "...\n#"), [("closing-dots", 4, 1)]),
        (("---\n#", "---#"), [("closing-with-text", 4, 4)]),
        (("---\n#", "--- #"), [("closing-with-text", 4, 4)]),
        (("---\nname", "---\n name"), [("yaml-invalid", 3, 1)]),
        (("---\nname", "\n---\nname"), [("text-before-frontmatter", 1, 1)]),
        (("---\nname", "\ufeff---\nname"), [("byte-order-mark", 1, 1)]),
        (("# PDF\n", "\n"), [("body-missing", 6, 1)]),
        (("# PDF", "- line\n" * 501), [("body-length", 5, 1)]),
    ],
)
def test_each_rule_reports_its_position(
    change: tuple[str, str], expected: list[tuple[str, int, int]]
) -> None:
    """Line and column of the wrong value; several errors are reported at once."""
    text = GOOD.replace(*change, 1)

    assert sorted(found(text)) == sorted(expected)


def test_links_are_checked_if_the_files_are_known() -> None:
    """Into the skill only: addresses, anchors, examples in code and templates are left
    alone.
    """
    body = (
        "See [forms](references/forms.md#x) and [gone](references/gone.md).\n"
        "![logo](assets/logo.png) [web](https://example.com/a) [top](#top) "
        "[mail](mailto:a@b.c) [t]({path}/x)\n"
        "[deep](references/a/b.md) [folder](references/)\n"
        "```\n"
        "[example](nowhere.md)\n"
        "```\n"
    )
    files = ["references/forms.md", "references/a/b.md"]

    assert found(GOOD + body, files=files) == [
        ("link-broken", 6, 40),
        ("link-deep", 8, 1),
    ]
    assert found(GOOD + body) == []


def test_a_finding_about_many_places_is_one_line() -> None:
    """Unknown fields of a file and broken links of a skill: advice, with the first five
    names and the number of the others.
    """
    links = "".join(f"- [page {number}](pages/{number}.md)\n" for number in range(300))
    fields = "".join(f"field-{number}: x\n" for number in range(7))
    text = GOOD.replace("---\n#", f"{fields}allowed_tools: Read\n---\n#", 1) + links

    found = lint(text.encode(), "pdf", files=["SKILL.md"])

    assert [(each.severity, each.rule, each.message) for each in found] == [
        (
            "advice",
            "unknown-field",
            "8 fields are not of the format: 'field-0', 'field-1', 'field-2', "
            "'field-3', 'field-4' and 3 more",
        ),
        (
            "advice",
            "link-broken",
            "300 links do not resolve: pages/0.md, pages/1.md, pages/2.md, pages/3.md, "
            "pages/4.md and 295 more",
        ),
    ]
    assert found[0].hint == "did you mean 'allowed-tools' by 'allowed_tools'?"


def test_what_the_format_recommends_is_advice() -> None:
    """A short licence, keys of metadata that are unique, and steps, examples or edge
    cases in a long text.
    """
    fields = (
        f"license: {'All rights reserved. ' * 20}\n"
        "metadata:\n  author: me\n  type: x\n  myKey: a\n  my-key: b\n"
    )
    text = GOOD.replace("---\n#", f"{fields}---\n#", 1)
    sentences = "Think about it for a while.\n" * 40

    found = lint((text + sentences).encode(), "pdf", files=["SKILL.md"])

    assert [(each.severity, each.rule) for each in found] == [
        ("advice", "license-length"),
        ("advice", "metadata-key"),
        ("advice", "body-parts"),
    ]
    assert "'type', 'myKey', 'my-key'" in found[1].message
    assert lint((GOOD + sentences + "1. Do it.\n").encode(), "pdf") == []


def test_scripts_that_the_instructions_name_are_there() -> None:
    """Also in code; those of another place are not of this skill."""
    body = (
        "Run `scripts/gone.py` and ./scripts/here.py, then:\n"
        "```\n"
        "python {baseDir}/scripts/lost.sh --all\n"
        "python scripts/gone.py again\n"
        "```\n"
        "Not /opt/scripts/other.py, skills/pdf/scripts/other.py, "
        "<dir>scripts/other.py, $HOMEscripts/other.py,\n"
        "https://example.com/scripts/other.py, scripts/notes.txt or scripts/.\n"
    )

    assert found(GOOD + body, files=["scripts/here.py"]) == [
        ("script-missing", 6, 6),
        ("script-missing", 8, 18),
    ]
    assert found(GOOD + body) == []


@pytest.mark.parametrize(
    ("license_", "rules"),
    [
        ("Complete terms in LICENSE.txt", ["license-missing"]),
        ("LICENSE.md", ["license-missing"]),
        ("See docs in NOTICE.txt", []),
        ("Apache-2.0", []),
        ("MIT License", []),
        ("https://example.com/LICENSE.txt", []),
    ],
)
def test_the_licence_file_that_is_named_is_there(
    license_: str, rules: list[str]
) -> None:
    """The format lets `license` name a bundled file."""
    text = GOOD.replace("---\n", f"---\nlicense: {license_}\n", 1) + "Body.\n"

    assert [rule for rule, *_ in found(text, files=["NOTICE.txt"])] == rules


def test_tokens_are_counted_with_a_counter() -> None:
    """More than 5,000 of them are worth a word."""
    assert found(GOOD + "word " * 6000, count=lambda text: len(text.split())) == [
        ("body-length", 5, 1)
    ]


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"---\nname: caf\xe9\n---\n", b"---\nname: a\x01\n---\n"]
)
def test_where_the_reference_crashes_there_is_an_error(data: bytes) -> None:
    """The reference raises UnicodeDecodeError and AttributeError; ours reports the
    error.
    """
    assert not is_valid(lint(data, "pdf"))


@pytest.mark.parametrize("link", ["references/forms.md", "references\\Forms.md"])
def test_a_link_that_only_other_systems_resolve_is_corrected(link: str) -> None:
    """macOS ignores the case of a name and Windows takes backslashes, so its author
    does not notice.
    """
    text = f"{GOOD}\nRead [the forms]({link}).\n"

    (finding,) = lint(text.encode(), "pdf", files=["SKILL.md", "references/Forms.md"])

    assert (finding.rule, finding.hint) == ("link-broken", "write references/Forms.md")


def test_a_path_without_a_skill_says_what_is_there(tmp_path: Path) -> None:
    """An empty directory, a file and nothing at all each have an answer of their own."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")

    messages = []
    for name in ("empty", "notes.txt", "missing"):
        ((diagnostic,),) = [each.diagnostics for each in validate(tmp_path / name)]
        messages.append(diagnostic.message)

    assert messages == [
        "no SKILL.md is in this directory or below it",
        "this is a file",
        "there is no such directory",
    ]


def test_a_directory_may_be_named_as_the_file(tmp_path: Path) -> None:
    """A directory ``SKILL.md`` is looked into, like any other."""
    skill = tmp_path / "SKILL.md" / "pdf"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(GOOD, encoding="utf-8")

    (validation,) = validate(tmp_path / "SKILL.md")

    assert validation.path == str(skill / "SKILL.md")


def test_what_a_skill_is_compatible_with_is_shown_as_it_is_written(
    tmp_path: Path,
) -> None:
    """None where the field is absent."""
    found = []
    for name, field in (("pdf", "compatibility: Needs git\n"), ("doc", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: Reads it.\n{field}---\nRead.\n",
            encoding="utf-8",
        )
        skill = discover(tmp_path, use_index=False).activate(name)
        found.append(skill.frontmatter.compatibility)

    assert found == ["Needs git", None]
