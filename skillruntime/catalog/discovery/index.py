"""The index on disk that makes a warm start fast: the snapshot of every root, with the
stamps of its files.

It is one file in the user's cache directory, replaced as a whole, so any number of
processes may read and write it at the same time: the last writer wins, and skills that
it did not include are read again. An index that is damaged, that belongs to another
user or that has another version is ignored. It contains only numbers and text, with a
checksum.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from skillruntime.cache_files import cache_directory, open_own, replace_file
from skillruntime.catalog.discovery.root_snapshot import STAMP, Entry, Root, Snapshot
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["index_path", "load_index", "save_index"]

MAX_ROOTS = 64
"""How many roots the index keeps; those not read for the longest time are dropped
first.
"""

# Larger than any real index (50,000 skills take 20 MB); protects against a wrong file
# at this path.
MAX_BYTES = 256 * 1024 * 1024

# The number is the version of the format; raise it with every change of `_encode`.
_MAGIC = b"skillruntime index 7\n"
_BLOCK = 256
# With the table of a few roots; a longer one is read again, whole.
_USUAL_HEAD = 4096
# ASCII unit and record separators; `_without_marks` removes them from messages.
_FIELD, _RECORD = "\x1f", "\x1e"
_Section = tuple[str, int, int, int]
"""A root's path, the checksum of its encoded snapshot, where that begins in the file,
and its size in bytes.
"""


def index_path() -> str | None:
    """Return the path of the index; ``None`` if ``SKILLRUNTIME_CACHE`` is ``off`` or
    there is no home directory.

    ``SKILLRUNTIME_CACHE`` is the directory; by default it is the platform's cache
    directory.
    """
    directory = cache_directory()
    return None if directory is None else f"{directory}/catalog.index"


def load_index(path: str, roots: Iterable[Root]) -> dict[Root, Snapshot]:
    """Return the snapshots of *roots* that the index at *path* contains."""
    known: dict[Root, Snapshot] = {}
    try:
        descriptor = open_own(path, MAX_BYTES)
    except OSError:
        return known
    try:
        sections = {section[0]: section for section in _sections_of(descriptor)}
        for root in roots:
            if root.path not in sections:
                continue
            _, total, start, size = sections[root.path]
            data = memoryview(_read_at(descriptor, start, size))
            snapshot = _decode(root, total, data)
            if snapshot is not None:
                known[root] = snapshot
    except (OSError, ValueError):
        pass  # damaged: the snapshots read so far have the right checksums
    finally:
        os.close(descriptor)
    return known


def save_index(path: str, snapshots: Sequence[Snapshot]) -> None:
    """Write *snapshots* to the index at *path* and keep those of other roots; a failure
    is ignored.
    """
    own = {snapshot.root.path: _encode(snapshot) for snapshot in snapshots}
    sections = [section for section in _kept_sections(path) if section[0] not in own]
    sections += [(name, zlib.adler32(data), data) for name, data in own.items()]
    sections = sections[-MAX_ROOTS:]
    table = "\0".join(
        f"{len(data)}{_FIELD}{total}{_FIELD}{name}" for name, total, data in sections
    )
    head = table.encode("utf-8", "surrogatepass")
    start = _MAGIC + b"%d %d\n" % (len(head), zlib.crc32(head)) + head
    replace_file(path, (start, *(data for _, _, data in sections)))


def _kept_sections(path: str) -> list[tuple[str, int, bytes]]:
    """Return the paths, the checksums and the encoded snapshots in the index at *path*;
    none if it is not usable.
    """
    try:
        descriptor = open_own(path, MAX_BYTES)
    except OSError:
        return []
    try:
        sections = _sections_of(descriptor)
        return [
            (name, total, _read_at(descriptor, start, size))
            for name, total, start, size in sections
        ]
    except (OSError, ValueError):
        return []
    finally:
        os.close(descriptor)


def _sections_of(descriptor: int) -> list[_Section]:
    """Return the sections of an open index.

    Raises:
        ValueError: it is damaged.
    """
    data = _read_at(descriptor, 0, _USUAL_HEAD)
    if data[: len(_MAGIC)] != _MAGIC:
        raise ValueError("another version")
    end = data.find(b"\n", len(_MAGIC)) + 1
    length, total = map(int, data[len(_MAGIC) : end].split())
    if not 0 < length <= MAX_BYTES:
        raise ValueError("damaged")
    if end + length > len(data):
        head = _read_at(descriptor, end, length)
    else:
        head = data[end : end + length]
    if zlib.crc32(head) != total:
        raise ValueError("damaged")
    sections: list[_Section] = []
    start = end + length
    for line in head.decode("utf-8", "surrogatepass").split("\0"):
        size, own_total, name = line.split(_FIELD, 2)
        sections.append((name, int(own_total), start, int(size)))
        start += int(size)
    return sections


def _read_at(descriptor: int, start: int, size: int) -> bytes:
    """Return *size* bytes from *start*, or fewer if the file ends: then their checksum
    is wrong.
    """
    os.lseek(descriptor, start, os.SEEK_SET)
    data = os.read(descriptor, size)
    while len(data) < size:  # one call reads at most 2 GiB
        more = os.read(descriptor, size - len(data))
        if not more:
            break
        data += more
    return data


def _encode(snapshot: Snapshot) -> bytes:
    """Return *snapshot* as bytes: the count, the stamps, the flags, then blocks of
    text.

    The first block has the columns that only some entries fill, with their positions:
    paths, versions, notes; and the stamps of the directories that were searched. The
    following blocks have names and descriptions of `_BLOCK` entries each.
    """
    entries = snapshot.entries
    paths: dict[int, str] = {}
    versions: dict[int, str] = {}
    for position, entry in enumerate(entries):
        if entry.path:
            paths[position] = entry.path
        if entry.version:
            versions[position] = entry.version
    notes = {
        position: _notes_text(some_notes)
        for position, some_notes in snapshot.notes.items()
    }
    first_block: list[str] = []
    for column in (paths, versions, notes):
        first_block.append(str(len(column)))
        first_block.extend(map(str, column))
        first_block.extend(column.values())
    for stamp in snapshot.searched or ():
        first_block.extend(map(str, stamp))
    blocks = [first_block]
    for start in range(0, len(entries), _BLOCK):
        some = entries[start : start + _BLOCK]
        names = [entry.name for entry in some]
        descriptions = [entry.description for entry in some]
        blocks.append(names + descriptions)
    flags = bytes(entry.flags for entry in entries)
    parts = [b"%d\n" % len(entries), snapshot.stamps, flags]
    for block in blocks:
        encoded = "\0".join(block).encode("utf-8", "surrogatepass")
        parts.append(len(encoded).to_bytes(4, "little"))
        parts.append(encoded)
    return b"".join(parts)


def _decode(root: Root, total: int, data: memoryview) -> Snapshot | None:
    """Return the snapshot of *root* in *data*, ``None`` if the data are damaged."""
    # Adler-32 detects damage, not attacks: whoever can write this file can also write
    # the skills.
    if zlib.adler32(data) != total:
        return None
    try:
        start = bytes(data[:64]).index(b"\n") + 1
        count = int(bytes(data[: start - 1]))
        middle = start + STAMP.size * count
        stamps, flags = bytes(data[start:middle]), bytes(data[middle : middle + count])
        blocks = _blocks(data[middle + count :])
        texts = next(blocks)
        paths, at = _rare(texts, 0)
        versions, at = _rare(texts, at)
        notes, at = _rare(texts, at)
        stamped = iter(texts[at:])
        numbers = (
            (path, int(m), int(c), int(i))
            for path, m, c, i in zip(*[stamped] * 4, strict=True)
        )
        searched = tuple(numbers) or None
        path_column: list[str | None] = [None] * count
        version_column: list[str | None] = [None] * count
        for position, path in paths.items():
            path_column[position] = path
        for position, version in versions.items():
            # Most skills share a few versions; interned, each string exists once.
            version_column[position] = sys.intern(version)
        entries: list[Entry] = []
        for texts in blocks:
            at, size = len(entries), len(texts) // 2
            rows = slice(at, at + size)
            columns = (
                path_column[rows],
                texts[:size],
                texts[size:],
                version_column[rows],
                flags[rows],
            )
            # Like Entry._make, but in C: this runs for every skill at every start.
            entries += map(
                tuple.__new__, repeat(Entry), zip(*columns, repeat(root), strict=False)
            )
        parsed = {position: _parse_notes(text) for position, text in notes.items()}
    except (ValueError, TypeError, IndexError, StopIteration):
        return None
    if len(entries) != count or len(stamps) != STAMP.size * count:
        return None
    return Snapshot(root, entries, stamps, parsed, searched=searched)


def _blocks(data: memoryview) -> Iterator[list[str]]:
    """Yield the blocks of text one at a time, so that little is in memory at once."""
    while data:
        size = int.from_bytes(data[:4], "little")
        yield str(data[4 : 4 + size], "utf-8", "surrogatepass").split("\0")
        data = data[4 + size :]


def _rare(texts: list[str], at: int) -> tuple[dict[int, str], int]:
    """Return the column that begins at *at*, by position, and the start of the next
    column.
    """
    count = int(texts[at])
    middle, end = at + 1 + count, at + 1 + 2 * count
    positions = map(int, texts[at + 1 : middle])
    column = dict(zip(positions, texts[middle:end], strict=True))
    return column, end


def _notes_text(notes: Iterable[Diagnostic]) -> str:
    return _RECORD.join(map(_note_text, notes))


def _note_text(note: Diagnostic) -> str:
    values = (
        note.rule,
        note.severity,
        note.path,
        note.message,
        note.line,
        note.column,
        note.hint,
    )
    texts = ("" if value is None else str(value) for value in values)
    return _FIELD.join(map(_without_marks, texts))


def _parse_notes(text: str) -> tuple[Diagnostic, ...]:
    notes = []
    for record in text.split(_RECORD):
        rule, severity, path, message, line, column, hint = record.split(_FIELD)
        notes.append(
            Diagnostic(
                rule,
                Severity(severity),
                path,
                message,
                _to_number(line),
                _to_number(column),
                hint or None,
            )
        )
    return tuple(notes)


def _to_number(text: str) -> int | None:
    if not text:
        return None
    return int(text)


def _without_marks(text: str) -> str:
    return text.replace("\0", "").replace(_FIELD, " ").replace(_RECORD, " ")
