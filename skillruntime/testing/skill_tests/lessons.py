"""Learn from a failed call what its script expects: a number, a file or a directory
instead of a made-up text, a file inside a directory, another JSON document, a further
option, or a repository.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from skillruntime.derive.command_line import CommandLine
from skillruntime.testing.skill_tests.hindrances import (
    missing_file_lines,
    not_a_directory_lines,
)
from skillruntime.testing.skill_tests.inputs.case import Case
from skillruntime.testing.skill_tests.inputs.file_variants import files_for
from skillruntime.testing.skill_tests.inputs.made_files import (
    DIRECTORY_FILES,
    JSON_SUFFIXES,
    is_file_name,
    made_file,
    unpacked_parts,
)
from skillruntime.testing.skill_tests.inputs.sample_files import sample_for
from skillruntime.testing.skill_tests.inputs.script_literals import (
    read_literals,
    read_modules,
)
from skillruntime.testing.skill_tests.inputs.script_members import document_with_members
from skillruntime.testing.skill_tests.inputs.shown_documents import json_documents
from skillruntime.testing.skill_tests.subject import Subject

if TYPE_CHECKING:
    from skillruntime.testing.skill_tests.runs import Run

__all__ = ["Lessons"]

Place = tuple[str, int | None]
"""A parameter whose value is a text, or an item of one whose value is a list of
texts.
"""

_NUMBER = "1"
_NO_NUMBER = re.compile(
    r"(?:invalid literal for int\(\)|could not convert string to float|"
    r"invalid (?:int|float|number)|not a (?:valid )?(?:integer|number))[^'\n]*'([^'\n]+)'"
)
"""The errors of `int` and `float`, and of programs in similar words."""

_NO_REPOSITORY = re.compile(r"\bgit repo(?:sitory)?\b", re.IGNORECASE)
_ASKS = re.compile(r"\b(?:missing|required?s?|needs?|must|provide|specify)\b", re.I)
_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")

_FILE_IN_A_LINE = re.compile(r"(?<![\w.-])[\w-]+\.[A-Za-z]\w{0,5}\b")
_MOST_FILES = 40
"""The most files of a directory to which more are added."""

_FORMATS = {
    "json": re.compile(
        r"JSONDecodeError|Expecting value: line|not valid JSON|in JSON at"
    ),
    "pdf": re.compile(r"\bPdf\w*Error|EOF marker not found|PDFSyntaxError"),
    "png": re.compile(r"UnidentifiedImageError|cannot identify image"),
    "xml": re.compile(r"xml\.\S*ParseError|ExpatError|XMLSyntaxError|not well-formed"),
    "xlsx": re.compile(r"InvalidFileException|BadZipFile"),
}
"""The errors of a script that reads a text as another kind of file, by the suffix."""

_UNKNOWN_KIND = ".txt"
"""The suffix of a file for which nothing suggests a kind."""

_MEANT_SUFFIXES = {
    "document": "docx",
    "excel": "xlsx",
    "image": "png",
    "markdown": "md",
    "photo": "png",
    "picture": "png",
    "presentation": "pptx",
    "screenshot": "png",
    "slides": "pptx",
    "spreadsheet": "xlsx",
    "workbook": "xlsx",
}


@dataclass(slots=True)
class Lessons:
    """What the failed calls of *subject* have shown.

    ``texts`` are the texts that replace made-up ones; ``numbers`` are the places that
    take a number; ``directories`` are the files of each directory, by its name.
    """

    subject: Subject
    texts: dict[Place, str] = field(default_factory=dict)
    numbers: set[Place] = field(default_factory=set)
    directories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    needed: dict[str, Any] = field(default_factory=dict)
    """The arguments that every call needs, although the contract does not say so."""

    needs_repository: bool = False
    """Whether the workspace must be a Git repository."""

    filled: set[str] = field(default_factory=set)
    """The directories that have the files which the source looks for."""

    documents: Sequence[bytes] | None = None
    """JSON documents to try, the best first; they are looked for when a call fails."""

    failed_documents: int = -1
    """How many of ``documents`` the script refused; -1 before any is tried."""

    def applied_to(self, case: Case, *, kept: Container[str]) -> Case:
        """Return *case* with the known text at each place, except where its text is one
        of *kept*. A changed case is invented: it shows what is missing, not a fault.
        """
        arguments = {**self.needed, **case.arguments}
        for (name, index), text in self.texts.items():
            value = arguments.get(name)
            if index is None and isinstance(value, str) and value not in kept:
                arguments[name] = text
            elif index is not None and isinstance(value, list) and index < len(value):
                if isinstance(value[index], str) and value[index] not in kept:
                    arguments[name] = [*value[:index], text, *value[index + 1 :]]
        is_new = arguments != case.arguments
        if not is_new or not self.subject.contract.input.is_valid(arguments):
            return case
        return replace(case, arguments=arguments, is_invented=True)

    def document_for(self, path: str) -> bytes | None:
        """Return the document for the file *path*; None if it is no JSON file, if none
        was needed, or after all were refused.
        """
        documents = self.documents or ()
        if path.endswith(JSON_SUFFIXES) and 0 <= self.failed_documents < len(documents):
            return documents[self.failed_documents]
        return None

    def learn_from(self, run: Run) -> bool:
        """Record what *run*, which failed, shows; return whether it is something new."""
        return (
            self._learn_number(run)
            or self._learn_repository(run)
            or self._learn_needed(run)
            or self._learn_directory(run)
            or self._learn_file_of_directory(run)
            or self._learn_files(run)
            or self._learn_format(run)
            or self._learn_contents(run)
            or self._learn_document(run)
        )

    def _learn_number(self, run: Run) -> bool:
        """Learn the place of a text that the script cannot read as a number: the first
        one, because several parameters may have the same made-up text.
        """
        refused = {match[1] for match in _NO_NUMBER.finditer(run.written)}
        for place, text in _texts_at_places(run.case.arguments):
            if text in refused and place not in self.numbers:
                self.numbers.add(place)
                self.texts[place] = _NUMBER
                return True
        return False

    def _learn_repository(self, run: Run) -> bool:
        if self.needs_repository or not _NO_REPOSITORY.search(run.written):
            return False
        self.needs_repository = True
        return True

    def _learn_needed(self, run: Run) -> bool:
        """Learn the options that the script asks for although its parser does not
        require them, as in ``--branch and --name are required``.
        """
        line = self.subject.contract.run.get("command_line")
        if line is None:
            return False
        flags = {
            each.flag: each.name
            for each in CommandLine.from_dict(line).parameters
            if each.flag and each.takes == "value"
        }
        has_learnt = False
        for asked in filter(_ASKS.search, run.written.splitlines()):
            for flag in _FLAG.findall(asked):
                name = flags.get(flag, "")
                if name and name not in run.case.arguments and name not in self.needed:
                    self.needed[name] = self._sample_of(name)
                    has_learnt = True
        return has_learnt

    def _sample_of(self, name: str) -> Any:
        """Return a value for the parameter *name*: its first member, a number, or a
        text.
        """
        part = self._property(name)
        if part.get("enum"):
            return part["enum"][0]
        if part.get("type") in ("integer", "number"):
            return part.get("minimum", 1)
        return "a"

    def _learn_directory(self, run: Run) -> bool:
        has_learnt = False
        for place in _places_in(not_a_directory_lines(run), run):
            has_learnt |= self._make_directory(place)
        return has_learnt

    def _make_directory(self, place: Place) -> bool:
        """Let *place* name a directory; return whether it did not before."""
        name = _name_of(place)
        if name in self.directories:
            return False
        self.texts[place] = name
        self.directories[name] = dict(DIRECTORY_FILES)
        return True

    def _learn_file_of_directory(self, run: Run) -> bool:
        """Learn that the script looks for a file inside a directory: in ``no SKILL.md
        found at report`` and in ``report/SKILL.md not found``, the text ``report``
        means a directory.
        """
        given = [text for _, text in _texts_at_places(run.case.arguments)]
        for line in missing_file_lines(run):
            for place, text in _texts_at_places(run.case.arguments):
                directory = re.escape(text.rstrip("/"))
                below = re.search(rf"(?<![\w.-]){directory}/([\w./-]*\w)", line)
                if directory and below and self._add_file(place, below[1]):
                    return True
            for match in _FILE_IN_A_LINE.finditer(line):
                if any(match[0] in text for text in given):
                    continue
                for place in self._places_of_directories(line, run):
                    if self._add_file(place, match[0]):
                        return True
        return False

    def _places_of_directories(self, line: str, run: Run) -> list[Place]:
        """Return the places that may name the directory that *line* is about: those
        whose text it has, else those that name a directory already, else the first of
        which nothing is known.
        """
        given = [
            (place, text)
            for place, text in _texts_at_places(run.case.arguments)
            if place not in self.numbers
        ]
        named = _places_in([line], run)
        for found in (
            [place for place, _ in given if place in named],
            [place for place, text in given if text in self.directories],
            [place for place, _ in given if place not in self.texts][:1],
        ):
            if found:
                return found
        return []

    def _add_file(self, place: Place, path: str) -> bool:
        """Add a file to the directory of *place*; return whether it was not there."""
        self._make_directory(place)
        files = self.directories[_name_of(place)]
        is_there = path in files or any(name.startswith(f"{path}/") for name in files)
        if is_there or len(files) >= _MOST_FILES:
            return False
        parts = unpacked_parts(path)
        if parts:
            files.update(parts)
            return True
        if not is_file_name(path):
            path = f"{path}/one.txt"
        data = sample_for(path, self.subject.samples)
        if data is None:
            data = made_file(path) or b"text\n"
        files[path] = data
        return True

    def _learn_files(self, run: Run) -> bool:
        has_learnt = False
        for place in _places_in(missing_file_lines(run), run):
            is_known = place in self.texts or place in self.numbers
            if is_known or is_file_name(_text_at(place, run)):
                continue
            self.texts[place] = self._file_name(place)
            has_learnt = True
        return has_learnt

    def _file_name(self, place: Place) -> str:
        """Return the name of a file for *place*, of the kind that the name or the
        description of the parameter suggests, else the names of script and skill.
        """
        description = self._property(place[0]).get("description", "")
        texts = (place[0], str(description), self.subject.name)
        for word in re.findall(r"[a-z]+", " ".join(texts).lower()):
            suffix = _MEANT_SUFFIXES.get(word, word)
            if made_file(f"input.{suffix}") is not None:
                return f"{_name_of(place)}.{suffix}"
        return f"{_name_of(place)}{_UNKNOWN_KIND}"

    def _property(self, name: str) -> Mapping[str, Any]:
        """Return the schema of the parameter *name*; empty if there is none."""
        document = self.subject.contract.input.document
        if not isinstance(document, dict):
            return {}
        part = document.get("properties", {}).get(name)
        return part if isinstance(part, dict) else {}

    def _learn_format(self, run: Run) -> bool:
        """Learn the kind of the files whose kind nothing suggested, or else that a text
        must be JSON.
        """
        for suffix, error in _FORMATS.items():
            if not error.search(run.written):
                continue
            for place, text in self.texts.items():
                if text.endswith(_UNKNOWN_KIND):
                    self.texts[place] = f"{_name_of(place)}.{suffix}"
                    return True
        documents = self._json_documents()
        lines = filter(_FORMATS["json"].search, run.written.splitlines())
        words = {word for line in lines for word in re.findall(r"[\w-]+", line)}
        for place, _ in _texts_at_places(run.case.arguments):
            is_named = words & {place[0], f"--{place[0].replace('_', '-')}"}
            if documents and is_named and place not in self.texts:
                self.texts[place] = documents[0].decode()
                return True
        return False

    def _learn_contents(self, run: Run) -> bool:
        """Add the files that the source looks for to the directories of the call."""
        for _, text in _texts_at_places(run.case.arguments):
            if text in self.directories and text not in self.filled:
                self.filled.add(text)
                modules = [*read_modules(self.subject.script)]
                document = document_with_members(modules)
                self.directories[text] |= files_for(read_literals(modules), document)
                return True
        return False

    def _learn_document(self, run: Run) -> bool:
        """Go on to the next JSON document, if the call read one."""
        made = [path for path in run.made if path.endswith(JSON_SUFFIXES)]
        if not made:
            return False
        self.failed_documents += 1
        return self.failed_documents < len(self._json_documents())

    def _json_documents(self) -> Sequence[bytes]:
        if self.documents is None:
            modules = [*read_modules(self.subject.script)]
            self.documents = json_documents(modules, self.subject.instructions)
        return self.documents


def _texts_at_places(arguments: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yield each text of *arguments*, and of their lists, with its place."""
    for name, value in arguments.items():
        if isinstance(value, str):
            yield (name, None), value
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, str):
                    yield (name, index), item


def _text_at(place: Place, run: Run) -> str:
    return dict(_texts_at_places(run.case.arguments))[place]


def _places_in(lines: Sequence[str], run: Run) -> list[Place]:
    """Return the places of *run* whose text occurs in one of *lines*."""
    found = []
    for place, text in _texts_at_places(run.case.arguments):
        if not text:
            continue
        word = re.compile(rf"(?<![\w.-]){re.escape(text)}(?![\w.-])")
        if any(map(word.search, lines)):
            found.append(place)
    return found


def _name_of(place: Place) -> str:
    name, index = place
    if index is None:
        return name
    return f"{name}_{index + 1}"
