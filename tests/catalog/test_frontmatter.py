"""Bytes to fields: any content, and the exact result of every repair."""

from __future__ import annotations

import pytest

from skillruntime.catalog.frontmatter.field_repair import repair_block
from skillruntime.catalog.frontmatter.frontmatter import (
    MAX_FRONTMATTER,
    read_frontmatter,
)
from skillruntime.catalog.frontmatter.yaml_reader import (
    MAX_DEPTH,
    MAX_NODES,
    YamlFault,
    read_yaml,
)

HEAD = b"---\nname: pdf\n"


def rules(data: bytes) -> list[str]:
    return [diagnostic.rule for diagnostic in read_frontmatter(data).diagnostics]


def test_plain_frontmatter_gives_fields_and_body() -> None:
    """Fields are text as written; the body has no empty lines around it, and its line
    is known.
    """
    read = read_frontmatter(
        b"---\nname: pdf\ndescription: Reads\nversion: 1.10\n---\n\n# PDF\n\n"
    )

    assert read.fields == {"name": "pdf", "description": "Reads", "version": "1.10"}
    assert (read.body, read.body_line) == ("# PDF", 7)
    assert read.diagnostics == ()


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"", "frontmatter-missing"),
        (b"  \n\n", "frontmatter-missing"),
        (b"# PDF\n", "frontmatter-missing"),
        (b"+++\nname = 'pdf'\n+++\n", "frontmatter-missing"),
        (b"----\nname: pdf\n----\n", "frontmatter-missing"),
        (b" ---\nname: pdf\n ---\n", "frontmatter-missing"),
        (HEAD + b"description: Reads\n", "frontmatter-unclosed"),
        (HEAD + b"description: x\n" * 6000 + b"---\n", "frontmatter-unclosed"),
        (b"---\n---\n", "frontmatter-not-mapping"),
        (b"---\n- a\n- b\n---\n", "frontmatter-not-mapping"),
        (b"---\njust a sentence\n---\n", "frontmatter-not-mapping"),
        (b"---\n\t:\n\t- {\n---\n", "yaml-invalid"),
    ],
)
def test_unreadable_frontmatter_is_reported_with_its_reason(
    data: bytes, rule: str
) -> None:
    """No fields, one error with its rule, no exception."""
    assert read_frontmatter(data).fields is None
    assert rules(data) == [rule]


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"\xef\xbb\xbf" + HEAD + b"description: Reads\n---\n", ["byte-order-mark"]),
        ((HEAD + b"description: Reads\n---\n").replace(b"\n", b"\r\n"), []),
        ((HEAD + b"description: Reads\n---\n").replace(b"\n", b"\r"), []),
        (b"---  \nname: pdf\ndescription: Reads\n--- \n", []),
        (b"\n\n" + HEAD + b"description: Reads\n---\n", ["text-before-frontmatter"]),
        (
            b"<!-- generated -->\n" + HEAD + b"description: Reads\n---\n",
            ["text-before-frontmatter"],
        ),
        (HEAD + b"description: Reads\n...\n", ["closing-dots"]),
        (
            ("\ufeff" + (HEAD + b"description: Reads\n---\n").decode()).encode(
                "utf-16-le"
            ),
            ["not-utf-8"],
        ),
        (HEAD + b"description: Re\x01ads\n---\n", ["control-character"]),
        (HEAD + b"description: Re\x00ads\n---\n", ["control-character"]),
        (HEAD + b"description: old\ndescription: Reads\n---\n", ["duplicate-key"]),
        (HEAD + b"description: Reads # all\n---\n", ["cut-by-comment"]),
        (
            HEAD
            + b"description: Reads\nx: !!python/object/apply:os.system [ls]\n---\n",
            [],
        ),
        (HEAD + b"description: &a Reads\nx: *a\n---\n", []),
        (HEAD + b"description: Reads\ndate: 2024-02-31\n---\n", []),
    ],
)
def test_unusual_frontmatter_is_read_with_a_warning(
    data: bytes, rule: list[str]
) -> None:
    """Marks, line ends, comments, tags, anchors, impossible dates: the fields are those
    that were meant.
    """
    read = read_frontmatter(data)

    assert read.fields is not None
    assert (read.fields["name"], read.fields["description"]) == ("pdf", "Reads")
    assert rules(data) == rule


@pytest.mark.parametrize("above", [b"", b"\n\n"])
def test_a_diagnostic_has_the_line_of_the_file(above: bytes) -> None:
    """Also where the frontmatter does not begin on the first line."""
    read = read_frontmatter(above + HEAD + b"name: twice\ndescription: Reads\n---\n")

    [line] = [each.line for each in read.diagnostics if "name" in each.message]
    assert line == len(above) + 3


def test_dashes_inside_a_value_do_not_end_the_frontmatter() -> None:
    """Only a line of its own counts: an indented --- is text."""
    read = read_frontmatter(
        HEAD
        + b"description: |\n  one\n  ---\n  two a---b\n---\nbody --- text\n---\nmore\n"
    )

    assert read.fields == {"name": "pdf", "description": "one\n---\ntwo a---b\n"}
    assert read.body == "body --- text\n---\nmore"


def test_an_invalid_byte_replaces_one_character() -> None:
    """The rest of the file is read, and the diagnostic has the line."""
    read = read_frontmatter(HEAD + b"description: caf\xe9\n---\n")

    assert read.fields == {"name": "pdf", "description": "caf\N{REPLACEMENT CHARACTER}"}
    assert [(each.rule, each.line) for each in read.diagnostics] == [("not-utf-8", 3)]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Use when: a PDF comes", "Use when: a PDF comes"),
        ('Say "hello: you" to: C:\\Users\\me', 'Say "hello: you" to: C:\\Users\\me'),
        (
            "First: line\n  and its second\n  and third: line",
            "First: line and its second and third: line",
        ),
        ('"He said "hi" and left: now"', 'He said "hi" and left: now'),
        ("'The user's request'", "The user's request"),
        ('"Works in C:\\Users\\me"', "Works in C:\\Users\\me"),
        ('"never closed', "never closed"),
        ("**bold** text", "**bold** text"),
        ("@mention first", "@mention first"),
        ("`code` first", "`code` first"),
        ("[beta] Reads", "[beta] Reads"),
        ("50% of: it", "50% of: it"),
        ("a: b\nwrapped without indent", "a: b wrapped without indent"),
    ],
)
def test_a_sentence_that_is_not_yaml_is_read_as_text(written: str, meant: str) -> None:
    """Quotes, backslashes and continuation lines stay; the other fields are read as
    YAML.
    """
    read = read_frontmatter(
        f"---\nname: 'pdf'\ndescription: {written}\nx: [1, 2]\n---\n".encode()
    )

    assert read.fields == {"name": "pdf", "description": meant, "x": ["1", "2"]}
    assert [each.rule for each in read.diagnostics] == ["yaml-repaired"]


def test_an_invalid_field_affects_only_itself() -> None:
    """A structure that is not valid YAML is dropped, and named."""
    read = read_frontmatter(
        HEAD + b"description: Reads\nmetadata:\n\tauthor: me\n---\n"
    )

    assert read.fields == {"name": "pdf", "description": "Reads"}
    assert "ignored: metadata" in read.diagnostics[0].message


@pytest.mark.parametrize(
    "text",
    [
        "[" * 3000,
        "{a: " * 3000,
        "- " * 3000,
        "\n".join(" " * n + "a:" for n in range(3000)),
    ],
)
def test_nesting_is_bounded(text: str) -> None:
    """3,000 levels are refused before they cost anything."""
    # libyaml 0.2.6 looks ahead through brackets, and stops at its own bound.
    own = "|exceeded maximum nesting depth" if text.startswith("[") else ""
    with pytest.raises(YamlFault, match=f"deeper than {MAX_DEPTH}{own}"):
        read_yaml(text)


def test_aliases_count_as_their_expansion() -> None:
    """A bomb of aliases is refused at its twentieth thousandth node, not built."""
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
    )

    with pytest.raises(YamlFault, match=f"more than {MAX_NODES}"):
        read_yaml(bomb)


@pytest.mark.parametrize(
    "text", ["a: &a [*a]", "a: *nothing", "? [a, b]\n: c", "{a: b}: c"]
)
def test_mappings_as_keys_are_an_error(text: str) -> None:
    """An alias of itself, an alias of nothing, a collection as a key."""
    with pytest.raises(YamlFault):
        read_yaml(text)


def test_the_beginning_of_a_file_is_enough() -> None:
    """A character that is cut at the end of the read part is not an error."""
    data = "---\nname: pdf\ndescription: Reads\n---\n文".encode()

    assert read_frontmatter(data[:-1], is_whole=False).diagnostics == ()
    assert MAX_FRONTMATTER == 65536


def test_fields_below_the_end_of_the_first_document_are_not_lost() -> None:
    """YAML ends the mapping where a line is indented less than its first one; loaders
    report that.
    """
    read = read_frontmatter(
        b"---\n name: pdf\ndescription: Reads PDFs\nversion: '2'\n---\nRead.\n"
    )

    assert read.fields == {"description": "Reads PDFs", "version": "2"}
    assert [each.rule for each in read.diagnostics] == ["yaml-repaired"]


def test_dashes_with_text_end_the_frontmatter_and_not_the_instructions() -> None:
    """The text up to the next line of dashes is not a second YAML document (YAML 1.2.2,
    section 9.2).
    """
    read = read_frontmatter(
        b"---\nname: pdf\ndescription: Reads\n--- # Steps\n\nRead.\n\n---\nWrite.\n"
    )

    assert read.fields == {"name": "pdf", "description": "Reads"}
    assert read.body == "# Steps\n\nRead.\n\n---\nWrite."
    assert [(each.rule, each.line) for each in read.diagnostics] == [
        ("closing-with-text", 4)
    ]


@pytest.mark.parametrize(
    "value",
    [
        "word",
        "two words  ",
        "null",
        "true",
        "a, b (c)",
        "a - b",
        "A/B.c",
        "word\t",
        "e.g. x",
        "yes #no",
        "a/ b:c",
    ],
)
def test_a_plain_field_beside_a_broken_one_is_what_yaml_reads(value: str) -> None:
    """Whether YAML is asked or not."""
    block = f"name: {value}"

    assert (
        repair_block(f"{block}\ndescription: Use when: asked").fields["name"]
        == read_yaml(block).value["name"]
    )


def test_plain_fields_beside_a_broken_one_need_no_yaml(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four of five fields of a broken frontmatter are plain text."""
    monkeypatch.setattr("skillruntime.catalog.frontmatter.field_repair.read_yaml", None)

    fields = repair_block(
        "name: pdf\nlicense: MIT (see LICENSE)\ndescription: Use when: asked"
    ).fields

    assert fields == {
        "name": "pdf",
        "license": "MIT (see LICENSE)",
        "description": "Use when: asked",
    }
