"""List and read the files of a skill.

Law: for any path, and any links in the skill, bytes from outside its directory are
never returned.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain, islice

from skillruntime.catalog.file_opening import (
    FileTooLargeError,
    open_inside,
    read_inside,
)
from skillruntime.catalog.meant_path import meant_path
from skillruntime.catalog.visibility import is_visible
from skillruntime.errors import ResourceNotFoundError

__all__ = [
    "CONTRACT_FILES",
    "MAX_RESOURCES",
    "MAX_RESOURCE_BYTES",
    "SCRIPT_SUFFIXES",
    "Resource",
    "decode_text",
    "digest_of_code",
    "find_directory",
    "find_file",
    "is_text",
    "list_files",
    "list_resources",
    "list_scripts",
    "may_have_callables",
    "media_type",
    "read_bytes",
]

MAX_RESOURCES = 2_000
"""The most files of one skill that are listed."""

MAX_RESOURCE_BYTES = 10 * 1024 * 1024
"""The most bytes of one file that can be read; a script may open larger files
itself.
"""

CONTRACT_FILES = frozenset(
    {"contract.json", "contract.yaml", "contract.yml", "contracts", "descriptor.json"}
)
"""The files and the directory that say how a skill is called; read by `contract_files`,
not listed as resources.
"""

SCRIPT_SUFFIXES = (".py", ".sh", ".bash", ".js", ".mjs", ".cjs")
"""The files whose command line can be derived."""

# Next to SKILL.md only these are code; below `scripts/` and `contracts/` every file is.
_CODE_SUFFIXES = (
    ".py",
    ".sh",
    ".bash",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".pl",
    ".rb",
    ".so",
    ".pth",
    ".json",
    ".toml",
)
_SKIPPED = frozenset(
    {".git", ".hg", ".svn", "__pycache__", "node_modules", ".DS_Store", ".venv"}
)
_NOT_TEXT = (b"%PDF-", b"PK\x03\x04")  # ISO 32000-1, 7.5.2; APPNOTE.TXT, 4.3.7
_MAX_DEPTH = 8
_MAX_ENTRIES = 20_000  # of a skill that are examined for a listing
_MEDIA_TYPES = {
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".py": "text/x-python",
    ".sh": "application/x-sh",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".ts": "text/typescript",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
    ".xml": "application/xml",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".html": "text/html",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".mp3": "audio/mpeg",
    ".wav": "audio/wav",
    ".mp4": "video/mp4",
    ".ttf": "font/ttf",
    ".otf": "font/otf",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".pdf": "application/pdf",
    ".zip": "application/zip",
    ".gz": "application/gzip",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}


@dataclass(frozen=True, slots=True)
class Resource:
    """A file of a skill: its path from the skill's directory, with ``/``, its size, and
    its media type.
    """

    path: str
    bytes: int
    media_type: str


def list_resources(directory: str) -> list[Resource]:
    """Return the files that a skill's instructions may refer to: as `list_files`, but
    without its contracts.
    """
    return [
        file
        for file in list_files(directory)
        if file.path.partition("/")[0] not in CONTRACT_FILES
    ]


def list_scripts(directory: str) -> list[Resource]:
    """Return those files of `list_resources` whose command line can be derived."""
    scripts: list[Resource] = []
    for path, entry in _files_below(directory):
        is_script = path.endswith(SCRIPT_SUFFIXES)
        if is_script and path.partition("/")[0] not in CONTRACT_FILES:
            scripts += _resources_of(path, entry)
    return sorted(scripts, key=lambda resource: resource.path)


def list_files(directory: str) -> list[Resource]:
    """Return the regular files below *directory*, by path, except SKILL.md and the
    files of version control.

    At most `MAX_RESOURCES` files are listed, and at most 20,000 files and directories
    are looked at. Symbolic links, and names with hidden characters or line ends, are
    not listed.
    """
    resources: list[Resource] = []
    for path, entry in _files_below(directory):
        resources += _resources_of(path, entry)
    return sorted(resources, key=lambda resource: resource.path)


def _resources_of(path: str, entry: os.DirEntry[str]) -> list[Resource]:
    """Return the file, or nothing if it no longer exists."""
    try:
        size = entry.stat(follow_symlinks=False).st_size
    except OSError:
        return []
    return [Resource(path, size, media_type(path))]


def _files_below(directory: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the path of each file that `list_files` lists, and its entry."""
    # Level by level, so that the limit cuts off the deepest files, and the files beside
    # SKILL.md are always listed.
    found = 0
    level = [("", directory)]
    left = _MAX_ENTRIES
    for _ in range(_MAX_DEPTH):
        deeper: list[tuple[str, str]] = []
        for prefix, path in level:
            children = _children_of(path, left)
            left -= len(children)
            for child in children:
                name = child.name
                if name in _SKIPPED or (not prefix and name.lower() == "skill.md"):
                    continue
                # A listing for a model has one file on each line.
                if not is_visible(name) or "\n" in name or "\t" in name:
                    continue
                # A link is not listed, because it is not read either.
                with suppress(OSError):
                    if child.is_dir(follow_symlinks=False):
                        deeper.append((f"{prefix}{name}/", child.path))
                    elif child.is_file(follow_symlinks=False):
                        found += 1
                        yield prefix + name, child
                if found == MAX_RESOURCES:
                    return
        level = deeper
        if not level or left == 0:
            return


def _children_of(path: str, most: int) -> list[os.DirEntry[str]]:
    """Return the first entries of a directory by name; none if it cannot be listed, so
    that it hides its own files and no others.
    """
    try:
        with os.scandir(path) as entries:
            children = list(islice(entries, most))
            # A directory of a million files takes a second, and not all memory.
            others = next(entries, None)
            if others is not None:
                rest = chain(children, [others], entries)
                return nsmallest(most, rest, key=_name_of)
    except OSError:
        return []
    children.sort(key=_name_of)
    return children


def _name_of(entry: os.DirEntry[str]) -> str:
    return entry.name


def find_file(directory: str, path: str, names: Collection[str]) -> str | None:
    """Return the path of the file in *directory* that *path* means by `meant_path`,
    among the listed files and SKILL.md; None if it does not mean exactly one.

    *names* are the names of the skill. An exact path is returned unchanged.
    """
    with suppress(OSError, ValueError, ResourceNotFoundError):
        # Unlisted files are read by their exact path: contracts, hidden files.
        os.close(open_inside(directory, _relative(directory, path)))
        return path
    listed = {file.path for file in list_files(directory)}
    listed.add("SKILL.md")
    return meant_path(path, listed, _roots(directory, names))


def find_directory(directory: str, path: str, names: Collection[str]) -> str | None:
    """Return the directory of listed files that *path* means, ``""`` for the skill's
    own; None if it does not mean exactly one.
    """
    listed = {""}
    for file in list_resources(directory):
        parent = file.path.rpartition("/")[0]
        while parent:
            listed.add(parent)
            parent = parent.rpartition("/")[0]
    return meant_path(path, listed, _roots(directory, names))


def _roots(directory: str, names: Collection[str]) -> set[str]:
    """Return the possible prefixes of the paths of a skill's files: its names, and its
    directory.
    """
    place = os.path.abspath(directory)
    return {*names, os.path.basename(place), place, os.path.realpath(place)}


def decode_text(data: bytes, path: str) -> str:
    """Return the text of a file as it is written, hidden characters included.

    Raises:
        ResourceNotFoundError: *data* is not UTF-8 text.
    """
    if is_text(data):
        # With or without the signature that editors on Windows write.
        return data.decode("utf-8-sig")
    raise ResourceNotFoundError(
        f"{path!r} is not a text file ({media_type(path)}, {len(data):,} bytes)",
        suggested_action="Pass its path to a tool that can read such files",
        recoverable=False,
    )


def is_text(data: bytes) -> bool:
    """Return whether *data* is UTF-8 text, which does not contain NUL; UTF-16 and
    binary files do.

    A PDF may consist of ASCII, but is still not a text to read.
    """
    if b"\0" in data or data.startswith(_NOT_TEXT):
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def read_bytes(
    directory: str,
    path: str,
    limit: int = MAX_RESOURCE_BYTES,
    *,
    identity: tuple[int, int] | None = None,
) -> bytes:
    """Return the bytes of the file *path* in *directory*, at most *limit* of them.

    With *identity*, its device and inode, the directory must still be the same one.

    Raises:
        ResourceNotFoundError: there is no such regular file in the skill, or it is
            larger than *limit*.
    """
    relative = _relative(directory, path)
    try:
        return read_inside(directory, relative, limit, identity=identity)
    except FileTooLargeError as error:
        raise ResourceNotFoundError(
            f"{path!r} has {error.size:,} bytes; at most {limit:,} can be read",
            suggested_action="Pass its path to a tool that can read such files",
            recoverable=False,
        ) from None
    except FileNotFoundError:
        raise _not_found(directory, path, "there is no such file") from None
    except OSError as error:
        # With O_NOFOLLOW a link fails with ELOOP, and a link to a directory with
        # ENOTDIR.
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            reason = "it is not reached without a symbolic link"
        else:
            reason = error.strerror or "it cannot be opened"
        raise _not_found(directory, path, reason) from None
    except ValueError:
        raise _not_found(directory, path, "this is not a valid path") from None


def _relative(directory: str, path: str) -> str:
    """Return *path* with ``/`` between its parts, if it is a relative path without
    ``..``.

    Raises:
        ResourceNotFoundError: it is not.
    """
    if not isinstance(path, str) or not path or "\0" in path:
        shown = str(path).replace("\0", "\\0")
        raise _not_found(directory, shown, "this is not a valid path")
    # Models write either separator; on Windows both are valid.
    relative = path.replace("\\", "/") if os.sep == "\\" else path
    has_root = os.path.isabs(path) or bool(os.path.splitdrive(path)[0])
    if has_root or relative.startswith(("/", "~")):
        raise _not_found(directory, path, "paths are relative to the skill's directory")
    if ".." in relative.split("/"):
        raise _not_found(directory, path, "it is outside the skill's directory")
    return relative


def digest_of_code(directory: str) -> bytes:
    """Return the SHA-256 of the files that a skill can execute: the paths and bytes of
    contracts, scripts and modules.

    Nothing is parsed. A file that is too large to read counts with its path and its
    size.
    """
    import hashlib  # OpenSSL: not needed for an import

    total = hashlib.sha256()
    for resource in list_files(directory):
        top, _, below = resource.path.partition("/")
        if below:
            is_code = top == "scripts" or top in CONTRACT_FILES
            # Any module can be imported, and SKILL.md may start a script anywhere.
            is_code = is_code or below.endswith(SCRIPT_SUFFIXES)
        else:
            is_code = top in CONTRACT_FILES or top.endswith(_CODE_SUFFIXES)
        if not is_code:
            continue
        try:
            content = hashlib.sha256(read_bytes(directory, resource.path)).hexdigest()
        except ResourceNotFoundError:
            # Too large for a script; its size still changes with most edits.
            content = str(resource.bytes)
        # A NUL cannot occur in a path, so no two lists of files give the same input.
        total.update(f"{resource.path}\0{content}\n".encode("utf-8", "surrogateescape"))
    return total.digest()


def may_have_callables(directory: str) -> bool:
    """Return whether the skill in *directory* has a contract or something that looks
    like a script; none of it is read.
    """
    names, directories = _entries(directory)
    # A wrong True costs an activation, which checks it; a wrong False would hide a
    # tool.
    for name in names:
        if name in CONTRACT_FILES or name == "scripts":
            return True
        if name.endswith(SCRIPT_SUFFIXES):
            return True
    # SKILL.md may start a script that lies elsewhere.
    for name in directories:
        inside = _files_below(os.path.join(directory, name))
        if any(path.endswith(SCRIPT_SUFFIXES) for path, _ in inside):
            return True
    return False


def _entries(directory: str) -> tuple[list[str], list[str]]:
    """Return the names of the entries of *directory*, and of its directories; none if
    it cannot be listed.
    """
    names = []
    directories = []
    try:
        # scandir, because it is fast: this runs for each of ten thousand skills, and
        # most consist only of a SKILL.md.
        with os.scandir(directory) as entries:
            for entry in entries:
                names.append(entry.name)
                is_directory = entry.is_dir(follow_symlinks=False)
                if is_directory and entry.name not in _SKIPPED:
                    directories.append(entry.name)
    except OSError:
        return [], []
    return names, directories


def media_type(path: str) -> str:
    """Return the media type for the suffix of *path*; ``application/octet-stream`` if
    it is unknown.

    A table of our own: Python's `mimetypes` also reads the system's files, so its
    answers differ between machines, and up to 3.13 it knows neither YAML nor JSON Lines
    nor Parquet.

    >>> media_type("references/forms.md"), media_type("out/rows.jsonl")
    ('text/markdown', 'application/jsonl')
    """
    suffix = os.path.splitext(path)[1].lower()
    return _MEDIA_TYPES.get(suffix, "application/octet-stream")


def _not_found(directory: str, path: str, reason: str) -> ResourceNotFoundError:
    from difflib import get_close_matches  # imported only for this error

    paths = [resource.path for resource in list_resources(directory)]
    shown = path if len(path) <= 120 else path[:119] + "…"
    close = get_close_matches(shown, paths, 3, 0.4)
    if not close:
        close = [other for other in paths if _file_name(other) == _file_name(shown)]
    if not close:
        close = paths
    if close:
        action = f"Read one of: {', '.join(close[:3])}"
    else:
        action = "This skill has no other files"
    return ResourceNotFoundError(
        f"No file {shown!r} in the skill: {reason}", suggested_action=action
    )


def _file_name(path: str) -> str:
    return path.rsplit("/", 1)[-1].lower()
