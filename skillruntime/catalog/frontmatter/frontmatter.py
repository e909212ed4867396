"""SKILL.md bytes -> the frontmatter's fields, the body, and diagnostics. Pure.

Frontmatter that is not valid YAML is read field by field: valid fields as YAML, the
others as plain text. The usual error is a colon in an unquoted sentence (``description:
Use when: ...``). Such a field is read with its quotes, backslashes and continuation
lines; an error in one field does not affect the others.

Law: any bytes give a result, never an exception. Fields keep the text as written: no
quote, backslash or continuation line is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skillruntime.catalog.frontmatter.yaml_reader import (
    YamlDocument,
    YamlFault,
    read_yaml,
)
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = [
    *("MAX_FRONTMATTER", "Frontmatter", "cut", "cut_by_comments", "parse_cut"),
    *("read_frontmatter", "repair_block", "split_fields"),
]

MAX_FRONTMATTER = 64 * 1024
"""Bytes within which the closing ``---`` must come; the longest of 34,434 real
frontmatters is far shorter.
"""

# YAML 1.2.2, section 5.1 (c-printable), without DEL, which libyaml rejects too.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
# Real files begin with empty lines, an HTML comment (a licence), a Markdown heading, or
# a code fence. Bounded, so that a thematic break (---) further down in an ordinary
# document is not mistaken for frontmatter.
_PREAMBLE = re.compile(
    r"(?:[ \t]*\n|<!--(?:(?!-->).){0,500}-->[ \t]*\n|#[^\n]*\n|```[a-z]*[ \t]*\n){1,12}(?=---[ \t]*\n)",
    re.DOTALL,
)
_OPENING = re.compile(r"---[ \t]*(?:\n|\Z)")
# YAML 1.2.2, section 9.1.2: `...` ends a document too. `---# Title`: a missing line
# break in about a hundred of 34,434 real files; skills-ref splits at the dashes too.
# `--- Title` ends the document in YAML as well (section 9.2): what follows would be a
# second one.
_CLOSING = re.compile(r"^(---|\.\.\.)[ \t]*$|^(---)(?=#|[ \t]+\S)", re.MULTILINE)

_FIELD = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*)|$)")
# Three of four broken fields, without a parser: bold text is not an alias, `@` and the
# backtick are reserved (YAML 1.2.2, section 5.3), and a colon ends a plain text that
# may not contain one.
_NOT_YAML = re.compile(
    r"[\w.-]+[ \t]*:[ \t]+(?:\*\*|[@`]|[^\W\d_](?:[^:#]|:(?! )|(?<! )#)*: )"
)
# A field that YAML surely reads as plain text: it begins with a letter, and has no sign
# that means something to YAML.
_PLAIN_FIELD = re.compile(r"[A-Za-z_][\w.-]*+: ++([A-Za-z][\w ,.()/-]*+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """The fields of one SKILL.md, and its body.

    ``fields`` is ``None`` if there is no readable frontmatter; then ``diagnostics``
    have the reason. ``document`` is the parsed YAML with its positions, ``None`` if it
    had to be repaired. ``text`` is the YAML source; it begins on ``first_line`` of the
    file, and the body on ``body_line``.
    """

    fields: dict[str, Any] | None
    body: str
    diagnostics: tuple[Diagnostic, ...] = ()
    document: YamlDocument | None = None
    text: str = ""
    first_line: int = 2
    body_line: int = 1


@dataclass(frozen=True, slots=True)
class Cut:
    """A file split at its two lines of dashes; ``block`` is ``None`` if they are
    missing.

    ``tail`` is everything after the closing dashes, from the end of their line; it
    begins on ``tail_line``.
    """

    block: str | None
    tail: str
    first_line: int
    diagnostics: tuple[Diagnostic, ...]
    tail_line: int = 1

    @property
    def body(self) -> str:
        """The instructions, without the empty lines around them."""
        return self.tail.strip()

    @property
    def body_line(self) -> int:
        """The line of the file on which the instructions begin."""
        return self.tail_line + self.tail.count(
            "\n", 0, len(self.tail) - len(self.tail.lstrip())
        )


def read_frontmatter(
    data: bytes, path: str = "SKILL.md", *, is_whole: bool = True
) -> Frontmatter:
    """Return the fields and the body of *data*, the bytes of the SKILL.md at *path*.

    *is_whole* is ``False`` if *data* is only the beginning of the file; then the body
    is incomplete too.

    >>> read_frontmatter(b"---\\nname: pdf\\ndescription: Use when: a PDF comes\\n---\\n# PDF").fields
    {'name': 'pdf', 'description': 'Use when: a PDF comes'}
    """
    return parse_cut(cut(data, path, is_whole=is_whole), path)


def parse_cut(parts: Cut, path: str) -> Frontmatter:
    """Return the fields and the body of a file that `cut` has split into *parts*."""
    if parts.block is None:
        return Frontmatter(
            None, parts.body, parts.diagnostics, first_line=parts.first_line
        )
    found = list(parts.diagnostics)
    above = parts.first_line - 1
    block = _without_controls(parts.block, path, parts.first_line, found)
    document: YamlDocument | None = None
    fields: dict[str, Any] | None
    try:
        # YAML first: only if it fails are the fields read one by one.
        document = read_yaml(block)
        fields = document.value if isinstance(document.value, dict) else None
        if fields is None:
            kind = {type(None): "empty", list: "a list"}.get(
                type(document.value), "a text"
            )
            found.append(
                _finding(
                    "frontmatter-not-mapping",
                    path,
                    f"the frontmatter is {kind}, not a mapping",
                )
            )
        # YAML forbids duplicate keys (section 3.2.1.3); PyYAML and most parsers use the
        # last one.
        for key, line, column in document.duplicates:
            message = f"the key {key!r} appears twice; the last value is used"
            found.append(_warning("duplicate-key", path, message, line + above, column))
        found.extend(cut_by_comments(document, block, path, above))
    except YamlFault as fault:
        repaired = repair_block(block)
        fields = repaired.fields or None
        place = (fault.line + above if fault.line else None, fault.column)
        if fields is None:
            found.append(
                _finding(
                    "yaml-invalid",
                    path,
                    f"the frontmatter is not valid YAML: {fault}",
                    *place,
                )
            )
        else:
            found.append(
                _repaired_warning(
                    path, fault, repaired.as_text, repaired.dropped, *place
                )
            )
    return Frontmatter(
        fields,
        parts.body,
        tuple(found),
        document,
        block,
        parts.first_line,
        parts.body_line,
    )


def _repaired_warning(
    path: str,
    fault: object,
    as_text: tuple[str, ...],
    dropped: tuple[str, ...],
    line: int | None,
    column: int | None,
) -> Diagnostic:
    """Return the warning for frontmatter that is not YAML, of which the fields
    *as_text* were read as plain text.
    """
    listed = f"plain text: {', '.join(as_text)}" if as_text else "far as possible"
    listed += f"; ignored: {', '.join(dropped)}" if dropped else ""
    message = f"the frontmatter is not valid YAML: {fault}; read as {listed}"
    return _warning(
        "yaml-repaired", path, message, line, column, hint="put the value in quotes"
    )


@dataclass(frozen=True, slots=True)
class Repaired:
    """The fields, and the names of those that were read as plain text or had to be
    dropped.
    """

    fields: dict[str, Any]
    as_text: tuple[str, ...]
    dropped: tuple[str, ...]


def repair_block(block: str) -> Repaired:
    """Return the fields of *block*, each parsed separately.

    >>> repair_block("name: pdf\\ndescription: Say \\"hi\\" when: C:\\\\Users\\n  comes up").fields
    {'name': 'pdf', 'description': 'Say "hi" when: C:\\\\Users comes up'}
    """
    fields: dict[str, Any] = {}
    as_texts: list[str] = []
    dropped: list[str] = []
    for key, lines in split_fields(block):
        if len(lines) == 1 and (plain := _PLAIN_FIELD.fullmatch(lines[0])):
            fields[key] = plain[1].strip()
            continue
        try:
            value = (
                None if _NOT_YAML.match(lines[0]) else read_yaml("\n".join(lines)).value
            )
        except YamlFault:
            value = None
        if isinstance(value, dict) and list(value) == [key]:
            fields[key] = value[key]
            continue
        text = _as_text(lines)
        if text is None:
            dropped.append(key)
        else:
            fields[key] = text
            as_texts.append(key)
    return Repaired(fields, tuple(as_texts), tuple(dropped))


def split_fields(block: str) -> list[tuple[str, list[str]]]:
    """Return the top-level keys of *block*, each with its lines: the line of the key
    and those that continue it.
    """
    fields: list[tuple[str, list[str]]] = []
    for line in block.split("\n"):
        start = _FIELD.match(line)
        if start:
            fields.append((start.group(1), [line]))
        elif fields and not line.startswith("#"):
            fields[-1][1].append(line)
    return fields


def _as_text(lines: list[str]) -> str | None:
    """Return the value of one field as plain text; ``None`` if it is a list or a
    mapping.

    Lines are joined as YAML folds a plain scalar: one break is a space, an empty line
    is a break (section 7.3.3).
    """
    start = _FIELD.match(lines[0])
    first = (start.group(2) or "").strip() if start else ""
    rest = [line.strip() for line in lines[1:]]
    # A block scalar header (YAML 1.2.2, section 8.1.1): its lines are valid even if the
    # rest of the block is not.
    if re.fullmatch(r"[|>][+-]?\d?[+-]?", first):
        return "\n".join(rest).strip() if first[0] == "|" else _folded(rest)
    # The lines below are list items or keys: a structure, which cannot be read as text.
    if not first and any(re.match(r"(- |[\w.-]+:(\s|$))", line) for line in rest):
        return None
    return _unquoted(_folded([first, *rest])) or None


def _folded(lines: list[str]) -> str:
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line:
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    return "\n".join(" ".join(paragraph) for paragraph in paragraphs if paragraph)


def _unquoted(text: str) -> str:
    """Remove the quotes around the whole value, and an opening quote that is never
    closed.
    """
    quote = text[:1]
    if quote not in ("'", '"'):
        return text
    # `"He said "hi""`: the author quoted the whole value and forgot to escape the inner
    # quotes.
    if len(text) > 1 and text.endswith(quote):
        inside = text[1:-1]
    # `"never closed`: without its partner the quote has no meaning.
    elif quote not in text[1:]:
        inside = text[1:]
    else:
        return text
    # A single quote is escaped by doubling it (YAML 1.2.2, section 7.3.2).
    return inside.replace('\\"', '"') if quote == '"' else inside.replace("''", "'")


def cut(data: bytes, path: str = "SKILL.md", *, is_whole: bool = True) -> Cut:
    """Decode *data* and split it at the first two lines that are ``---``."""
    found: list[Diagnostic] = []
    text = _decode(data, path, is_whole, found)
    end = (
        text.find("\n---\n", 3, MAX_FRONTMATTER)
        if text.startswith("---\n") and "\r" not in text
        else -1
    )
    if end > 0 and not any(
        other in text[3:end] for other in ("\n--- ", "\n---\t", "\n---#", "\n...")
    ):
        # The usual case, without the checks that the others need.
        return Cut(
            text[4 : end + 1],
            text[end + 4 :],
            2,
            tuple(found),
            text.count("\n", 0, end + 4) + 1,
        )
    # YAML 1.2.2, section 5.4: a lone CR, as in files of old Macs, is a line break too.
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    first_line = 1
    if not _OPENING.match(text):
        preamble = _PREAMBLE.match(text)
        if not preamble:
            found.append(_no_frontmatter(text, path))
            return Cut(None, text, 1, tuple(found))
        message = (
            "the frontmatter does not start on the first line; the text before it is "
            "skipped"
        )
        found.append(
            _warning(
                "text-before-frontmatter",
                path,
                message,
                1,
                hint="remove the lines above ---",
            )
        )
        first_line += preamble.group().count("\n")
        text = text[preamble.end() :]
    start = text.index("\n") + 1 if "\n" in text else len(text)
    closing = _CLOSING.search(text, start)
    if (
        closing is None
        or len(text[:start].encode()) + closing.start() - start > MAX_FRONTMATTER
    ):
        message = "the frontmatter is not closed"
        if not is_whole or len(data) > MAX_FRONTMATTER:
            message += f" within {MAX_FRONTMATTER // 1024} KiB"
        hint = "end it with a line that contains only ---"
        found.append(
            _finding("frontmatter-unclosed", path, message, first_line, hint=hint)
        )
        return Cut(None, text[start:], first_line, tuple(found))
    if closing.group(1) == "...":
        line = first_line + text.count("\n", 0, closing.start())
        found.append(
            _warning(
                "closing-dots",
                path,
                "the frontmatter ends with ... instead of ---",
                line,
                hint="write ---",
            )
        )
    if closing.group(2):
        line = first_line + text.count("\n", 0, closing.start())
        message = (
            "the line that ends the frontmatter continues with text, which is read as "
            "the first instruction"
        )
        hint = "put a line break after ---"
        found.append(_warning("closing-with-text", path, message, line, 4, hint))
    tail_line = first_line + text.count("\n", 0, closing.end())
    return Cut(
        text[start : closing.start()],
        text[closing.end() :],
        first_line + 1,
        tuple(found),
        tail_line,
    )


def _decode(data: bytes, path: str, is_whole: bool, found: list[Diagnostic]) -> str:
    """Return the text of *data*: UTF-8, or UTF-16 if it starts with that byte-order
    mark.
    """
    # PowerShell and Windows editors save UTF-16 with a byte-order mark.
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            message = f"the file is {encoding.upper()}, not UTF-8"
            found.append(
                _warning("not-utf-8", path, message, 1, hint="save the file as UTF-8")
            )
            return data[2:].decode(encoding, "replace")
    if data.startswith(b"\xef\xbb\xbf"):
        found.append(
            _warning(
                "byte-order-mark",
                path,
                "the file begins with a byte-order mark",
                1,
                hint="save it without",
            )
        )
        data = data[3:]
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        # The read ended inside a character, which has at most four bytes in UTF-8.
        if not is_whole and error.start >= len(data) - 3:
            return data[: error.start].decode()
        line = data.count(b"\n", 0, error.start) + 1
        message = (
            f"the file is not UTF-8: byte 0x{data[error.start]:02x}; replaced by "
            f"\N{REPLACEMENT CHARACTER}"
        )
        found.append(
            _warning("not-utf-8", path, message, line, hint="save the file as UTF-8")
        )
        return data.decode(errors="replace")


def _without_controls(
    block: str, path: str, first_line: int, found: list[Diagnostic]
) -> str:
    """Return *block* without the characters that YAML forbids (YAML 1.2.2, section
    5.1).
    """
    forbidden = _CONTROL.search(block)
    if forbidden is None:
        return block
    line = first_line + block.count("\n", 0, forbidden.start())
    message = (
        f"the character U+{ord(forbidden.group()):04X} is not allowed in the "
        "frontmatter; removed"
    )
    found.append(_warning("control-character", path, message, line))
    return _CONTROL.sub("", block)


def cut_by_comments(
    document: YamlDocument, block: str, path: str, above: int
) -> Iterator[Diagnostic]:
    """Yield a warning for each value that ends because `` #`` begins a comment, which
    authors rarely intend.

    *above* is how many lines of the file precede *block*.
    """
    lines = block.split("\n")
    # Only plain scalars: inside quotes " #" is text (YAML 1.2, section 6.6).
    for key in ("name", "description"):
        if (key,) in document.plain:
            line, column = document.values[key,]
            comment = (
                lines[line - 1].find(" #", column - 1) if line <= len(lines) else -1
            )
            if comment >= 0:
                message = f"the {key} ends before ' #', which begins a comment"
                hint = "put the value in quotes if the rest belongs to it"
                yield _warning(
                    "cut-by-comment", path, message, line + above, comment + 2, hint
                )


def _no_frontmatter(text: str, path: str) -> Diagnostic:
    first = text.lstrip().split("\n", 1)[0].strip()
    hint = "start the file with a line ---, followed by name: and description:"
    if not first:
        return _finding("frontmatter-missing", path, "the file is empty", 1, hint=hint)
    # YAML requires exactly three dashes at the left margin (section 9.1.2).
    if re.fullmatch(r"-{4,}", first) or (
        first == "---" and text.startswith((" ", "\t"))
    ):
        message = (
            "the first line must be exactly ---, got "
            f"{text.split(chr(10), 1)[0].rstrip()!r}"
        )
        return _finding("frontmatter-missing", path, message, 1)
    return _finding(
        "frontmatter-missing", path, "there is no frontmatter", 1, hint=hint
    )


def _finding(
    rule: str,
    path: str,
    message: str,
    line: int | None = None,
    column: int | None = None,
    hint: str | None = None,
) -> Diagnostic:
    return Diagnostic(rule, Severity.ERROR, path, message, line, column, hint)


def _warning(
    rule: str,
    path: str,
    message: str,
    line: int | None = None,
    column: int | None = None,
    hint: str | None = None,
) -> Diagnostic:
    return Diagnostic(rule, Severity.WARNING, path, message, line, column, hint)
