"""Learn from a failed call what its script expects: a number, a file or a directory
instead of a made-up text, a file inside a directory, another JSON document, a further
option, or a repository.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from skillruntime.compatibility.sampling import samples
from skillruntime.derive.command_line import CommandLine
from skillruntime.testing.skill_tests.hindrances import MISSING_FILE, NO_DIRECTORY
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
from skillruntime.testing.skill_tests.inputs.usage_words import usage_words
from skillruntime.testing.skill_tests.subject import Subject

if TYPE_CHECKING:
    from skillruntime.testing.skill_tests.runs import Run

__all__ = ["Lessons", "asks_for_repository"]

Place = tuple[str, int | None]
"""A parameter whose value is a text, or an item of one whose value is a list of
texts.
"""

_NUMBER = "1"
_NOT_A_NUMBER = re.compile(
    r"(?:invalid literal for int\(\)|could not convert string to float|"
    r"invalid (?:int|float|number)|not a (?:valid )?(?:integer|number))"
    r"[^'\n]{0,80}'([^'\n]{1,80})'"
)
"""The errors of `int` and `float`, and of programs in similar words."""

_NOT_A_REPOSITORY = re.compile(
    r"\bnot (?:a|in a|inside a) git repo(?:sitory)?\b", re.IGNORECASE
)
_ASKS = re.compile(r"\b(?:missing|required?s?|needs?|must|provide|specify)\b", re.I)
_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]{0,60}")

_FILE_IN_A_LINE = re.compile(r"(?<![\w.-])[\w-]{1,60}\.[A-Za-z]\w{1,5}\b")
_LONGEST_SEGMENT = 100
_MOST_FILES = 40
"""The most files of a directory to which more are added."""

_LONGEST_MESSAGE = 8_000
_LONGEST_LINE = 500

_FORMATS = {
    "json": re.compile(
        r"JSONDecodeError|Expecting value: line|not valid JSON|in JSON at"
    ),
    "pdf": re.compile(r"\bPdf\w{0,40}Error|EOF marker not found|PDFSyntaxError"),
    "png": re.compile(r"UnidentifiedImageError|cannot identify image"),
    "xml": re.compile(
        r"xml\.[\w.]{0,40}ParseError|ExpatError|XMLSyntaxError|not well-formed"
    ),
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
    """What the failed calls of *subject* have shown about its arguments and files."""

    subject: Subject
    texts: dict[Place, str] = field(default_factory=dict)
    """The texts that replace made-up ones."""

    numbers: set[Place] = field(default_factory=set)
    """The places that take a number."""

    needed: dict[str, Any] = field(default_factory=dict)
    """The arguments that every call needs, although the contract does not say so."""

    directories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """The files of each directory that is made, by the directory's name."""

    filled: set[str] = field(default_factory=set)
    """The directories that have the files for which the source looks."""

    needs_repository: bool = False
    """Whether the workspace of a call that asks for a Git repository becomes one."""

    may_need_repository: bool = True
    """Whether it can still be learned that the workspace must be one."""

    tried_documents: int = 0
    """How many of the subject's JSON documents were tried. JSON files have the last of
    these; after all were refused, they are plain made files again.
    """

    def for_one_call(self) -> Lessons:
        """Return lessons that can learn more, while these stay as they are. They learn
        no repository: a call is made again with the first lessons, and the repeated
        call must be the same.
        """
        files = {name: dict(files) for name, files in self.directories.items()}
        return replace(
            self,
            texts=dict(self.texts),
            numbers=set(self.numbers),
            needed=dict(self.needed),
            directories=files,
            filled=set(self.filled),
            may_need_repository=False,
        )

    def applied_to(self, case: Case, *, kept: Container[str]) -> Case:
        """Return *case* with the known text at each place where the contract accepts
        it, except where the text of *case* is one of *kept*.
        """
        is_valid = self.subject.contract.input.is_valid
        arguments = dict(case.arguments)
        for name, value in self.needed.items():
            changed = {name: value, **arguments}
            if is_valid(changed):
                arguments = changed
        for place, text in self.texts.items():
            if dict(_texts_at_places(arguments)).get(place, text) in kept:
                continue
            changed = _with_text(arguments, place, text)
            if is_valid(changed):
                arguments = changed
        if arguments == case.arguments:
            return case
        return replace(case, arguments=arguments, is_invented=True)

    def document_for(self, path: str) -> bytes | None:
        """Return the document for the file *path*; None if it is not a JSON file, or if
        the plain made file is used.
        """
        if self.tried_documents == 0 or not path.endswith(JSON_SUFFIXES):
            return None
        documents = self.subject.json_documents
        if self.tried_documents > len(documents):
            return None
        return documents[self.tried_documents - 1]

    def learn_from(self, run: Run) -> bool:
        """Record what *run*, which failed, shows; return whether something is recorded
        that was not tried before.

        What a message says plainly comes first, and guesses come last: a text that the
        message names is a file before it is a directory.
        """
        failed = _Failed.of(run)
        lessons = (
            self._learn_number,
            self._learn_repository,
            self._learn_words,
            self._learn_needed,
            self._learn_directories,
            self._learn_path_below,
            self._learn_files,
            self._learn_format,
            self._learn_file_of_directory,
            self._fill_directory,
            self._go_to_next_document,
        )
        return any(learn(failed) for learn in lessons)

    def _learn_number(self, failed: _Failed) -> bool:
        """Learn the place of a text that the script cannot read as a number: the first
        one, because several parameters may have the same made-up text.
        """
        refused = {
            match[1] for line in failed.lines for match in _NOT_A_NUMBER.finditer(line)
        }
        for place, text in failed.places.items():
            if text in refused and place not in self.numbers:
                self.numbers.add(place)
                self.texts[place] = _NUMBER
                return True
        return False

    def _learn_repository(self, failed: _Failed) -> bool:
        if self.needs_repository or not self.may_need_repository:
            return False
        self.needs_repository = failed.asks_for_repository
        return self.needs_repository

    def _learn_words(self, failed: _Failed) -> bool:
        """Learn from the usage line that the script writes which words it needs, if the
        call had no words but those of flags.
        """
        line = self.subject.contract.run.get("command_line")
        if line is None:
            return False
        parameters = CommandLine.from_dict(line).parameters
        places = [each for each in parameters if not each.flag]
        known = failed.case.arguments.keys() | self.needed.keys()
        if not places or any(each.name in known for each in places):
            return False
        words = usage_words(failed.lines, self.subject.script.name)
        for place in places:
            if place.takes in ("values", "rest") and words:
                self.needed[place.name] = words
                break
            if words and not words[0].startswith("-"):
                self.needed[place.name] = words.pop(0)
        return any(each.name in self.needed for each in places)

    def _learn_needed(self, failed: _Failed) -> bool:
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
        for asking in filter(_ASKS.search, failed.lines):
            for flag in _FLAG.findall(asking):
                name = flags.get(flag, "")
                is_sent = name in failed.case.arguments or name in self.needed
                if name and not is_sent:
                    self.needed[name] = self._sample_of(name)
                    has_learnt = True
        return has_learnt

    def _sample_of(self, name: str) -> Any:
        """Return a likely value for the parameter *name*, not 0 or empty if possible."""
        likely = samples(self._property(name), 3)
        return next(filter(None, likely), likely[0])

    def _learn_directories(self, failed: _Failed) -> bool:
        """Learn which texts must name a directory, according to the message."""
        has_learnt = False
        lines = filter(NO_DIRECTORY.search, failed.lines)
        for place in _places_in(lines, failed.places):
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

    def _learn_path_below(self, failed: _Failed) -> bool:
        """Learn that the script looks for a file below one that the call names: in
        ``report/SKILL.md not found`` the text ``report`` means a directory.
        """
        for line in filter(MISSING_FILE.search, failed.lines):
            for place, text in failed.places.items():
                directory = text.rstrip("/")
                if not directory:
                    continue
                below = rf"(?<![\w.-]){re.escape(directory)}/([\w./-]{{0,200}}\w)"
                found = re.search(below, line)
                if found and self._add_file(place, found[1]):
                    return True
        return False

    def _learn_files(self, failed: _Failed) -> bool:
        """Learn which texts must name a file, according to the message."""
        has_learnt = False
        lines = filter(MISSING_FILE.search, failed.lines)
        for place in _places_in(lines, failed.places):
            is_known = place in self.texts or place in self.numbers
            if not is_known and not is_file_name(failed.places[place]):
                self.texts[place] = self._file_name(place, failed.places[place])
                has_learnt = True
        return has_learnt

    def _file_name(self, place: Place, text: str) -> str:
        """Return the name of a file for *place*, of the kind that its *text* suggests,
        else the name or the description of the parameter, else the name of the tool.
        """
        description = self._property(place[0]).get("description", "")
        texts = (text, place[0], str(description), self.subject.name)
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

    def _learn_format(self, failed: _Failed) -> bool:
        """Learn the kind of the files whose kind nothing suggested, or else that a text
        must be JSON.
        """
        for suffix, error in _FORMATS.items():
            if not any(map(error.search, failed.lines)):
                continue
            for place, text in self.texts.items():
                if text.endswith(_UNKNOWN_KIND):
                    self.texts[place] = f"{_name_of(place)}.{suffix}"
                    return True
        words: set[str] = set()
        for line in filter(_FORMATS["json"].search, failed.lines):
            words.update(re.findall(r"[\w-]+", line))
        documents = self.subject.json_documents if words else ()
        for place in failed.places:
            is_named = words & {place[0], f"--{place[0].replace('_', '-')}"}
            if documents and is_named and place not in self.texts:
                self.texts[place] = documents[0].decode()
                return True
        return False

    def _learn_file_of_directory(self, failed: _Failed) -> bool:
        """Learn that the script looks for a file in a directory: in ``no SKILL.md found
        at report`` the text ``report`` means a directory. The script's own name stands
        in many messages.
        """
        known = (self.subject.script.name, *failed.places.values())
        for line in filter(MISSING_FILE.search, failed.lines):
            for match in _FILE_IN_A_LINE.finditer(line):
                if any(match[0] in text for text in known):
                    continue
                for place in self._likely_directories(line, failed.places):
                    if self._add_file(place, match[0]):
                        return True
        return False

    def _likely_directories(
        self, line: str, places: Mapping[Place, str]
    ) -> list[Place]:
        """Return the places that may name the directory that *line* is about, by the
        best reason: *line* has their texts, or their texts name directories, or
        nothing is known about them.
        """
        named = [
            each for each in _places_in([line], places) if each not in self.numbers
        ]
        if named:
            return named
        known = [place for place, text in places.items() if text in self.directories]
        if known:
            return known
        return [each for each in places if each not in self.texts][:1]

    def _add_file(self, place: Place, path: str) -> bool:
        """Add a file to the directory of *place*; return whether it was added. Parts of
        an Office document come with the others of the document.
        """
        parts = PurePosixPath(path).parts
        if ".." in parts or max(map(len, parts)) > _LONGEST_SEGMENT:
            return False
        self._make_directory(place)
        files = self.directories[_name_of(place)]
        is_there = path in files or any(name.startswith(f"{path}/") for name in files)
        is_below_a_file = any(path.startswith(f"{name}/") for name in files)
        if is_there or is_below_a_file or len(files) >= _MOST_FILES:
            return False
        unpacked = unpacked_parts(path)
        if unpacked:
            files.update(unpacked)
            return True
        data = sample_for(path, self.subject.samples)
        if data is None:
            data = made_file(path) or b"text\n"
        files[path] = data
        return True

    def _fill_directory(self, failed: _Failed) -> bool:
        """Add the files for which the source looks to a directory of the call; return
        whether there was one without them.
        """
        for text in failed.places.values():
            if text in self.directories and text not in self.filled:
                self.filled.add(text)
                self.directories[text] |= files_for(
                    self.subject.literals, self.subject.members_document
                )
                return True
        return False

    def _go_to_next_document(self, failed: _Failed) -> bool:
        """Use the next JSON document, if the call had a made JSON file; return whether
        there is one. After the last one, use the plain made file again.
        """
        if not any(path.endswith(JSON_SUFFIXES) for path in failed.made):
            return False
        documents = self.subject.json_documents
        self.tried_documents = min(self.tried_documents, len(documents)) + 1
        return self.tried_documents <= len(documents)


def asks_for_repository(run: Run) -> bool:
    """Return whether *run* failed because its workspace is not a Git repository."""
    if run.has_ended_well:
        return False
    return _Failed.of(run).asks_for_repository


@dataclass(frozen=True, slots=True)
class _Failed:
    """A failed call: the last lines that the script wrote, each cut, because an
    untrusted script may write anything; the texts of the call by their places; and the
    paths of the files that were made for it.
    """

    case: Case
    lines: list[str]
    places: dict[Place, str]
    made: frozenset[str]

    @property
    def asks_for_repository(self) -> bool:
        """Whether the script says that its workspace is not a Git repository."""
        return any(map(_NOT_A_REPOSITORY.search, self.lines))

    @classmethod
    def of(cls, run: Run) -> _Failed:
        """Return the part of *run* that may show something."""
        lines = run.written[-_LONGEST_MESSAGE:].splitlines()
        return cls(
            run.case,
            [line[:_LONGEST_LINE] for line in lines],
            dict(_texts_at_places(run.case.arguments)),
            run.made,
        )


def _texts_at_places(arguments: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yield each text of *arguments*, and of their lists, with its place."""
    for name, value in arguments.items():
        if isinstance(value, str):
            yield (name, None), value
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, str):
                    yield (name, index), item


def _with_text(arguments: Mapping[str, Any], place: Place, text: str) -> dict[str, Any]:
    """Return *arguments* with *text* at *place*, if they have a text there."""
    name, index = place
    value = arguments.get(name)
    if index is None and isinstance(value, str):
        return {**arguments, name: text}
    if index is not None and isinstance(value, list) and index < len(value):
        if isinstance(value[index], str):
            return {**arguments, name: [*value[:index], text, *value[index + 1 :]]}
    return {**arguments}


def _places_in(lines: Iterable[str], places: Mapping[Place, str]) -> list[Place]:
    """Return the places whose text occurs as a word in one of *lines*."""
    read = [*lines]
    found = []
    for place, text in places.items():
        word = re.compile(rf"(?<![\w.-]){re.escape(text)}(?![\w.-])")
        if text and any(map(word.search, read)):
            found.append(place)
    return found


def _name_of(place: Place) -> str:
    """Return the name for a file or directory of *place*. ``workspace`` has another
    meaning among the files of a skill's tests.
    """
    name, index = place
    plain = re.sub(r"[^\w-]", "_", name)[:_LONGEST_SEGMENT]
    if index is not None:
        return f"{plain}_{index + 1}"
    if plain == "workspace":
        return f"{plain}_1"
    return plain
