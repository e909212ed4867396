"""Make further files of a kind, for the branches of a script that no plain file
reaches: a file with what the script looks for, an empty or long one, another encoding,
values that are missing or of another form.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping

from skillruntime.testing.skill_tests.inputs.crowded_data import (
    crowded_document,
    crowded_lines,
    crowded_rows,
    crowded_table,
)
from skillruntime.testing.skill_tests.inputs.made_files import (
    DIRECTORY_FILES,
    JSON_SUFFIXES,
    is_file_name,
    made_file,
)
from skillruntime.testing.skill_tests.inputs.office_documents import workbook
from skillruntime.testing.skill_tests.inputs.pdf_documents import (
    CROWDED_PAGES,
    PLAIN_PAGES,
    UNREADABLE_PAGES,
    pdf_document,
)
from skillruntime.testing.skill_tests.inputs.script_literals import Literals

__all__ = ["directory_variants", "file_variants", "file_with_all", "files_for"]

_LONG = 200_000
_REPEATED = 20
_MOST_FILES = 60
_MANY = 120
"""More files of a kind are never made."""

_LONGEST_SUFFIX = 4
_TEXT_SUFFIXES = frozenset(
    {".csv", ".tsv", ".txt", ".md", ".log", ".html", ".xml", ".yaml", ".yml", ".toml"}
    | {".py", ".js", ".sh", ".jsonl", ".ini", ".patch", ".diff", ".svg", *JSON_SUFFIXES}
)
_GAPS = """\
name;day;count;price;share;flag;note
Ann;20.11.2024;1;1.234,50;5 %;yes;"one; two"
Ben;21.11.2024;;-3,75;12,5 %;no;
;31.12.2024;0;;;;"a ""quoted"" word"
Cem;n/a;1.000;99.999,99;100 %;yes;x
Ann;20.11.2024;1;1.234,50;5 %;yes;"one; two"

Eve;01.02.2025;7
"""
_TABLE = """\
id,email,when,amount,rate,active,weight,other,text
1,ann@example.org,2024-11-20T12:00:00Z,"$1,234.50",5%,true,5 kg,05/05/2025,NA
2,,2024-11-21 08:30,-3.75,12.5%,false,7.5 kg,06/07/2025,
3,eve@example.org,,1e6,0,true,300 g,07/07/2025,é
,x,2025-02-30,abc,,,,,
9007199254740993,ann@example.org,11/30/2024,0,100%,TRUE,1 kg,08/09/2025,word {}
"""
_ROWS = "1,2024-01-15,Ann,3.5\n2,2024-02-29,Bob,4\n3,2024-12-31,Ann,-1\n"
_LONGEST_WORDS = 600
_CELLS = (
    ("name", "amount", "paid", "total"),
    ("Ann", 1234.5, True, "=B2*2"),
    (None, -3, False, "=SUM(B2:B3)"),
    ("Zoë & <Eve>", None, None, "=B4/0"),
    ("2024-11-20", "n/a", "", 0),
)
"""The cells of a sheet with formulas and missing values."""

_DIFF = """\
From: Ann <ann@example.org>
Subject: [PATCH] Several changes

diff --git a/src/one.py b/src/one.py
index 3b18e51..a042389 100644
--- a/src/one.py
+++ b/src/one.py
@@ -1,3 +1,5 @@ def first():
 one
-two
+two, changed
+three
+four
 five
@@ -20,2 +22,1 @@
 twenty
-twenty-one
\\ No newline at end of file
diff --git a/old name.txt b/new name.txt
similarity index 90%
rename from old name.txt
rename to new name.txt
diff --git "a/\\303\\251.txt" "b/\\303\\251.txt"
new file mode 100755
--- /dev/null
+++ "b/\\303\\251.txt"
@@ -0,0 +1 @@
+added
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/picture.png b/picture.png
Binary files a/picture.png and b/picture.png differ
"""
_DIRECTORY = "project"
_FIRST = "one"
_SECOND = "two"
_FOUND = "found"
_JSON = (
    b'{"name": "one", "values": [1, -2.5, null, true, "x"], "nested": {"a": {"b": []}},'
    b' "empty": {}, "text": "\\u00e9"}'
)


def file_variants(
    suffix: str, data: bytes, literals: Literals, document: bytes | None
) -> Iterator[tuple[str, bytes]]:
    """Yield the kinds and bytes of further files with *suffix*; *data* is one that the
    script reads, and *document* a JSON document with the members that it takes.
    """
    if suffix == ".pdf":
        yield "crowded", pdf_document(CROWDED_PAGES, has_form=True)
        yield "unreadable", pdf_document(UNREADABLE_PAGES)
        yield "formless", pdf_document(PLAIN_PAGES)
    if suffix == ".xlsx":
        if data == made_file("a.xlsx"):
            yield "crowded", _crowded_workbook()
        yield "gaps", workbook({"Data": _CELLS, "Empty": ()})
        yield "short", workbook({"Sheet1": _CELLS[:1]})
        yield "empty", workbook({"Sheet1": ()})
    if suffix.lower() not in _TEXT_SUFFIXES:
        return
    crowded = _crowded(suffix, data)
    if crowded is not None:
        yield "crowded", crowded
    if suffix in (*JSON_SUFFIXES, ".jsonl"):
        if document is not None:
            yield "members", document
            yield "several", b"[%b, %b]" % (document, document)
        yield "nested", _JSON
        if suffix in JSON_SUFFIXES:
            yield "wrapped", b'{"rows": %b}' % data
    else:
        found = literals.as_text().encode()
        if found:
            yield "found", data.rstrip() + b"\n" + found
            yield "only", found
    if suffix in (".csv", ".tsv"):
        yield "gaps", _GAPS.encode()
        yield "types", _TABLE.format("word " * _LONGEST_WORDS).encode()
        yield "headless", _ROWS.encode()
    if suffix in (".diff", ".patch"):
        yield "git", _DIFF.encode()
    yield "empty", b""
    text = data.decode(errors="replace")
    yield "utf16", text.encode("utf-16")
    yield "latin1", text.encode("latin-1", errors="replace")
    yield "marked", b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    if suffix not in (*JSON_SUFFIXES, ".xml", ".svg"):
        if crowded is None and len(data) * _REPEATED < _LONG:
            yield "long", data * _REPEATED
        yield "short", data.partition(b"\n")[0]


def _crowded(suffix: str, data: bytes) -> bytes | None:
    """Return the file *data* enlarged; None if it has no rows, lists or lines."""
    if len(data) * _REPEATED >= _LONG:
        return None
    if suffix in (".csv", ".tsv"):
        return crowded_table(data)
    if suffix in JSON_SUFFIXES:
        return crowded_document(data)
    if suffix in (".md", ".txt", ".log") and data:
        return crowded_lines(data.decode(errors="replace")).encode()
    return None


def _crowded_workbook() -> bytes:
    """Return a workbook with the columns of the made one and more, and more rows."""
    rows = [*crowded_rows(json.loads(made_file("a.json") or b"[]"))]
    return workbook({"Sheet1": [[*rows[0]], *([*row.values()] for row in rows)]})


def file_with_all(suffix: str, literals: Literals, document: bytes | None) -> bytes:
    """Return a file with *suffix* that has what the script looks for."""
    data = made_file(f"a{suffix}")
    if suffix in JSON_SUFFIXES and document is not None:
        return document
    if data is None:
        return literals.as_text().encode()
    if suffix in _TEXT_SUFFIXES and suffix not in JSON_SUFFIXES:
        return data + literals.as_text().encode()
    return data


def directory_variants(
    literals: Literals, document: bytes | None
) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield the names of directories, each with its files by path: all kinds and names
    that the script looks for, with the texts that it looks for; then those of each kind
    alone; then more files of a kind than a length at which the script cuts.
    """
    files = files_for(literals, document)
    yield _DIRECTORY, _below(_DIRECTORY, files)
    suffixes = {os.path.splitext(path)[1] for path in files}  # noqa: PTH122
    for suffix in sorted(suffixes - {""}):
        own = {path: data for path, data in files.items() if path.endswith(suffix)}
        plain = {path: data for path, data in own.items() if _FOUND not in path}
        name = f"{_DIRECTORY}_{suffix.removeprefix('.')}"
        yield name, _below(name, own)
        if 0 < len(plain) < len(own):
            yield f"{name}_plain", _below(f"{name}_plain", plain)
    lengths = [length for length in literals.lengths if length < _MANY]
    if lengths:
        many = f"{_DIRECTORY}_many"
        yield many, _below(many, _many_files(files, max(lengths) + 1))


def _many_files(files: Mapping[str, bytes], number: int) -> dict[str, bytes]:
    """Return *number* files of each kind in *files*."""
    kinds: dict[str, bytes] = {}
    for path, data in files.items():
        kinds.setdefault(os.path.splitext(path)[1], data)  # noqa: PTH122
    many: dict[str, bytes] = {}
    for suffix, data in kinds.items():
        for place in range(number):
            many[f"part{place}{suffix}"] = data
    return many


def _below(name: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{name}/{path}": data for path, data in files.items()}


def files_for(literals: Literals, document: bytes | None) -> dict[str, bytes]:
    """Return the files of a directory in which the script finds all kinds and names
    that it looks for, by path.
    """
    found = literals.as_text().encode()
    files: dict[str, bytes] = {}
    for path in [*DIRECTORY_FILES, *_paths_in(literals.texts)][:_MOST_FILES]:
        data = made_file(path)
        if path.endswith(JSON_SUFFIXES) and document is not None:
            data = _JSON if _SECOND in path else document
        elif data is None or _FOUND in path:
            data = found
        files[path] = data
    return files


def _paths_in(texts: Iterable[str]) -> Iterator[str]:
    """Yield the paths of files that fit *texts*: names, suffixes, and patterns of
    `Path.glob`, each of these twice.

    >>> [*_paths_in(["a.toml", "*.po", "**/locales/**/*.json"])]
    ['a.toml', 'example.po', 'src/found.po', 'locales/one/one.json', \
'locales/two/two.json']
    """
    for text in texts:
        plain = text.removeprefix("**/").replace("**", "*")
        suffix = plain.removeprefix("*")
        if suffix.startswith("."):
            names = [f"example{suffix}", f"src/{_FOUND}{suffix}"]
        elif "*" in plain:
            names = [plain.replace("*", word) for word in (_FIRST, _SECOND)]
        elif len(plain) <= _LONGEST_SUFFIX and plain.isalpha():
            names = [f"src/{_FOUND}.{plain}"]
        else:
            names = [plain]
        yield from filter(is_file_name, names)
