"""Load skills that are not in a directory: skills of a host's own source, and skills
written in code.

Law: their files are copied to a private directory of this process, and read only from
there. Limits, digests, lockfiles, sandboxes and trust therefore apply to them as to any
directory of skills.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from skillruntime.catalog.discovery.summary import is_usable
from skillruntime.catalog.file_opening import write_inside
from skillruntime.catalog.resources import MAX_RESOURCE_BYTES, MAX_RESOURCES
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["MAX_SKILL_BYTES", "SkillCopies", "SkillSource", "write_skill"]

MAX_SKILL_BYTES = 64 * 1024 * 1024
"""The maximum total size of one skill's files in bytes."""


class SkillSource(Protocol):
    """A source of skills, such as a database, an object store or a server. `discover`
    accepts it like a directory.
    """

    def skills(self) -> Mapping[str, Mapping[str, str]]:
        """Return the files of each skill by its name, as a mapping from paths to
        editions.

        An edition is a digest, a time or a version, and changes with the file. Every
        skill has the file ``SKILL.md``.
        """
        ...

    def read(self, skill: str, path: str) -> bytes:
        """Return the bytes of one file. If it raises any exception, only this skill is
        left out.
        """
        ...


class SkillCopies:
    """The files of *source* in a private directory; files whose edition did not change
    are not read again.
    """

    def __init__(self, source: SkillSource) -> None:
        self.directory: str = _private_directory()
        self._source = source
        self._kept: dict[str, dict[str, tuple[str, int]]] = {}

    def update(self) -> list[Diagnostic]:
        """Bring the directory up to date; return a diagnostic for each skill that could
        not be read.

        The earlier copy of such a skill stays. If the source cannot list its skills,
        the error is raised only the first time.
        """
        findings: list[Diagnostic] = []
        try:
            listed = self._source.skills()
        except Exception as error:
            if not self._kept:
                raise
            return [_unreadable(self.directory, error)]
        for name in self._kept.keys() - listed.keys():
            del self._kept[name]
            shutil.rmtree(f"{self.directory}/{name}", ignore_errors=True)
        for name, files in listed.items():
            try:
                self._copy(name, files)
            except Exception as error:
                # An error in the host's own code must not hide the other skills.
                findings.append(_unreadable(f"{self.directory}/{name}", error))
        return findings

    def _copy(self, name: str, files: Mapping[str, str]) -> None:
        before = self._kept.get(name, {})
        if not is_usable(name):
            raise ValueError("this is not a usable name")
        if len(files) > MAX_RESOURCES:
            raise ValueError(f"it has more than {MAX_RESOURCES:,} files")
        now: dict[str, tuple[str, int]] = {}
        for path, edition in files.items():
            if path in before and before[path][0] == edition:
                now[path] = before[path]
        total = sum(size for _, size in now.values())
        fresh: dict[str, bytes] = {}
        # Read all files before writing the first: if the source fails, the skill stays
        # unchanged.
        for path in files.keys() - now.keys():
            data = self._source.read(name, path)
            fresh[path] = data
            now[path] = (files[path], len(data))
            total += len(data)
            if len(data) > MAX_RESOURCE_BYTES or total > MAX_SKILL_BYTES:
                raise ValueError(f"it is too large with {path!r}")
        for path, data in fresh.items():
            write_inside(self.directory, f"{name}/{path}", data)
        for path in before.keys() - now.keys():
            with suppress(OSError):
                os.unlink(f"{self.directory}/{name}/{path}")
        self._kept[name] = now


def _unreadable(path: str, error: Exception) -> Diagnostic:
    message = f"it cannot be read from its source: {type(error).__name__}: {error}"
    return Diagnostic("source-unreadable", Severity.ERROR, path, message)


def write_skill(
    name: str, description: str, instructions: str, files: Mapping[str, str | bytes]
) -> str:
    """Write a skill to a private directory, and return the path of its SKILL.md.

    Raises:
        ValueError: *name* is not usable, or the path of a file is outside the skill.
    """
    if not is_usable(name):
        raise ValueError(
            f"{name!r:.80} is not a usable name: use lowercase letters, digits and "
            "hyphens"
        )
    # A JSON string is also a YAML string (YAML 1.2.2, section 1.3).
    skill_file = (
        "---\n"
        f"name: {json.dumps(name)}\n"
        f"description: {json.dumps(description)}\n"
        "---\n"
        f"{instructions}\n"
    )
    directory = _private_directory()
    for path, content in {**files, "SKILL.md": skill_file}.items():
        data = content.encode("utf-8") if isinstance(content, str) else content
        try:
            write_inside(directory, f"{name}/{path}", data)
        except OSError as error:
            raise ValueError(
                f"the file {path!r:.80} cannot be written: {error.strerror}"
            ) from None
    return f"{directory}/{name}/SKILL.md"


def _private_directory() -> str:
    """Return a new directory that only this user can access; it is removed when this
    process ends.
    """
    directory = os.path.realpath(tempfile.mkdtemp(prefix="skillruntime-"))
    atexit.register(_remove, directory, os.getpid())
    return directory


def _remove(directory: str, maker: int) -> None:
    if os.getpid() == maker:  # a forked process may end before its parent
        shutil.rmtree(directory, ignore_errors=True)
