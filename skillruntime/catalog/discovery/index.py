"""Read and write the index on disk that makes a warm start fast: the snapshot of every
root, with the stamps of its files.

The index is one file in the user's cache directory. It has a section for each root,
followed by pieces; a piece has the entries of one root that were edited later. A piece
is appended, so that an edit of one skill among a hundred thousand does not write all of
them; when the pieces become too large, the whole file is replaced.

Any number of processes may read and write the file at the same time: the last writer
wins, and skills that it did not include are read again. An index that is damaged,
belongs to another user or has another version is ignored. The file contains only
numbers and text, with checksums.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat

from skillruntime.cache_files import cache_directory, open_own, replace_file
from skillruntime.catalog.discovery.root_snapshot import (
    STAMP,
    Entry,
    Root,
    Snapshot,
    stamp_at,
)
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["index_path", "load_index", "save_index"]

MAX_ROOTS = 64
"""The maximum number of roots in the index; the least recently read roots are dropped
first.
"""

# Larger than any real index (50,000 skills take 20 MB); protects against a wrong file
# at this path.
MAX_BYTES = 256 * 1024 * 1024

MAX_PIECES = 128 * 1024
"""The maximum size of all pieces in bytes, about two hundred edits; then the whole
index is written.
"""

# The number is the version of the format; raise it with every change of `_encode` and
# `_encode_piece`.
_MAGIC = b"skillruntime index 9\n"
_BLOCK = 256
# Enough bytes for the table of a few roots; a longer head is read again as a whole.
_USUAL_HEAD = 4096
# ASCII unit and record separators; `_without_marks` removes them from messages.
_FIELD, _RECORD = "\x1f", "\x1e"


class _Section:
    """The encoded snapshot of the root at ``path``: its checksum, where it begins in the
    file, and its size in bytes.

    A plain class, because making a named tuple takes as long as loading thirty skills.
    """

    __slots__ = ("path", "size", "start", "total")

    def __init__(self, path: str, total: int, start: int, size: int) -> None:
        self.path = path
        self.total = total
        self.start = start
        self.size = size

    @property
    def identity(self) -> tuple[int, int]:
        """The checksum and size by which pieces and snapshots refer to this section."""
        return self.total, self.size


_Piece = tuple[tuple[int, int], dict[int, list[str]]]
"""The edited entries of one root: the identity of their section, and the fields that
`_encode_piece` writes, by the entry's position.
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
    """Return the snapshots of those *roots* that the index at *path* contains."""
    known: dict[Root, Snapshot] = {}
    try:
        descriptor = open_own(path, MAX_BYTES)
    except OSError:
        return known
    try:
        listed = _sections_of(descriptor)
        sections = {section.path: section for section in listed}
        pieces, _ = _read_pieces(descriptor, listed)
        for root in roots:
            section = sections.get(root.path)
            if section is None:
                continue
            data = memoryview(_read_at(descriptor, section.start, section.size))
            snapshot = _decode(root, section, data)
            if snapshot is not None and root.path in pieces:
                snapshot = _with_pieces(snapshot, pieces[root.path])
            if snapshot is not None:
                known[root] = snapshot
    except (OSError, ValueError):
        pass  # damaged; the snapshots read so far have the right checksums
    finally:
        os.close(descriptor)
    return known


def save_index(
    path: str, snapshots: Sequence[Snapshot]
) -> dict[str, tuple[int, int] | None]:
    """Write *snapshots* to the index at *path* and keep those of other roots; a failure
    is ignored.

    Return the `Snapshot.section` of each root that was written as a whole.
    """
    if _append(path, snapshots):
        return {}
    own = {snapshot.root.path: _encode(snapshot) for snapshot in snapshots}
    sections = [
        (name, total, [data])
        for name, total, data in _kept_sections(path)
        if name not in own
    ]
    sections += [(name, _checksum(parts), parts) for name, parts in own.items()]
    sections = sections[-MAX_ROOTS:]
    sizes = {name: sum(map(len, parts)) for name, _, parts in sections}
    table = "\0".join(
        f"{sizes[name]}{_FIELD}{total}{_FIELD}{name}" for name, total, _ in sections
    )
    head = table.encode("utf-8", "surrogatepass")
    start = _MAGIC + b"%d %d\n" % (len(head), zlib.crc32(head)) + head
    contents = chain.from_iterable(parts for _, _, parts in sections)
    is_written = replace_file(path, chain([start], contents))
    if not is_written:
        return dict.fromkeys(own)
    return {name: (total, sizes[name]) for name, total, _ in sections if name in own}


def _append(path: str, snapshots: Sequence[Snapshot]) -> bool:
    """Append a piece for each of *snapshots* to the index at *path*; return ``False``
    if the index must be written as a whole.
    """
    if not all(snapshot.section and snapshot.edited for snapshot in snapshots):
        return False
    data = b"".join(map(_encode_piece, snapshots))
    try:
        descriptor = open_own(path, MAX_BYTES, os.O_RDWR | os.O_APPEND)
    except OSError:
        return False
    try:
        sections = _sections_of(descriptor)
        identities = {section.path: section.identity for section in sections}
        for snapshot in snapshots:
            # Another process may have written the index since this one read it.
            if identities.get(snapshot.root.path) != snapshot.section:
                return False
        # A piece after a damaged one would never be read.
        _, whole = _read_pieces(descriptor, sections)
        size = os.fstat(descriptor).st_size - _end_of(sections)
        if whole < size or size + len(data) > MAX_PIECES:
            return False
        # One call, so that the pieces of two processes do not mix.
        return os.write(descriptor, data) == len(data)
    except (OSError, ValueError):
        return False
    finally:
        os.close(descriptor)


def _kept_sections(path: str) -> list[tuple[str, int, bytes]]:
    """Return the paths, the checksums and the encoded snapshots in the index at *path*;
    an empty list if it is not usable. The pieces are left out: their entries are read
    again.
    """
    try:
        descriptor = open_own(path, MAX_BYTES)
    except OSError:
        return []
    try:
        return [
            (
                section.path,
                section.total,
                _read_at(descriptor, section.start, section.size),
            )
            for section in _sections_of(descriptor)
        ]
    except (OSError, ValueError):
        return []
    finally:
        os.close(descriptor)


def _sections_of(descriptor: int) -> list[_Section]:
    """Return the sections of an open index.

    Raises:
        ValueError: the index is damaged.
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
        sections.append(_Section(name, int(own_total), start, int(size)))
        start += int(size)
    return sections


def _end_of(sections: Sequence[_Section]) -> int:
    """Return the offset at which the last of *sections* ends and the pieces begin."""
    return sections[-1].start + sections[-1].size


def _read_at(descriptor: int, start: int, size: int) -> bytes:
    """Return *size* bytes from *start*, or fewer if the file ends earlier; their
    checksum is then wrong.
    """
    os.lseek(descriptor, start, os.SEEK_SET)
    data = os.read(descriptor, size)
    while len(data) < size:  # one call reads at most 2 GiB
        more = os.read(descriptor, size - len(data))
        if not more:
            break
        data += more
    return data


def _checksum(parts: Iterable[bytes]) -> int:
    # Adler-32 detects damage, not attacks: an attacker who can write this file can also
    # write the skills.
    total = 1
    for part in parts:
        total = zlib.adler32(part, total)
    return total


def _encode(snapshot: Snapshot) -> list[bytes]:
    """Return *snapshot* as bytes, in parts: the count, the stamps, the flags, then
    blocks of text.

    The first block has the columns that only some entries fill (paths, versions,
    notes), with the positions of these entries, and the stamps of the searched
    directories. The following blocks have names and descriptions of `_BLOCK` entries
    each.
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
    return parts


def _decode(root: Root, section: _Section, data: memoryview) -> Snapshot | None:
    """Decode *data*, the bytes of *section*, into the snapshot of *root*; return
    ``None`` if they are damaged.
    """
    if zlib.adler32(data) != section.total:
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
    return Snapshot(
        root, entries, stamps, parsed, searched=searched, section=section.identity
    )


def _encode_piece(snapshot: Snapshot) -> bytes:
    """Return the edited entries of *snapshot* as a piece: the number of bytes, their
    checksum, and a text with the root, its section, and eight fields for each entry.
    """
    total, size = snapshot.section or (0, 0)
    texts = [snapshot.root.path, str(total), str(size)]
    for position in snapshot.edited:
        entry = snapshot.entries[position]
        texts += [
            str(position),
            entry.path or "",
            entry.name,
            entry.description,
            entry.version or "",
            str(entry.flags),
            snapshot.stamp(position).hex(),
            _notes_text(snapshot.notes.get(position, ())),
        ]
    data = "\0".join(texts).encode("utf-8", "surrogatepass")
    return b"%d %d\n" % (len(data), zlib.crc32(data)) + data


def _read_pieces(
    descriptor: int, sections: Sequence[_Section]
) -> tuple[dict[str, list[_Piece]], int]:
    """Read the pieces that were appended to the index after *sections*, up to the first
    damaged piece. Return them by the path of their root, and their size in bytes.
    """
    data = _read_at(descriptor, _end_of(sections), MAX_PIECES)
    pieces: dict[str, list[_Piece]] = {}
    at = 0
    while at < len(data):
        start = data.find(b"\n", at, at + 40) + 1
        try:
            length, total = map(int, data[at:start].split())
            content = data[start : start + length]
            if length < 0 or zlib.crc32(content) != total:
                break
            texts = content.decode("utf-8", "surrogatepass").split("\0")
            rows = {
                int(texts[first]): texts[first + 1 : first + 8]
                for first in range(3, len(texts), 8)
            }
            section = int(texts[1]), int(texts[2])
        except (ValueError, IndexError):
            break
        pieces.setdefault(texts[0], []).append((section, rows))
        at = start + length
    return pieces, at


def _with_pieces(snapshot: Snapshot, pieces: Iterable[_Piece]) -> Snapshot:
    """Return *snapshot* with the entries of the *pieces* that belong to its section;
    *snapshot* itself if one of them does not fit.
    """
    entries = list(snapshot.entries)
    stamps = bytearray(snapshot.stamps)
    notes = dict(snapshot.notes)
    try:
        for section, rows in pieces:
            if section != snapshot.section:
                continue
            for position, row in rows.items():
                path, name, description, version, flags, stamp, noted = row
                before = entries[position]
                if (path or None, name) != before[:2]:
                    raise ValueError("another entry is at this position")
                entries[position] = before._replace(
                    description=description, version=version or None, flags=int(flags)
                )
                stamps[stamp_at(position)] = bytes.fromhex(stamp)
                notes.pop(position, None)
                if noted:
                    notes[position] = _parse_notes(noted)
    except (ValueError, TypeError, IndexError):
        return snapshot  # the entries in the pieces are read again
    if len(stamps) != len(snapshot.stamps):
        return snapshot
    return snapshot._replace(entries=entries, stamps=bytes(stamps), notes=notes)


def _blocks(data: memoryview) -> Iterator[list[str]]:
    """Yield the blocks of text one at a time, to keep little in memory."""
    while data:
        size = int.from_bytes(data[:4], "little")
        yield str(data[4 : 4 + size], "utf-8", "surrogatepass").split("\0")
        data = data[4 + size :]


def _rare(texts: list[str], at: int) -> tuple[dict[int, str], int]:
    """Return the column that begins at *at*, as a mapping from positions to values, and
    the start of the next column.
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
