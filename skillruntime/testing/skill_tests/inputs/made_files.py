"""Make files for calls that need them: small valid ones according to their suffix, or
the fixtures below the skill's own ``tests/``.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from skillruntime.catalog.directory_walk import walk
from skillruntime.testing.skill_tests.inputs.office_documents import (
    OFFICE_SUFFIXES,
    presentation,
    text_document,
    unpacked,
    workbook,
)
from skillruntime.testing.skill_tests.inputs.pdf_documents import (
    PLAIN_PAGES,
    pdf_document,
)

__all__ = [
    "DIRECTORY_FILES",
    "JSON_SUFFIXES",
    "MOST_FIXTURES",
    "NO_FIXTURES",
    "Fixtures",
    "is_file_name",
    "is_fixture",
    "made_file",
    "names_in_file",
    "read_fixtures",
    "texts_of",
    "unpacked_parts",
]

_NAMES = [
    "Ann",
    "Bob",
    "Cem",
    "Dora",
    "Eva",
    "Finn",
    "Gül",
    "Hana",
    "Ivo",
    "Jana",
    "Karl",
    "Lena",
    "Max",
    "Nils",
    "Olga",
    "Paul",
    "Quinn",
    "Rosa",
    "Sven",
    "Tina",
    "Uwe",
    "Vera",
    "Willi",
    "Zoë",
]
_REGIONS = ("north", "south", "east")
_FIRST_DAY = date(2024, 11, 20)


def _rows() -> list[dict[str, Any]]:
    """Return the rows of a made table: more than most options list by default (3, 5, 10
    or 20), of several groups and months, with letters beyond ASCII.
    """
    rows = []
    for number, name in enumerate(_NAMES):
        day = _FIRST_DAY + timedelta(days=3 * number)
        region = _REGIONS[number % len(_REGIONS)]
        rows.append(
            {
                "name": name,
                "region": region,
                "date": f"{day}",
                "value": 3 + number * 7 % 40,
                "amount": 12.5 + number * 1.25,
            }
        )
    return rows


_ROWS = _rows()
_TABLE = ([*_ROWS[0]], *([*row.values()] for row in _ROWS))
_TABLE_TEXTS = ("value", "name", "region", "date", "north", "Sheet2")
"""Texts of the made tables: columns, a group and a worksheet."""

_LONGEST_HEAD = 10_000


def _joined(separator: str) -> str:
    return "".join(separator.join(map(str, row)) + "\n" for row in _TABLE)


_TEXT = """\
# Title

A first paragraph of text, written on 2024-11-20 by Zoë.
It costs 42.50 euros, or 1,300 with a guarantee.

## First part

- one
- two, see [a page](https://example.org/page)
- [ ] three

## Second part

| name | value |
|---|---|
| Ann | 3 |
| Bob | 10 |

```python
print("one")
```

### Details

TODO: the last paragraph is very short.
"""
_LOG = """\
2024-11-20 12:00:00 INFO started
2024-11-20 12:00:01 ERROR failed: no such user
2024-11-20 12:00:02 WARNING slow answer: 1200 ms
2024-11-21 08:30:00 DEBUG retry 1 of 3
2024-11-21 08:30:05 ERROR failed: no such user
2024-11-21 08:30:09 INFO ended
"""
_HTML = """\
<!doctype html>
<html lang="en"><head><title>Title</title></head>
<body><h1>Title</h1><p>Text by Zoë, <a href="https://example.org/page">a page</a>.</p>
<ul><li>one</li><li>two</li></ul><img src="one.png" alt="a picture">
<table><tr><th>name</th><th>value</th></tr><tr><td>Ann</td><td>3</td></tr></table>
</body></html>
"""
_PYTHON = """\
import json


def total(values: list[int], start: int = 0) -> int:
    # TODO: check the values
    return sum(values, start)


class Counter:
    def count(self, text):
        return len(text.split())


print(json.dumps({"total": total([1, 2])}))
"""
_PATCH = "--- a/one.txt\n+++ b/one.txt\n@@ -1 +1,2 @@\n first\n+second\n"
JSON_SUFFIXES = (".json", ".geojson", ".har", ".ipynb", ".sarif", ".webmanifest")
"""The suffixes of files that hold one JSON document."""

_TEXTS = {
    ".csv": _joined(","),
    ".tsv": _joined("\t"),
    **dict.fromkeys(
        JSON_SUFFIXES, json.dumps(_ROWS, indent=1, ensure_ascii=False) + "\n"
    ),
    ".jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _ROWS),
    ".txt": _TEXT,
    ".md": _TEXT,
    ".log": _LOG,
    ".html": _HTML,
    ".xml": "<?xml version='1.0'?>\n<items><item name='one'/></items>\n",
    ".yaml": "name: one\nvalues: [1, 2]\n",
    ".yml": "name: one\nvalues: [1, 2]\n",
    ".toml": 'name = "one"\nvalues = [1, 2]\n',
    ".ini": "[section]\nname = one\n",
    ".patch": _PATCH,
    ".diff": _PATCH,
    ".py": _PYTHON,
    ".js": "console.log('one');\n",
    ".sh": "echo one\n",
    ".svg": "<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'>"
    "<rect width='8' height='8'/></svg>\n",
}
DIRECTORY_FILES: Mapping[str, bytes] = {
    f"example{suffix}": _TEXTS[suffix].encode()
    for suffix in (".md", ".json", ".csv", ".py", ".html")
}
"""The contents of a directory that is made for a call."""

_NAME = re.compile(r"[\w][\w. -]*(?:/[\w][\w. -]*)*\.[A-Za-z]\w{0,7}")
MOST_FIXTURES = 200
_MOST_BYTES = 10 * 1024**2
_IN_WORKSPACE = "workspace/"
_NOT_FIXTURES = {"cases.yaml", "triggers.yaml", "evals.json", "conftest.py"}


def made_file(name: str) -> bytes | None:
    """Return the bytes of a small valid file called *name*; None if a file of its kind
    cannot be made.

    >>> made_file("sales.csv").splitlines()[0]
    b'name,region,date,value,amount'
    """
    suffix = os.path.splitext(name)[1].lower()  # noqa: PTH122
    if suffix in _TEXTS:
        return _TEXTS[suffix].encode()
    if suffix == ".png":
        return _png()
    if suffix == ".pdf":
        return pdf_document(PLAIN_PAGES, has_form=True)
    if suffix in OFFICE_SUFFIXES:
        return _office_document(suffix)
    return None


def unpacked_parts(path: str) -> dict[str, bytes]:
    """Return the parts of the made Office document that has *path* as a part or as a
    directory of parts, by their paths; none if no document has it.

    >>> [*unpacked_parts("xl")][:3]
    ['[Content_Types].xml', '_rels/.rels', 'xl/workbook.xml']
    """
    for suffix in OFFICE_SUFFIXES:
        parts = unpacked(_office_document(suffix))
        if any(name == path or name.startswith(f"{path}/") for name in parts):
            return parts
    return {}


def names_in_file(path: str, data: bytes) -> list[str]:
    """Return the names that a call may use for parts of a file: its columns, or the
    members of its first object.

    >>> names_in_file("a.csv", b"day;sum\\n1;2\\n")
    ['day', 'sum']
    >>> names_in_file("a.json", b'[{"day": 1, "sum": 2}]')
    ['day', 'sum']
    """
    head = data[:_LONGEST_HEAD].decode(errors="replace").lstrip("\ufeff")
    suffix = os.path.splitext(path)[1].lower()  # noqa: PTH122
    if suffix in (".csv", ".tsv"):
        fields = re.split(r"[,;\t]", head.partition("\n")[0])
        return [field.strip().strip('"') for field in fields]
    if suffix in (*JSON_SUFFIXES, ".jsonl"):
        first_object = head.partition("}")[0]
        return list(
            dict.fromkeys(re.findall(r'"([^"\n]{1,60})"\s{0,9}:', first_object))
        )
    if suffix == ".xlsx" and data == made_file("a.xlsx"):
        return [*_TABLE_TEXTS]
    return []


def is_file_name(text: str) -> bool:
    """Return whether *text* has the form of a relative path to a file with a suffix.

    >>> is_file_name("reports/q3.pdf"), is_file_name("1.5"), is_file_name("/etc/a.txt")
    (True, False, False)
    """
    return len(text) < 200 and _NAME.fullmatch(text) is not None


def texts_of(value: Any) -> Iterator[str]:
    """Yield each text in *value*, at any depth, except keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts_of(item)


@dataclass(frozen=True, slots=True)
class Fixtures:
    """The files of a skill's ``tests/``, by the path under which a call names them:
    files for calls that name them, and those of ``tests/workspace/``, which every call
    finds in its workspace.
    """

    named: Mapping[str, bytes]
    workspace: Mapping[str, bytes]

    @property
    def paths(self) -> frozenset[str]:
        """The paths of all of them."""
        return frozenset((*self.named, *self.workspace))


NO_FIXTURES = Fixtures({}, {})


def read_fixtures(skill_directory: Path) -> Fixtures:
    """Return the fixtures of a skill: regular files of at most 10 MiB together, without
    links and its own tests.
    """
    root = skill_directory / "tests"
    if root.is_symlink() or not root.is_dir():
        return NO_FIXTURES
    named = {}
    workspace = {}
    for path, data in _small_files(root):
        if path.startswith(_IN_WORKSPACE):
            workspace[path.removeprefix(_IN_WORKSPACE)] = data
        else:
            named[path] = data
    return Fixtures(named, workspace)


def is_fixture(path: str) -> bool:
    """Return whether *path* below ``tests/`` is a file for calls: Python files are only
    in its directories, because those beside them are tests.

    >>> is_fixture("project/one.py"), is_fixture("one.py"), is_fixture("a/test_one.py")
    (True, False, False)
    """
    *directories, name = path.split("/")
    if name in _NOT_FIXTURES or not all(map(_is_of_fixtures, directories)):
        return False
    if name.endswith(".py"):
        return bool(directories) and not name.startswith("test_")
    return not name.endswith(".pyc")


def _is_of_fixtures(directory: str) -> bool:
    return not directory.startswith((".", "__"))


def _small_files(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the paths and bytes of files below *root*, within the limits."""
    number = 0
    left = _MOST_BYTES
    for directory, directories, names in walk(str(root)):
        directories[:] = sorted(filter(_is_of_fixtures, directories))
        for name in sorted(names):
            path = Path(directory) / name
            if not is_fixture(path.relative_to(root).as_posix()):
                continue
            if path.is_symlink() or not path.is_file():
                continue
            number += 1
            left -= path.stat().st_size
            if left < 0 or number > MOST_FIXTURES:
                return
            yield path.relative_to(root).as_posix(), path.read_bytes()


def _png() -> bytes:
    """Return an image of 64 times 48 pixels in many colours (PNG, W3C 2003)."""
    width, height = 64, 48
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = b""
    for y in range(height):
        rows += b"\0"  # no filter
        for x in range(width):
            rows += bytes((x * 4, y * 5, (x // 8 + y // 8) % 2 * 255))
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    image = b"\x89PNG\r\n\x1a\n"
    for kind, data in parts:
        checksum = zlib.crc32(kind + data)
        image += struct.pack(">I", len(data)) + kind + data
        image += struct.pack(">I", checksum)
    return image


def _office_document(suffix: str) -> bytes:
    """Return the made document of Word, Excel or PowerPoint with this *suffix*."""
    if suffix == ".docx":
        return text_document()
    if suffix == ".pptx":
        return presentation()
    return workbook({"Sheet1": _TABLE, "Sheet2": _TABLE[:4]})
