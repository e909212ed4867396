"""The strict check of a SKILL.md: the rules of the format as errors, good practice as
advice. Pure.

Law: a file has no error here if and only if the reference validator, skills-ref 0.1.1,
accepts it. There are four intended differences: a file that is not UTF-8 or contains a
control character is an error (skills-ref crashes), a ``---`` inside a value does not
end the frontmatter, and a field that is not of the format is advice, because half of
the real skills have one, and every client ignores it.
"""

from __future__ import annotations

import difflib
import posixpath
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from skillruntime.catalog.checks.hidden_text import hidden_text
from skillruntime.catalog.frontmatter.frontmatter import Cut, cut, cut_by_comments
from skillruntime.catalog.frontmatter.yaml_reader import (
    Mark,
    YamlDocument,
    YamlFault,
    read_yaml,
)
from skillruntime.catalog.resources import Resource
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["chains", "is_valid", "lint", "suggested_name"]

FORMAT_FIELDS = frozenset(
    {"name", "description", "license", "allowed-tools", "metadata", "compatibility"}
)
"""The top-level fields of the Agent Skills specification."""

_DECLARATIONS = frozenset(
    {"inputs", "parameters", "input", "arguments", "input_schema", "inputSchema"}
)
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
MAX_BODY_LINES = 500
MAX_BODY_TOKENS = 5_000

# "We recommend keeping it short (either the name of a license or the name of a bundled
# license file)."
MAX_LICENSE = 120
# "We recommend making your key names reasonably unique to avoid accidental conflicts":
# general names, and the fields of the format itself.
_COMMON_KEYS = FORMAT_FIELDS | {
    "config",
    "data",
    "id",
    "key",
    "mode",
    "options",
    "settings",
    "state",
    "status",
    "type",
    "value",
}
# The recommended parts of a body: steps, examples, edge cases. A list or code counts as
# the first two; only a long text without any of them is reported.
_LONG_TEXT = 30  # lines that are not empty
_PARTS = lazy_pattern(
    r"^ {0,3}(?:[-*+]|\d{1,3}[.)]) |^ {0,3}(?:```|~~~|\|)"
    r"|\b(?:examples?|steps?|edge cases?|e\.g\.)|例|步骤|边缘",
    re.IGNORECASE | re.MULTILINE,
)
_MOST_LISTED = 5  # fields or links that one finding names

# The specification asks for "what the skill does and when to use it". 86 % of
# 706 real descriptions contain one of these words.
_WHEN = lazy_pattern(
    r"\b(when|whenever|if|before|after|while|trigger\w*"
    r"|use (this|it|for|to|proactively)|for (use|tasks))\b"
    r"|[当若时]|用于|适用",
    re.IGNORECASE,
)
# Inline links and images of CommonMark (section 6.3). Reference links are rare in
# skills and not checked. The text of a link has no bracket, and its target follows, so
# that text without a link is scanned once.
_LINK = lazy_pattern(r"!?\[[^\[\]\n]*+\]\(<?([^()\s<>]++)>?[^()\n]*+\)")
# A fence is indented by at most three spaces (CommonMark, section 4.5); links inside it
# are examples.
_FENCE = lazy_pattern(r"^ {0,3}(```|~~~)")
# What YAML does not allow in a stream (YAML 1.2.2, section 5.1, c-printable).
_FORBIDDEN = lazy_pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


# These rules are not errors, because skills-ref accepts what they report.
_WARNINGS = frozenset(
    {
        "closing-with-text",
        "metadata-form",
        "allowed-tools-form",
        "hidden-characters",
        "cut-by-comment",
        "body-missing",
    }
)
_ADVICE = frozenset(
    {
        "body-length",
        "unknown-field",
        "link-broken",
        "link-deep",
        "description-when",
        "script-missing",
        "license-missing",
        "license-length",
        "metadata-key",
        "body-parts",
        "reference-chain",
    }
)
# The path of a script of this skill, also after the name of its directory in braces:
# "{baseDir}/scripts/run.py".
_SCRIPT = lazy_pattern(r"(?:(?<![\w./$*>-])(?:\./)?|(?<=\}/))(scripts/[\w./-]++)")
_SCRIPT_SUFFIXES = (".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl")
_FILE_NAME = lazy_pattern(r"(?<![\w./-])[\w-]++\.(?:txt|md)\b")


def lint(
    data: bytes,
    directory: str,
    *,
    path: str = "SKILL.md",
    files: Collection[str] | None = None,
    count: Callable[[str], int] | None = None,
) -> list[Diagnostic]:
    """Return all violations in *data*, the SKILL.md at *path* of the skill in the
    directory named *directory*.

    With *files*, the paths of the skill's files, links are checked; with *count* the
    tokens of the instructions.

    >>> data = b"---\\nname: PDF\\ndescription: Use when a PDF comes\\n---\\n# PDF"
    >>> for diagnostic in lint(data, "pdf"):
    ...     print(diagnostic.line, diagnostic.rule, diagnostic.message)
    2 name-form the name 'PDF' is not lowercase
    2 name-mismatch the name 'PDF' differs from the directory name 'pdf'
    """
    parts = cut(data, path)
    linting = _Linting(path, parts)
    # The reader is lenient: here its findings have the severity of the strict rule, and
    # a place in the line.
    findings = [
        replace(note, severity=_severity_of(note.rule), column=note.column or 1)
        for note in parts.diagnostics
    ]
    if parts.block is not None:
        findings += linting.frontmatter(directory, files)
    findings += linting.body(files, count)
    # In the order of the file, findings about all of it first; the sort is stable, so
    # equal places keep their order.
    return sorted(
        findings, key=lambda finding: (finding.line or 0, finding.column or 0)
    )


def is_valid(diagnostics: Collection[Diagnostic]) -> bool:
    """Return whether there is no error among *diagnostics*."""
    return not any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)


class _Linting:
    """The check of one file; it converts positions in the frontmatter to positions in
    the file.
    """

    def __init__(self, path: str, parts: Cut) -> None:
        self.path = path
        self.parts = parts
        self.shift = parts.first_line - 1
        self.document: YamlDocument = YamlDocument(None)

    def finding(
        self,
        rule: str,
        message: str,
        place: tuple[int, int] | None = None,
        hint: str | None = None,
    ) -> Diagnostic:
        line, column = place or (None, None)
        return Diagnostic(
            rule, _severity_of(rule), self.path, message, line, column, hint
        )

    def at(self, *keys: str) -> Mark:
        """Return the position of the value of *keys* in the file."""
        mark = self.document.values.get(keys) or self.document.keys.get(keys)
        if mark is None:
            return self.parts.first_line, 1
        line, column = mark
        return line + self.shift, column

    def frontmatter(
        self, directory: str, files: Collection[str] | None
    ) -> Iterator[Diagnostic]:
        block = self.parts.block or ""
        yield from hidden_text(
            block, self.path, first_line=self.parts.first_line, is_page=False
        )
        forbidden = _FORBIDDEN.search(block)
        if forbidden:
            line = self.parts.first_line + block.count("\n", 0, forbidden.start())
            character = f"U+{ord(forbidden.group()):04X}"
            yield self.finding(
                "control-character",
                f"the character {character} is not allowed",
                (line, 1),
                "remove it",
            )
            # PyYAML refuses the whole text at the first of these; without them the
            # other errors are found too.
            block = _FORBIDDEN.sub("", block)
        try:
            self.document = read_yaml(block)
        except YamlFault as fault:
            yield self.invalid_yaml(fault)
            return
        yield from self.oddities(block)
        # skills-ref loads with strictyaml and then requires a dictionary.
        fields = self.document.value
        if not isinstance(fields, dict):
            yield self.finding(
                "frontmatter-not-mapping",
                "the frontmatter is not a mapping",
                (self.parts.first_line, 1),
                "write name: and description:, each on its own line",
            )
            return
        yield from self.unknown_fields(fields)
        yield from self.name(fields, directory)
        yield from self.description(fields)
        yield from self.compatibility(fields)
        yield from self.metadata(fields)
        if not isinstance(fields.get("allowed-tools", ""), str):
            yield self.finding(
                "allowed-tools-form",
                "`allowed-tools` is a list; the format requires one string",
                self.at("allowed-tools"),
                "put spaces between the tools",
            )
        yield from self.license(fields.get("license"), files)

    def invalid_yaml(self, fault: YamlFault) -> Diagnostic:
        place: tuple[int, int] | None = None
        if fault.line:
            place = (fault.line + self.shift, fault.column or 1)
        if "mapping values" in str(fault):  # an unquoted text with ": " in it
            hint = "put the value in quotes"
        elif "tab character" in str(fault):
            hint = "indent with spaces"
        else:
            hint = "correct this line"
        message = f"the frontmatter is not valid YAML: {fault}"
        return self.finding("yaml-invalid", message, place, hint)

    def unknown_fields(self, fields: dict[str, Any]) -> Iterator[Diagnostic]:
        # skills-ref: validator.py, ALLOWED_FIELDS; case matters.
        unknown = [key for key in fields if key not in FORMAT_FIELDS]
        if not unknown:
            return
        hints: list[str] = []
        for key in unknown:
            # `allowed_tools`, `Description`, `descripton`: another spelling, not
            # another field.
            close = difflib.get_close_matches(
                str(key).lower().replace("_", "-"), FORMAT_FIELDS, 1, cutoff=0.8
            )
            if close and close[0] not in fields:
                hints.append(f"did you mean {close[0]!r} by {key!r}?")
        if not _DECLARATIONS.isdisjoint(unknown):
            hints.append(
                "a declaration is not enforced; run `skillruntime init` to create a "
                "contract from it"
            )
        if not hints:
            hints.append(
                "move what belongs to the skill under metadata; the fields are "
                f"{', '.join(sorted(FORMAT_FIELDS))}"
            )
        listed = ", ".join(repr(key) for key in unknown[:_MOST_LISTED])
        if len(unknown) == 1:
            message = f"{listed} is not a field of the format"
        else:
            if len(unknown) > _MOST_LISTED:
                listed += f" and {len(unknown) - _MOST_LISTED} more"
            message = f"{len(unknown)} fields are not of the format: {listed}"
        place = self.at(unknown[0])
        yield self.finding("unknown-field", message, place, "; ".join(hints))

    def oddities(self, block: str) -> Iterator[Diagnostic]:
        """Yield violations that are valid YAML but not in the subset that the reference
        accepts (strictyaml).
        """
        for key, line, column in self.document.duplicates:
            place = (line + self.shift, column)
            yield self.finding(
                "duplicate-key",
                f"the key {key!r} appears twice",
                place,
                "keep one of the two",
            )
        for kind, line, column in self.document.oddities:
            message, hint = _ODDITIES[kind]
            yield self.finding(
                f"yaml-{kind}", message, (line + self.shift, column), hint
            )
        for line, column in _uneven_mappings(self.document):
            message = "this mapping is indented differently from the one before it"
            yield self.finding(
                "yaml-indentation",
                message,
                (line + self.shift, column),
                "indent both alike",
            )
        yield from cut_by_comments(self.document, block, self.path, self.shift)

    def name(self, fields: dict[str, Any], directory: str) -> Iterator[Diagnostic]:
        stated = fields.get("name")
        place = self.at("name")
        if not isinstance(stated, str) or not stated.strip():
            if stated is None or isinstance(stated, str):
                message = "there is no name"
            else:
                message = "`name` is not a string"
            yield self.finding(
                "name-missing", message, place, f"write name: {directory}"
            )
            return
        # skills-ref compares names after NFKC, so full-width letters are accepted.
        name = unicodedata.normalize("NFKC", stated.strip())
        proposed = suggested_name(name)
        if proposed:
            hint = f"write {proposed!r}"
        else:
            hint = "write lowercase letters, digits and single hyphens"
        if len(name) > MAX_NAME:
            message = (
                f"the name has {len(name)} characters; at most {MAX_NAME} are allowed"
            )
            yield self.finding(
                "name-length", message, place, "shorten it, with the directory's name"
            )
        if name != name.lower():
            yield self.finding(
                "name-form", f"the name {name!r} is not lowercase", place, hint
            )
        if name.startswith("-") or name.endswith("-"):
            yield self.finding(
                "name-form",
                f"the name {name!r} begins or ends with a hyphen",
                place,
                hint,
            )
        if "--" in name:
            yield self.finding(
                "name-form", f"the name {name!r} has two hyphens in a row", place, hint
            )
        # `isalnum`, not [a-z0-9]: skills-ref accepts letters and digits of every
        # script.
        without_hyphens = name.replace("-", "")
        if without_hyphens and not without_hyphens.isalnum():
            message = (
                f"the name {name!r} contains characters other than letters, digits "
                "and hyphens"
            )
            yield self.finding("name-form", message, place, hint)
        if unicodedata.normalize("NFKC", directory) != name:
            message = f"the name {name!r} differs from the directory name {directory!r}"
            yield self.finding("name-mismatch", message, place, f"write {directory!r}")

    def description(self, fields: dict[str, Any]) -> Iterator[Diagnostic]:
        text = fields.get("description")
        place = self.at("description")
        if not isinstance(text, str) or not text.strip():
            if not text or isinstance(text, str):
                message = "there is no description"
            else:
                message = "`description` is not a string"
            hint = "say what the skill does and when to use it"
            yield self.finding("description-missing", message, place, hint)
            return
        if len(text) > MAX_DESCRIPTION:
            message = (
                f"the description has {len(text)} characters; at most "
                f"{MAX_DESCRIPTION} are allowed"
            )
            yield self.finding(
                "description-length",
                message,
                place,
                "shorten it, and move details to the instructions",
            )
        if not _WHEN.search(text):
            hint = "add a sentence such as 'Use when the user asks for ...'"
            yield self.finding(
                "description-when",
                "the description does not say when to use the skill",
                place,
                hint,
            )

    def compatibility(self, fields: dict[str, Any]) -> Iterator[Diagnostic]:
        if "compatibility" not in fields:
            return
        text = fields["compatibility"]
        if not isinstance(text, str):
            message = "`compatibility` is not a string"
            hint = "write it as one string"
        elif len(text) > MAX_COMPATIBILITY:
            message = (
                f"`compatibility` has {len(text)} characters; at most "
                f"{MAX_COMPATIBILITY} are allowed"
            )
            hint = "shorten it"
        else:
            return
        place = self.at("compatibility")
        yield self.finding("compatibility-form", message, place, hint)

    def metadata(self, fields: dict[str, Any]) -> Iterator[Diagnostic]:
        metadata = fields.get("metadata", {})
        if not isinstance(metadata, dict):
            yield self.finding(
                "metadata-form",
                "`metadata` is not a mapping",
                self.at("metadata"),
                "write a line `key: value` below it for each entry",
            )
            return
        for key, value in metadata.items():
            if not isinstance(value, str):
                yield self.finding(
                    "metadata-form",
                    f"`metadata.{key}` is not a string",
                    self.at("metadata", key),
                    "write it as one string",
                )
        common = [key for key in metadata if key in _COMMON_KEYS]
        folded = [re.sub(r"[-_.]", "", str(key)).lower() for key in metadata]
        for key, own in zip(metadata, folded, strict=True):
            if folded.count(own) > 1:
                common.append(key)
        if common:
            listed = ", ".join(
                repr(key) for key in dict.fromkeys(common[:_MOST_LISTED])
            )
            yield self.finding(
                "metadata-key",
                f"other clients may give keys of `metadata` a meaning: {listed}",
                self.at("metadata", common[0]),
                "put the name of whoever reads it in front, such as acme-type",
            )

    def license(self, text: Any, files: Collection[str] | None) -> Iterator[Diagnostic]:
        """Yield findings if the field ``license`` is a long text, or names a file that
        does not exist.
        """
        if not isinstance(text, str):
            return
        if len(text) > MAX_LICENSE:
            yield self.finding(
                "license-length",
                f"`license` has {len(text):,} characters; a name is recommended",
                self.at("license"),
                "name the licence, or the file of the skill that has its text",
            )
        if files is None:
            return
        file_name = _FILE_NAME.search(text)
        if file_name and file_name[0] not in files:
            yield self.finding(
                "license-missing",
                f"`license` names a file that is not there: {file_name[0]}",
                self.at("license"),
                "add the file, or name the licence",
            )

    def body(
        self, files: Collection[str] | None, count: Callable[[str], int] | None
    ) -> Iterator[Diagnostic]:
        body = self.parts.body
        start = self.parts.body_line
        if self.parts.block is not None and not body:
            yield self.finding(
                "body-missing",
                "there are no instructions after the frontmatter",
                (start, 1),
                "say what the model should do",
            )
            return
        yield from hidden_text(body, self.path, first_line=start)
        lines = body.split("\n")
        shorten = "move details to files in references/"
        if len(lines) > MAX_BODY_LINES:
            message = (
                f"the instructions have {len(lines)} lines; at most {MAX_BODY_LINES} "
                "are recommended"
            )
            yield self.finding("body-length", message, (start, 1), shorten)
        # The specification recommends less than 5,000 tokens for the instructions.
        if count is not None:
            tokens = count(body)
            if tokens > MAX_BODY_TOKENS:
                message = (
                    f"the instructions have {tokens:,} tokens; at most "
                    f"{MAX_BODY_TOKENS:,} are recommended"
                )
                yield self.finding("body-length", message, (start, 1), shorten)
        is_long = sum(map(bool, map(str.strip, lines))) >= _LONG_TEXT
        if is_long and not _PARTS.search(body):
            yield self.finding(
                "body-parts",
                "the instructions have no steps, examples or edge cases",
                (start, 1),
                "these three parts are recommended",
            )
        if files is not None:
            yield from self.links(lines, start, files)
            yield from self.scripts(lines, start, files)

    def links(
        self, lines: list[str], start: int, files: Collection[str]
    ) -> Iterator[Diagnostic]:
        broken: list[tuple[str, tuple[int, int]]] = []
        for number, column, target in _links(lines):
            place = (start + number, column)
            below = f"{target}/"
            is_known = target in files or any(file.startswith(below) for file in files)
            if not is_known:
                broken.append((target, place))
            elif target.count("/") > 1:
                # The specification: "Keep file references one level deep from
                # SKILL.md".
                message = f"the link goes more than one directory deep: {target}"
                yield self.finding(
                    "link-deep",
                    message,
                    place,
                    "keep linked files at most one directory below SKILL.md",
                )
        if broken:
            yield self.broken_links(broken, files)

    def broken_links(
        self, broken: list[tuple[str, tuple[int, int]]], files: Collection[str]
    ) -> Diagnostic:
        """Return one finding for all *broken* links, at the first: a page that was
        copied without its files has hundreds.
        """
        # On macOS and Windows a link in the wrong case, or with backslashes, works for
        # its author.
        by_folded_name = {file.lower(): file for file in sorted(files, reverse=True)}
        targets = dict.fromkeys(target for target, _ in broken)
        hints: list[str] = []
        for target in targets:
            meant = by_folded_name.get(target.replace("\\", "/").lower())
            if meant is not None:
                hints.append(f"write {meant}")
        if len(hints) < len(targets):
            noun = "files" if len(targets) > 1 else "file"
            hints.append(f"create the {noun}, or correct the link")
        listed = ", ".join([*targets][:_MOST_LISTED])
        if len(targets) == 1:
            message = f"the link does not resolve: {listed}"
        else:
            if len(targets) > _MOST_LISTED:
                listed += f" and {len(targets) - _MOST_LISTED:,} more"
            message = f"{len(targets):,} links do not resolve: {listed}"
        hint = "; ".join(hints[:_MOST_LISTED])
        return self.finding("link-broken", message, broken[0][1], hint)

    def scripts(
        self, lines: list[str], start: int, files: Collection[str]
    ) -> Iterator[Diagnostic]:
        """Yield a finding for each script that the instructions name, in code or not,
        and that does not exist.
        """
        seen = set(files)
        for number, line in enumerate(lines):
            for mention in _SCRIPT.finditer(line):
                path = mention[1]
                if path in seen or not path.endswith(_SCRIPT_SUFFIXES):
                    continue
                seen.add(path)
                yield self.finding(
                    "script-missing",
                    f"the instructions name a script that is not there: {path}",
                    (start + number, mention.start(1) + 1),
                    "add the file, or correct the path",
                )


def chains(
    body: str, pages: Iterable[tuple[Resource, str, bytes]], files: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield a finding for each file that only another file links to: a model that reads
    SKILL.md alone does not know it.

    *body* are the instructions, *pages* the skill's Markdown files, each with its path
    for a reader and its bytes. The specification: "Avoid deeply nested reference
    chains."
    """
    for page, file, data in pages:
        directory = posixpath.dirname(page.path)
        lines = data.decode("utf-8", "replace").split("\n")
        for number, column, target in _links(lines):
            linked = posixpath.normpath(posixpath.join(directory, target))
            if linked not in files or linked in ("SKILL.md", page.path):
                continue
            if linked.rpartition("/")[2] in body:
                continue
            yield Diagnostic(
                "reference-chain",
                Severity.ADVICE,
                file,
                f"it leads on to {linked}, which the instructions do not name",
                number + 1,
                column,
                "name that file in SKILL.md too",
            )


def _links(lines: Iterable[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the index of the line, the column and the target of each link into the
    skill.
    """
    in_code = False
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            in_code = not in_code
        if in_code:
            continue
        for link in _LINK.finditer(line):
            path = link.group(1).split("#")[0].split("?")[0]
            target = path.removeprefix("./").rstrip("/")
            if target and not _LEADS_ELSEWHERE.match(target):
                yield number, link.start() + 1, target


# Absolute paths, URLs, and placeholders such as {file} or $FILE are not links into the
# skill.
_LEADS_ELSEWHERE = lazy_pattern(r"[A-Za-z][\w+.-]*:|/|\{|<|\$")


_ODDITIES = {
    "flow": (
        "inline lists [ ] and mappings { } are not allowed here",
        "write it in block style, or put it in quotes",
    ),
    "anchor": (
        "anchors and aliases are not allowed here",
        "write the value out, or put it in quotes",
    ),
    "tag": ("tags are not allowed here", "put the value in quotes"),
}


def suggested_name(name: str) -> str:
    """Return *name* in the form that the format requires; empty if no letter or digit
    is left.

    >>> suggested_name("My  PDF_Tools!")
    'my-pdf-tools'
    """
    # `\W` keeps letters of every script; the underscore is a word character, so it is
    # listed separately.
    words = re.split(r"[\W_]+", unicodedata.normalize("NFKC", name).lower())
    return "-".join(word for word in words if word)[:MAX_NAME].strip("-")


def _severity_of(rule: str) -> Severity:
    if rule in _WARNINGS:
        return Severity.WARNING
    if rule in _ADVICE:
        return Severity.ADVICE
    return Severity.ERROR


def _uneven_mappings(document: YamlDocument) -> list[Mark]:
    """Return the positions of nested mappings whose column differs from their first
    sibling (strictyaml forbids it).
    """
    if not isinstance(document.value, dict):
        return []
    marks = [
        document.values[key,]
        for key, value in document.value.items()
        if isinstance(value, dict)
    ]
    return [mark for mark in marks[1:] if mark[1] != marks[0][1]]
