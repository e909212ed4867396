"""Find the skills below a directory, check each, and return one `Validation` for
each.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from skillruntime.catalog.checks.autofix import fix
from skillruntime.catalog.checks.hidden_text import hidden_text_of_files
from skillruntime.catalog.checks.lint import chains, is_valid, lint
from skillruntime.catalog.directory_walk import is_loop
from skillruntime.catalog.discovery.discovery import MAX_DIRECTORIES
from skillruntime.catalog.discovery.root_snapshot import absolute
from skillruntime.catalog.file_opening import read_regular
from skillruntime.catalog.frontmatter.frontmatter import cut
from skillruntime.catalog.resources import (
    Resource,
    list_files,
    list_resources,
    read_bytes,
)
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import ResourceNotFoundError

__all__ = ["Validation", "fix_skill", "validate"]

MAX_BYTES = 32 * 1024 * 1024
_MAX_DEPTH = 11
# Discovery skips these directories too; a copy of a skill there is not the author's.
_SKIPPED = frozenset({".git", "node_modules", "__pycache__"})
_NOT_TEXT = (
    "image/",
    "audio/",
    "video/",
    "font/",
    "application/zip",
    "application/gzip",
    "application/pdf",
)


@dataclass(frozen=True, slots=True)
class Validation:
    """The diagnostics of one skill; ``path`` is the path of its SKILL.md, or where it
    should be.
    """

    path: str
    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        """Whether the skill is valid according to the format."""
        return is_valid(self.diagnostics)


def validate(
    path: str | os.PathLike[str],
    *,
    count: Callable[[str], int] | None = None,
    progress: Callable[[list[str]], Iterable[str]] = iter,
) -> list[Validation]:
    """Return the diagnostics of the skill at *path*, or of every skill below it, sorted
    by path.

    *path* is a skill's directory, its SKILL.md, or a directory of skills. *count*
    counts tokens. *progress* receives the list of files and yields them again, for a
    progress bar.

    Raises:
        ValueError: *path* is empty.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(
            "validate takes the path of a skill or of a directory of skills; got "
            f"{path!r:.80}"
        )
    start = absolute(path)
    if os.path.basename(start).lower() == "skill.md" and not os.path.isdir(start):
        return [_validate_file(start, count)]
    files, are_all = _skill_files(start)
    validations = [_validate_file(file, count) for file in progress(files)]
    if not are_all:
        message = f"only the first {MAX_DIRECTORIES:,} directories are searched"
        cut_off = Diagnostic("too-many-directories", Severity.WARNING, start, message)
        validations.append(Validation(start, (cut_off,)))
    if validations:
        return validations
    if os.path.isdir(start):
        message = "no SKILL.md is in this directory or below it"
        hint = "`skillruntime new NAME` writes a skill"
    elif os.path.exists(start):
        message = "this is a file"
        hint = f"give the skill's directory: {os.path.dirname(start)}"
    else:
        message = "there is no such directory"
        hint = "correct the path"
    missing = Diagnostic("skill-missing", Severity.ERROR, start, message, hint=hint)
    return [Validation(start, (missing,))]


def fix_skill(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Correct the mechanical errors in the SKILL.md at *path*, and return what was
    done; the write is atomic.
    """
    file = os.fsdecode(path)
    data = read_regular(file, MAX_BYTES)
    directory = os.path.dirname(os.path.abspath(file))
    fixed = fix(data, os.path.basename(directory))
    if fixed.done:
        # The original must survive a crash during the write.
        temporary = f"{file}.{os.getpid()}.new"
        with open(temporary, "wb") as target:
            target.write(fixed.data)
        # `os.replace` would otherwise reset the mode of the file to that of the
        # temporary one.
        os.chmod(temporary, os.stat(file).st_mode & 0o7777)
        os.replace(temporary, file)
    return fixed.done


def _validate_file(file: str, count: Callable[[str], int] | None) -> Validation:
    directory = os.path.dirname(file)
    try:
        data = read_regular(file, MAX_BYTES)
    except OSError as error:
        reason = error.strerror or error
        if os.path.islink(file):  # the system says "too many levels"
            reason = "it is a symbolic link"
        message = f"it cannot be read: {reason}"
        unreadable = Diagnostic("skill-unreadable", Severity.ERROR, file, message)
        return Validation(file, (unreadable,))
    # A link may also lead to a contract, which is not a resource, because models do not
    # read it.
    resources = list_resources(directory)
    files = {resource.path for resource in list_files(directory)} | {"SKILL.md"}
    name = os.path.basename(directory)
    findings = lint(data, name, path=file, files=files, count=count)
    pages = [page for page in resources if page.media_type == "text/markdown"]
    findings += chains(cut(data).body, _contents(directory, pages), files)
    # Not at the top: contracts import the schema engines, and most skills have no
    # contract.
    from skillruntime.catalog.contracts.contract_files import read_contract_files

    findings += read_contract_files(directory, name).diagnostics
    findings += hidden_text_of_files(_contents(directory, resources))
    return Validation(file, tuple(findings))


def _contents(
    directory: str, resources: list[Resource]
) -> Iterator[tuple[Resource, str, bytes]]:
    """Yield each file with its path and its bytes; a file that cannot be read now is
    left out.
    """
    for resource in resources:
        media_type = resource.media_type
        # An SVG is an image whose text a model reads.
        if media_type.startswith(_NOT_TEXT) and media_type != "image/svg+xml":
            continue
        with suppress(ResourceNotFoundError):
            data = read_bytes(directory, resource.path)
            yield resource, f"{directory}/{resource.path}", data


def _skill_files(top: str) -> tuple[list[str], bool]:
    """Return the SKILL.md files in and below *top*, sorted by path, and whether the
    limit on directories admitted all of them.

    As discovery does, search the directories behind links last: a link may lead to a
    whole disk.
    """
    found: list[str] = []
    pending = deque([(top, 0)])
    links: deque[tuple[str, int]] = deque()
    number = 0
    while pending or links:
        directory, depth = (pending or links).popleft()
        number += 1
        if number > MAX_DIRECTORIES:
            return sorted(found, key=_by_directory), False
        file = _skill_file_in(directory)
        if file is not None:
            found.append(file)
        elif depth < _MAX_DEPTH:
            for child in _children_of(directory):
                try:
                    is_directory = child.is_dir()
                except OSError:
                    # A link into a directory that cannot be read: the finding is about
                    # its SKILL.md.
                    found.append(f"{child.path}/SKILL.md")
                    continue
                if not is_directory:
                    continue
                if not child.is_symlink():
                    pending.append((child.path, depth + 1))
                elif not is_loop(child.path):
                    links.append((child.path, depth + 1))
    return sorted(found, key=_by_directory), True


def _by_directory(file: str) -> list[str]:
    # As a walk visits them: "tdd-new/SKILL.md" would sort before "tdd/SKILL.md".
    return file.split("/")


def _skill_file_in(directory: str) -> str | None:
    for name in ("SKILL.md", "skill.md"):  # the order of the reference
        if os.path.lexists(f"{directory}/{name}"):
            return f"{directory}/{name}"
    return None


def _children_of(directory: str) -> list[os.DirEntry[str]]:
    """Return the entries of *directory* that may contain skills of the author's."""
    try:
        with os.scandir(directory) as children:
            return [child for child in children if child.name not in _SKIPPED]
    except OSError:
        return []
