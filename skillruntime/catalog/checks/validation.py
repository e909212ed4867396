"""Finds the skills below a directory, checks each, and returns one `Validation` for
each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from skillruntime.catalog.checks.autofix import fix
from skillruntime.catalog.checks.hidden_text import hidden_text_of_files
from skillruntime.catalog.checks.lint import chains, is_valid, lint
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
_MAX_DEPTH = 6
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
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(
            "validate takes the path of a skill or of a directory of skills; got "
            f"{path!r:.80}"
        )
    start = absolute(path)
    if os.path.basename(start).lower() == "skill.md" and not os.path.isdir(start):
        return [_validate_file(start, count)]
    validations = [
        _validate_file(file, count)
        for file in progress(list(_skill_files(start, _MAX_DEPTH)))
    ]
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
        message = f"it cannot be read: {error.strerror or error}"
        unreadable = Diagnostic("skill-unreadable", Severity.ERROR, file, message)
        return Validation(file, (unreadable,))
    # A link may lead to a contract too, which is not a resource: no model reads it.
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


def _skill_files(
    directory: str, depth: int, above: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yield the SKILL.md files in and below *directory*; *above* are the real paths of
    its parents.
    """
    real = os.path.realpath(directory)
    if real in above:  # a link to one of its own parents
        return
    for name in ("SKILL.md", "skill.md"):  # the order of the reference
        if os.path.lexists(f"{directory}/{name}"):
            yield f"{directory}/{name}"
            return
    if depth == 0:
        return
    try:
        children = sorted(os.scandir(directory), key=lambda child: child.name)
    except OSError:
        return
    for child in children:
        # As discovery skips them; a copy of a skill in there is not the author's.
        if child.name in (".git", "node_modules", "__pycache__"):
            continue
        try:
            is_directory = child.is_dir()
        except OSError:
            # A link into a directory that cannot be read: the finding is about its
            # SKILL.md.
            yield f"{child.path}/SKILL.md"
            continue
        if is_directory:
            yield from _skill_files(child.path, depth - 1, (*above, real))
