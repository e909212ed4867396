from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from skillruntime import derive as derive_package
from skillruntime.catalog.contracts import derivation_cache
from skillruntime.contract.schemas import limits
from skillruntime.derive import derive

PARSER = """
import argparse
{head}
p = argparse.ArgumentParser()
p.add_argument("--mode", choices={choices}, default="a", help="The mode")
p.parse_args()
"""


def derived(source: bytes, *, path: str) -> Any:
    return derivation_cache.derive_known(source, path=path)[0]


@pytest.fixture
def not_derived(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it, and a script that is read from here on fails the test."""

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("the script was read again")

    return lambda: monkeypatch.setattr(derive_package, "derive", refuse)


@pytest.mark.parametrize(
    "source",
    [
        PARSER.format(head="", choices="['a', 'b']").encode(),
        b"import sys\nprint(sys.argv[1])\n",
        b"print('nothing to read')\n",
        b"\xff\xfe not python (",
        "import argparse\n"
        "p = argparse.ArgumentParser(description='Zäh \ud800')\n"
        "p.parse_args()".encode("utf-8", "surrogatepass"),
    ],
)
def test_a_script_is_read_once_by_all_processes(
    source: bytes, not_derived: Any
) -> None:
    """What comes from the file is equal to what was read, whatever the script is."""
    read = derive(source, path="scripts/go.py")
    first = derived(source, path="scripts/go.py")
    not_derived()

    assert derived(source, path="scripts/go.py") == first
    assert first == (read and read.document)


def test_another_script_and_another_path_are_read(not_derived: Any) -> None:
    """The bytes and the path are the key: the path is in the contract."""
    source = PARSER.format(head="", choices="['a']").encode()
    derived(source, path="scripts/go.py")
    not_derived()

    with pytest.raises(AssertionError, match="read again"):
        derived(source, path="scripts/other.py")
    with pytest.raises(AssertionError, match="read again"):
        derived(source + b"\n", path="scripts/go.py")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"xxxx{}",
        lambda data: data[:5000],
        lambda data: data[:100] + bytes(len(data) - 100),
        lambda data: data.replace(b'"found"', b'"fnd": \x00'),
    ],
)
def test_a_damaged_file_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Any
) -> None:
    """The script is read again, and the file replaced."""
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path))
    source = PARSER.format(head="", choices="['a']").encode()
    first = derived(source, path="go.py")
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))

    for _ in range(3):
        assert derived(source, path="go.py") == first
    assert file.stat().st_size > 1000


def test_all_scripts_are_in_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, not_derived: Any
) -> None:
    """Of twenty-five scripts the twenty that were read last are known; the file is the
    user's alone.
    """
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path))
    monkeypatch.setattr(derivation_cache, "_MOST_CONTRACTS", 20)
    source = PARSER.format(head="", choices="['a']").encode()
    for number in range(25):
        derived(source, path=f"{number}.py")

    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    not_derived()
    for number in range(5, 25):
        derived(source, path=f"{number}.py")
    with pytest.raises(AssertionError, match="read again"):
        derived(source, path="4.py")


def test_a_script_is_derived_where_the_file_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes and does not end, the file is a directory, or there is no
    cache.
    """
    monkeypatch.setattr(derivation_cache, "_LONGEST_WAIT", 0.01)
    source = PARSER.format(head="", choices="['a']").encode()
    expected = derive(source, path="go.py")
    assert expected is not None
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path))
    derived(source, path="first.py")

    with closing(sqlite3.connect(tmp_path / "derived.sqlite")) as writing:
        writing.execute("BEGIN EXCLUSIVE")
        assert derived(source, path="go.py") == expected.document
    (tmp_path / "derived.sqlite").unlink()
    (tmp_path / "derived.sqlite").mkdir()
    assert derived(source, path="go.py") == expected.document
    monkeypatch.setenv("SKILLRUNTIME_CACHE", "off")
    assert derived(source, path="go.py") == expected.document


def test_what_makes_no_usable_contract_is_remembered_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A schema over the limits is compiled and refused again, with its reason; others
    are compiled when used.
    """
    small, large = (
        PARSER.format(head="", choices=[*"a", *map(str, range(number))])
        for number in (0, 300)
    )
    monkeypatch.setattr(limits, "MAX_NODES", 60)

    for _ in range(2):  # read, then known
        assert derivation_cache.derive_known(small.encode(), path="s.py")[1] is True
        assert derivation_cache.derive_known(large.encode(), path="l.py")[1] is False
