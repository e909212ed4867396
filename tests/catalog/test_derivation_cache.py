from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillruntime import derive as derive_package
from skillruntime.catalog.contracts.derivation_cache import derive_known
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
    return derive_known(source, path=path)[0]


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


def test_a_damaged_file_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script is read again, and the file replaced."""
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path))
    source = PARSER.format(head="", choices="['a']").encode()
    first = derived(source, path="go.py")
    (file,) = (tmp_path / "derived").iterdir()
    file.write_bytes(b"xxxx{}")

    assert derived(source, path="go.py") == first
    assert file.stat().st_size > 100


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
        assert derive_known(small.encode(), path="s.py")[1] is True
        assert derive_known(large.encode(), path="l.py")[1] is False
