"""Copy a skill's files privately before the approval, so that exactly the approved
files run.

Otherwise anyone who can write to the skill's directory could exchange a script between
the approval and its start. So the files are opened once, copied to a directory that
only the host can write to, and the copy is approved and run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from skillruntime.catalog.file_opening import open_inside
from skillruntime.catalog.skill import Skill
from skillruntime.errors import InvalidSkillError, ToolNotAvailableError
from skillruntime.runtime.files.temporary import make_temporary, remove_soon

if TYPE_CHECKING:
    from skillruntime.contract.contract import Contract

__all__ = ["MAX_BYTES", "MAX_FILES", "SkillCopy", "copy_skill", "safe_name"]

MAX_FILES = 20_000
"""The most files and directories of a skill whose scripts run in a sandbox."""

MAX_BYTES = 512 * 1024**2
"""The most bytes of these files together."""

_MAX_DEPTH = 32
# Compiled files would run instead of the source that a person can read.
_LEFT_OUT = frozenset({".git", ".hg", ".svn", "__pycache__"})
_COMPILED = (".pyc", ".pyo")
_CHUNK = 1024**2


@dataclass(frozen=True, slots=True)
class SkillCopy:
    """The copy of one skill: its directory, and the digest (SHA-256) of its files and
    of the contract in force.
    """

    directory: Path
    digest: str
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The SHA-256 of each file by its path."""

    def require(self, pinned: Mapping[str, str], name: str) -> None:
        """Check that every file is in *pinned*, the locked or installed files of the
        skill *name*.

        Raises:
            InvalidSkillError: a file was changed or added.
        """
        changed = [
            path for path, digest in self.files.items() if pinned.get(path) != digest
        ]
        if changed:
            raise InvalidSkillError(
                f"The skill {name!r} is refused: not as it was locked or installed: "
                f"{', '.join(changed[:3])}",
                suggested_action="Continue without this skill",
            )

    def script(self, name: str) -> Path:
        """Return the path of the script *name* in the copy.

        Raises:
            InvalidSkillError: the copy has no such regular file; links are not copied.
        """
        path = Path(os.path.normpath(self.directory / name))
        if not path.is_relative_to(self.directory):
            raise InvalidSkillError(
                f"The contract's run.script {name!r} lies outside the skill"
            )
        if not path.is_file():
            raise InvalidSkillError(
                f"The contract's run.script {name!r} is not there, or is reached "
                "through a symbolic link",
                suggested_action="Tell the user that the skill is incomplete; no other "
                "arguments will help",
            )
        return path

    def __enter__(self) -> SkillCopy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        remove_soon(self.directory.parent)


def copy_skill(skill: Skill, contract: Contract) -> SkillCopy:
    """Return a copy of the regular files of *skill*; leaving its ``with`` block removes
    the copy.

    Raises:
        InvalidSkillError: its directory was replaced since it was activated, or it has
            too many files or bytes.
        ToolNotAvailableError: the copy cannot be written (for example because the disk
            is full); no part of it is left.
    """
    import hashlib  # OpenSSL: not needed for an import

    try:
        parent = make_temporary()
    except OSError as error:
        raise _not_written(error) from error
    try:
        directory = parent / safe_name(skill.name)
        directory.mkdir()
        total = hashlib.sha256()
        files = {}
        for path, mode, digest in sorted(_copied(skill, directory)):
            # A NUL cannot occur in a path, so different lists of files give different
            # inputs.
            total.update(f"{path}\0{mode}{digest}\n".encode("utf-8", "surrogateescape"))
            files[path] = digest
        # The contract in force may be older than the file: it was read at the first
        # call.
        document = json.dumps(contract.to_dict(), sort_keys=True, default=repr)
        total.update(f"\0{contract.name}\0{document}".encode("utf-8", "surrogatepass"))
        return SkillCopy(directory, total.hexdigest(), files)
    except BaseException as error:
        remove_soon(parent)
        if isinstance(error, OSError):
            raise _not_written(error) from error
        raise


def _copied(skill: Skill, target: Path) -> Iterator[tuple[str, str, str]]:
    """Copy each file; yield its path, ``x`` if it is executable, else ``-``, and the
    SHA-256 of its bytes.
    """
    import hashlib  # OpenSSL: not needed for an import

    source = str(skill.directory)
    left = MAX_BYTES
    # List all names before copying the first file: there may be too many.
    for path in list(_files(source, skill.name)):
        try:
            descriptor = open_inside(source, path, identity=skill.identity)
        except FileNotFoundError:
            continue  # removed meanwhile
        except OSError as error:
            raise InvalidSkillError(
                f"The file {path!r} of the skill {skill.name!r} cannot be read: "
                f"{error.strerror}",
                suggested_action="Tell the user; the skill's files changed while they "
                "were read",
            ) from None
        with os.fdopen(descriptor, "rb", buffering=0) as opened:
            status = os.fstat(descriptor)
            if status.st_size > left:  # so that a sparse file of 10 GB is not read
                raise _too_large(skill.name)
            mark, mode = "-", 0o644
            if status.st_mode & 0o111:
                mark, mode = "x", 0o755
            digest = hashlib.sha256()
            written = target / path
            written.parent.mkdir(parents=True, exist_ok=True)
            with written.open("xb", buffering=0) as file:
                while chunk := opened.read(_CHUNK):
                    left -= len(chunk)
                    if left < 0:  # it grew meanwhile
                        raise _too_large(skill.name)
                    digest.update(chunk)
                    file.write(chunk)
                os.fchmod(file.fileno(), mode)
        yield path, mark, digest.hexdigest()


def _files(directory: str, name: str) -> Iterator[str]:
    """Yield the paths of the regular files below *directory*; links are skipped.

    Raises:
        InvalidSkillError: the skill *name* has too many entries of any kind.
    """
    pending = [("", 0)]
    count = 0
    while pending:
        prefix, depth = pending.pop()
        path = f"{directory}/{prefix}"
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                count += 1  # empty files and directories too: each takes time
                if count > MAX_FILES:
                    raise _too_large(name)
                if entry.name in _LEFT_OUT or entry.name.endswith(_COMPILED):
                    continue
                # These checks only choose the files to open. Opening does not follow
                # links, even if the entry was replaced in the meantime.
                if entry.is_dir(follow_symlinks=False) and depth < _MAX_DEPTH:
                    pending.append((f"{prefix}{entry.name}/", depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    yield prefix + entry.name


def safe_name(name: str) -> str:
    """Return *name* as the name of a directory. If characters must be replaced, a
    digest is added, so that different names stay different.
    """
    import hashlib  # OpenSSL: not needed for an import

    safe = ""
    for letter in name[:50]:
        is_safe = letter.isalnum() or letter in "-_"
        safe += letter if is_safe else "-"
    if safe == name:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{safe}-{digest[:8]}"


def _not_written(error: OSError) -> ToolNotAvailableError:
    return ToolNotAvailableError(
        "The skill's files cannot be copied to run: "
        f"{error.strerror or type(error).__name__}",
        suggested_action="Tell the user: the directory for temporary files must exist "
        "and have space",
    )


def _too_large(name: str) -> InvalidSkillError:
    return InvalidSkillError(
        f"The skill {name!r} has more than {MAX_FILES:,} files and directories, or "
        f"more than {MAX_BYTES // 1024**2} MiB: too much for a sandbox",
        suggested_action="Continue without this skill; its author can make it smaller",
    )
