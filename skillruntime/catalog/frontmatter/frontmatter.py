"""Parse the bytes of a SKILL.md into the frontmatter's fields, the body, and
diagnostics. Pure.

Frontmatter that is not valid YAML is read field by field, by `field_repair`.

Law: any bytes give a result, never an exception. Fields keep the text as written: no
quote, backslash or continuation line is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from skillruntime.catalog.frontmatter.field_repair import repair_block
from skillruntime.catalog.frontmatter.yaml_reader import (
    YamlDocument,
    YamlFault,
    read_yaml,
)
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.lazy_patterns import lazy_pattern

__all__ = [
    "MAX_FRONTMATTER",
    "Frontmatter",
    "cut",
    "cut_by_comments",
    "parse_cut",
    "read_frontmatter",
]

MAX_FRONTMATTER = 64 * 1024
"""The closing ``---`` must be within this many bytes; the longest of 34,434 real
frontmatters is far shorter.
"""

# Characters that YAML forbids (YAML 1.2.2, section 5.1), and DEL, which libyaml rejects
# too.
_CONTROL = lazy_pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
# Real files begin with empty lines, an HTML comment (a licence), a Markdown heading, or
# a code fence. Bounded, so that a thematic break (---) further down in an ordinary
# document is not mistaken for frontmatter.
_PREAMBLE = lazy_pattern(
    r"(?:[ \t]*\n|<!--(?:(?!-->).){0,500}-->[ \t]*\n|#[^\n]*\n|```[a-z]*[ \t]*\n){1,12}"
    r"(?=---[ \t]*\n)",
    re.DOTALL,
)
_OPENING = lazy_pattern(r"---[ \t]*(?:\n|\Z)")
# YAML 1.2.2, section 9.1.2: `...` ends a document too. `---# Title`: a missing line
# break in about a hundred of 34,434 real files; skills-ref splits at these dashes too.
# In YAML, `--- Title` also ends the document (section 9.2): the text after it would be
# a second document.
_CLOSING = lazy_pattern(r"^(---|\.\.\.)[ \t]*$|^(---)(?=#|[ \t]+\S)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """The fields of one SKILL.md, and its body.

    ``fields`` is ``None`` if there is no readable frontmatter; ``diagnostics`` then
    state the reason. ``document`` is the parsed YAML with its positions; ``None`` if
    the frontmatter had to be repaired. ``text`` is the YAML source; it begins on
    ``first_line`` of the file, and the body on ``body_line``.
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

    ``tail`` is the text after the closing dashes; it begins on ``tail_line``.
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
        start = len(self.tail) - len(self.tail.lstrip())
        return self.tail_line + self.tail.count("\n", 0, start)


class _Findings:
    """The diagnostics of the file at *path*, in the order of their discovery."""

    def __init__(self, path: str, earlier: Iterable[Diagnostic] = ()) -> None:
        self.path = path
        self.diagnostics = list(earlier)

    def error(
        self,
        rule: str,
        message: str,
        line: int | None = None,
        *,
        hint: str | None = None,
    ) -> None:
        self.diagnostics.append(
            Diagnostic(rule, Severity.ERROR, self.path, message, line, hint=hint)
        )

    def warn(
        self,
        rule: str,
        message: str,
        line: int | None = None,
        *,
        hint: str | None = None,
    ) -> None:
        self.diagnostics.append(
            Diagnostic(rule, Severity.WARNING, self.path, message, line, hint=hint)
        )


def read_frontmatter(
    data: bytes, path: str = "SKILL.md", *, is_whole: bool = True
) -> Frontmatter:
    """Return the fields and the body of *data*, the bytes of the SKILL.md at *path*.

    *is_whole* is ``False`` if *data* is only the beginning of the file; the body is
    then also incomplete.

    >>> data = b"---\\nname: pdf\\ndescription: Use when: a PDF comes\\n---\\n# PDF"
    >>> read_frontmatter(data).fields
    {'name': 'pdf', 'description': 'Use when: a PDF comes'}
    """
    return parse_cut(cut(data, path, is_whole=is_whole), path)


def parse_cut(parts: Cut, path: str) -> Frontmatter:
    """Return the fields and the body of a file that `cut` has split into *parts*."""
    if parts.block is None:
        return Frontmatter(
            None, parts.body, parts.diagnostics, first_line=parts.first_line
        )
    findings = _Findings(path, parts.diagnostics)
    above = parts.first_line - 1
    block = _without_controls(parts.block, parts.first_line, findings)
    document: YamlDocument | None
    fields: dict[str, Any] | None
    try:
        # Try YAML first; read the fields one by one only if it fails.
        document = read_yaml(block)
    except YamlFault as fault:
        document = None
        fields = _repaired_fields(block, fault, above, findings)
    else:
        fields = _fields_of(document, above, findings)
        findings.diagnostics.extend(cut_by_comments(document, block, path, above))
    return Frontmatter(
        fields,
        parts.body,
        tuple(findings.diagnostics),
        document,
        block,
        parts.first_line,
        parts.body_line,
    )


def _fields_of(
    document: YamlDocument, above: int, findings: _Findings
) -> dict[str, Any] | None:
    """Return the fields of a valid YAML *document*; ``None`` if it is not a mapping."""
    fields: dict[str, Any] | None = None
    if isinstance(document.value, dict):
        fields = document.value
    else:
        if document.value is None:
            kind = "empty"
        elif isinstance(document.value, list):
            kind = "a list"
        else:
            kind = "a text"
        message = f"the frontmatter is {kind}, not a mapping"
        findings.error("frontmatter-not-mapping", message)
    # YAML forbids duplicate keys (YAML 1.2.2, section 3.2.1.3); PyYAML and most parsers
    # use the last one.
    for key, line, column in document.duplicates:
        message = f"the key {key!r} appears twice; the last value is used"
        findings.diagnostics.append(
            Diagnostic(
                "duplicate-key",
                Severity.WARNING,
                findings.path,
                message,
                line + above,
                column,
            )
        )
    return fields


def _repaired_fields(
    block: str, fault: YamlFault, above: int, findings: _Findings
) -> dict[str, Any] | None:
    """Return the readable fields of a *block* that is not valid YAML; ``None`` if there
    are none.
    """
    line = fault.line + above if fault.line else None
    message = f"the frontmatter is not valid YAML: {fault}"
    repaired = repair_block(block)
    if not repaired.fields:
        findings.diagnostics.append(
            Diagnostic(
                "yaml-invalid",
                Severity.ERROR,
                findings.path,
                message,
                line,
                fault.column,
            )
        )
        return None
    if repaired.as_text:
        message += f"; read as plain text: {', '.join(repaired.as_text)}"
    else:
        message += "; read as far as possible"
    if repaired.dropped:
        message += f"; ignored: {', '.join(repaired.dropped)}"
    findings.diagnostics.append(
        Diagnostic(
            "yaml-repaired",
            Severity.WARNING,
            findings.path,
            message,
            line,
            fault.column,
            hint="put the value in quotes",
        )
    )
    return repaired.fields


def cut(data: bytes, path: str = "SKILL.md", *, is_whole: bool = True) -> Cut:
    """Decode *data* and split it at the first two lines that are ``---``."""
    findings = _Findings(path)
    text = _decode(data, is_whole, findings)
    usual = _usual_cut(text, findings)
    if usual is not None:
        return usual
    # YAML 1.2.2, section 5.4: a lone CR, as in old Mac files, is a line break too.
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    first_line = 1
    if not _OPENING.match(text):
        preamble = _PREAMBLE.match(text)
        if not preamble:
            _report_missing(text, findings)
            return Cut(None, text, 1, tuple(findings.diagnostics))
        findings.warn(
            "text-before-frontmatter",
            "the frontmatter does not start on the first line; the text before it is "
            "skipped",
            1,
            hint="remove the lines above ---",
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
        findings.error("frontmatter-unclosed", message, first_line, hint=hint)
        return Cut(None, text[start:], first_line, tuple(findings.diagnostics))
    closing_line = first_line + text.count("\n", 0, closing.start())
    if closing.group(1) == "...":
        findings.warn(
            "closing-dots",
            "the frontmatter ends with ... instead of ---",
            closing_line,
            hint="write ---",
        )
    if closing.group(2):
        message = (
            "the line that ends the frontmatter continues with text, which is read as "
            "the first instruction"
        )
        findings.diagnostics.append(
            Diagnostic(
                "closing-with-text",
                Severity.WARNING,
                path,
                message,
                closing_line,
                4,
                "put a line break after ---",
            )
        )
    return Cut(
        text[start : closing.start()],
        text[closing.end() :],
        first_line + 1,
        tuple(findings.diagnostics),
        first_line + text.count("\n", 0, closing.end()),
    )


def _usual_cut(text: str, findings: _Findings) -> Cut | None:
    """Return *text* split at its dashes in the usual case, without the checks for the
    other cases; ``None`` in any other case.
    """
    if not text.startswith("---\n") or "\r" in text:
        return None
    end = text.find("\n---\n", 3, MAX_FRONTMATTER)
    if end < 0:
        return None
    # An earlier line may also end the frontmatter.
    if any(line in text[3:end] for line in ("\n--- ", "\n---\t", "\n---#", "\n...")):
        return None
    return Cut(
        text[4 : end + 1],
        text[end + 4 :],
        2,
        tuple(findings.diagnostics),
        text.count("\n", 0, end + 4) + 1,
    )


def _decode(data: bytes, is_whole: bool, findings: _Findings) -> str:
    """Decode *data* as UTF-8, or as UTF-16 if it starts with a UTF-16 byte-order mark."""
    # PowerShell and Windows editors save UTF-16 with a byte-order mark.
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            message = f"the file is {encoding.upper()}, not UTF-8"
            findings.warn("not-utf-8", message, 1, hint="save the file as UTF-8")
            return data[2:].decode(encoding, "replace")
    if data.startswith(b"\xef\xbb\xbf"):
        message = "the file begins with a byte-order mark"
        findings.warn("byte-order-mark", message, 1, hint="save it without")
        data = data[3:]
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        # *data* ends inside a character, which has at most four bytes in UTF-8.
        if not is_whole and error.start >= len(data) - 3:
            return data[: error.start].decode()
        line = data.count(b"\n", 0, error.start) + 1
        message = (
            f"the file is not UTF-8: byte 0x{data[error.start]:02x}; replaced by "
            f"\N{REPLACEMENT CHARACTER}"
        )
        findings.warn("not-utf-8", message, line, hint="save the file as UTF-8")
        return data.decode(errors="replace")


def _without_controls(block: str, first_line: int, findings: _Findings) -> str:
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
    findings.warn("control-character", message, line)
    return _CONTROL.sub("", block)


def cut_by_comments(
    document: YamlDocument, block: str, path: str, above: int
) -> Iterator[Diagnostic]:
    """Yield a warning for each value that ends because `` #`` begins a comment, which
    authors rarely intend.

    *above* is the number of lines before *block* in the file.
    """
    lines = block.split("\n")
    for key in ("name", "description"):
        # Check only plain scalars: inside quotes " #" is text (YAML 1.2, section 6.6).
        if (key,) not in document.plain:
            continue
        line, column = document.values[key,]
        if line > len(lines):
            continue
        comment = lines[line - 1].find(" #", column - 1)
        if comment < 0:
            continue
        yield Diagnostic(
            "cut-by-comment",
            Severity.WARNING,
            path,
            f"the {key} ends before ' #', which begins a comment",
            line + above,
            comment + 2,
            "put the value in quotes if the rest belongs to it",
        )


def _report_missing(text: str, findings: _Findings) -> None:
    """Report why *text* has no frontmatter."""
    first = text.lstrip().split("\n", 1)[0].strip()
    is_indented = first == "---" and text.startswith((" ", "\t"))
    # YAML requires exactly three dashes at the left margin (YAML 1.2.2, section 9.1.2).
    if is_indented or re.fullmatch(r"-{4,}", first):
        written = text.split("\n", 1)[0].rstrip()
        message = f"the first line must be exactly ---, got {written!r}"
        findings.error("frontmatter-missing", message, 1)
        return
    if first:
        message = "there is no frontmatter"
    else:
        message = "the file is empty"
    hint = "start the file with a line ---, followed by name: and description:"
    findings.error("frontmatter-missing", message, 1, hint=hint)
