"""Versions and ranges: SemVer 2.0.0, npm's and the contract document's ranges, and what
people write instead.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.contract import (
    Version,
    VersionRange,
    check_skill_compatibility,
    satisfies,
)
from skillruntime.contract.versions import read_version
from tests import needs


def facts(name: str) -> list[dict[str, Any]]:
    table = needs.data("semver/semver_facts.json")
    rows: list[dict[str, Any]] = json.loads(table.read_text(encoding="utf-8"))[name]
    return rows


def test_every_valid_version_of_the_table_is_parsed_into_its_parts() -> None:
    """SemVer 2.0.0, sections 2, 9 and 10: the parts of a version, and the text back."""
    for row in facts("valid"):
        version = Version.parse(row["text"])

        assert version.release == (row["major"], row["minor"], row["patch"]), row
        assert list(version.prerelease) == row["prerelease"], row
        assert list(version.build) == row["build"], row
        assert str(version) == row["text"]


def test_every_invalid_version_of_the_table_is_refused() -> None:
    """What SemVer 2.0.0 does not allow is not a version."""
    for row in facts("invalid"):
        with pytest.raises(ValueError, match="is not a semantic version"):
            Version.parse(row["text"])


def test_precedence_is_that_of_the_table() -> None:
    """SemVer 2.0.0, section 11; build metadata does not count (section 10)."""
    for row in facts("precedence"):
        a, b = Version.parse(row["a"]), Version.parse(row["b"])

        assert (a > b) - (a < b) == row["cmp"], row
        assert (a == b) is (row["cmp"] == 0), row


def test_every_range_of_the_table_holds_what_it_says() -> None:
    """The common range notation, row by row."""
    wrong = [
        row
        for row in facts("ranges")
        if satisfies(row["version"], row["range"]) is not row["satisfies"]
    ]

    assert wrong == []


def test_every_invalid_range_of_the_table_is_refused() -> None:
    """A text that is not a range raises ValueError, and names itself."""
    for row in facts("invalid_ranges"):
        with pytest.raises(ValueError, match="is not a version range"):
            VersionRange.parse(row["range"])


def test_bumps_are_those_of_the_table() -> None:
    """Raising a part sets the lower ones to zero and drops the labels."""
    for row in facts("bump"):
        assert str(Version.parse(row["version"]).bump(row["part"])) == row["result"], (
            row
        )


@pytest.mark.parametrize(
    ("version", "part", "result"),
    [
        ("2.0.0-rc.1", "major", "2.0.0"),
        ("2.1.0-rc.1", "major", "3.0.0"),
        ("2.1.0-rc.1", "minor", "2.1.0"),
        ("2.1.1-rc.1", "minor", "2.2.0"),
        ("2.1.1-rc.1", "patch", "2.1.1"),
    ],
)
def test_a_prerelease_is_raised_to_the_release_it_announces(
    version: str, part: str, result: str
) -> None:
    """As npm does: the announced release already raises the part."""
    assert str(Version.parse(version).bump(part)) == result


@pytest.mark.parametrize(
    ("version", "text", "expected"),
    [
        ("3.1.2", ">=3.0.0,<4.0.0", True),  # the contract document's form
        ("4.0.0", ">=3.0.0,<4.0.0", False),
        ("3.1.2", ">= 3.0.0 , < 4.0.0", True),
        ("4.0.0-rc.1", ">=3.0.0,<4.0.0", False),
        ("1.2.3", "", True),
        ("1.2.3", "  * ", True),
        ("1.3.0", ">1.2", True),  # npm: above all of 1.2.x
        ("1.2.9", ">1.2", False),
        ("1.3.0-alpha", ">1.2", False),
        ("1.2.9", "<=1.2", True),
        ("1.3.0", "<=1.2", False),
        ("1.2.0", "<1.2", False),
        ("1.1.9", "<1.2", True),
        ("1.2.0-alpha", "<1.2", False),
        ("0.0.0", "<*", False),
        ("9.9.9", ">*", False),
        ("9.9.9", ">=*", True),
        ("0.9.9", "^0", True),
        ("1.0.0", "^0", False),
        ("0.0.0", "^0.0.0", True),
        ("0.0.1", "^0.0.0", False),
        ("5.0.0", "^*", True),
        ("5.0.0", "~*", True),
        ("2.3.9", "1.2 - 2.3", True),
        ("2.4.0", "1.2 - 2.3", False),
        ("1.9.9", "1.2.3 - 2", True),
        ("2.9.9", "1.2.3 - 2", True),
        ("3.0.0", "1.2.3 - 2", False),
        ("1.2.3", "!=1.2.3", False),
        ("1.2.4", "!=1.2.3", True),
        ("1.2.3", "==1.2.*", True),
        ("1.2.3", "v1.2.3", True),
        ("1.2.3", ">=v1.2", True),
        ("1.2.3", "1.X", True),
        ("2.0.0-beta", "^1.0.0 >=2.0.0-alpha", False),
        ("2.0.0-beta", "^1.0.0 || >=2.0.0-alpha", True),
        ("9007199254740993.0.0", ">9007199254740992.9.9", True),
    ],
)
def test_ranges_beyond_the_table(version: str, text: str, expected: bool) -> None:
    """Partial versions, spaces, exclusions, and prereleases at the edges of partial
    versions.
    """
    assert satisfies(version, text) is expected


@pytest.mark.parametrize(
    "text",
    [
        ",",
        ">=1.0.0,",
        "1.0.0 ||",
        "|| 1.0.0",
        "~=1",
        "===1.0.0",
        "1.x.3",
        "x.1",
        "1.2-beta",
        "1.2.3 -",
        "- 1.2.3",
        "=>1.0.0",
        "1.2.3 & 1.2.4",
        "1" * 2000,
    ],
)
def test_a_text_that_is_not_a_range_is_refused(text: str) -> None:
    """Nothing is guessed: half a range is not a range."""
    with pytest.raises(ValueError, match="version range"):
        VersionRange.parse(text)


def test_a_range_keeps_its_text() -> None:
    """A range is shown as its author wrote it."""
    assert str(VersionRange.parse("^1.0")) == "^1.0"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1.2.3", "1.2.3"),
        ("1", "1.0.0"),
        ("1.0", "1.0.0"),
        ("v2", "2.0.0"),
        ("V2.1", "2.1.0"),
        ("v1.2.3", "1.2.3"),
        (" 1.2.3 ", "1.2.3"),
        ("=1.2.3", "1.2.3"),
        (1, "1.0.0"),
        (1.0, "1.0.0"),
        (2.5, "2.5.0"),
        ("1.0-beta", "1.0.0-beta"),
        ("1.0.0rc1", "1.0.0-rc.1"),
        ("1.0.0b2", "1.0.0-beta.2"),
        ("0.1.dev3", "0.1.0-dev.3"),
        ("2024.01.05", "2024.1.5"),
        (datetime.date(2024, 1, 5), "2024.1.5"),
        ("01.2.3", "1.2.3"),
        ("1.0+local", "1.0.0+local"),
    ],
)
def test_versions_in_the_wild_are_read(value: object, expected: str) -> None:
    """What people write, and what YAML makes of it."""
    assert str(read_version(value).version) == expected


def test_a_loose_version_comes_with_a_note_and_a_proper_one_without() -> None:
    """The reader says what it read, so that a diagnostic can pass it on."""
    assert read_version("1.2.3").note == ""
    assert read_version("v2").note == "'v2' was read as 2.0.0; write 2.0.0"
    assert "1.1 and 1.10 are the same" in read_version(1.1).note


@pytest.mark.parametrize(
    "value",
    [
        "",
        "latest",
        "1.2.3.4",
        "one",
        True,
        None,
        [],
        {},
        float("nan"),
        float("inf"),
        -1,
        -1.5,
        1e22,
        "1..2",
        "1.2.3_x",
        "9" * 300,
        datetime.datetime(2024, 1, 5, tzinfo=datetime.UTC),
    ],
)
def test_what_cannot_be_a_version_is_refused(value: object) -> None:
    """Lenient is not credulous."""
    with pytest.raises(ValueError, match="is not a"):
        read_version(value)


@pytest.mark.parametrize(
    ("requirement", "version", "fits"),
    [
        (">=3.0.0,<4.0.0", "3.1.2", True),
        (">=3.0.0,<4.0.0", "2.9.9", False),
        ("", "1.0.0", True),
        (">=3", "3.1", True),  # packaging reads partial versions
        ("~=3.1", "3.4.0", True),
        ("===3.1.2", "3.1.2", True),  # a form that only packaging has
        ("^3.0.0", "3.1.2", True),  # a form that only npm has
        (
            ">=1.0.0",
            "1.0.0-1",
            False,
        ),  # packaging reads a later post-release; SemVer a prerelease
        (">=1.0.0-alpha", "1.0.0-alpha.beta", True),  # packaging refuses the version
        (">=3.0.0,<4.0.0", "3.1.2+build.5", True),
        (">=3.0.0,<4.0.0", "3.1.0.post1", True),
    ],
)
def test_compatibility_check_is_that_of_the_contract_document(
    requirement: str, version: str, fits: bool
) -> None:
    """The function of the contract document, 31.5; SemVer decides where PEP 440 differs
    from it.
    """
    answer = check_skill_compatibility(requirement, version)

    sentence = f"Skill requires Hermes {requirement}, but current version is {version}"
    assert answer == ((True, "") if fits else (False, sentence))


@pytest.mark.parametrize(
    ("requirement", "version"),
    [(">>1", "1.0.0"), (">=1.0.0", "latest"), ("nonsense", "1!x")],
)
def test_compatibility_of_nonsense_raises_value_error(
    requirement: str, version: str
) -> None:
    """As packaging does: its own exceptions are ValueErrors."""
    with pytest.raises(ValueError):
        check_skill_compatibility(requirement, version)


@pytest.mark.processes
def test_importing_versions_does_not_import_packaging() -> None:
    """A plain start does not pay for what only one function needs."""
    code = (
        "import sys, skillruntime.contract.versions; sys.exit('packaging' in"
        " sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


identifiers = st.from_regex(
    r"\A(0|[1-9][0-9]{0,3}|[0-9]{0,3}[a-zA-Z-][0-9a-zA-Z-]{0,3})\Z"
)
numbers = st.integers(0, 3)
versions = st.builds(
    lambda release, labels, build: Version.parse(
        ".".join(map(str, release))
        + ("-" + ".".join(labels) if labels else "")
        + ("+" + ".".join(build) if build else "")
    ),
    st.tuples(numbers, numbers, numbers),
    st.lists(identifiers, max_size=2),
    st.lists(identifiers, max_size=1),
)


@given(versions, versions, versions)
def test_precedence_is_a_total_order(a: Version, b: Version, c: Version) -> None:
    """Exactly one of <, ==, > holds; order is transitive; equal versions hash alike."""
    assert (a < b) + (a == b) + (a > b) == 1
    assert not (a <= b <= c) or a <= c
    assert a != b or hash(a) == hash(b)


@given(versions)
def test_a_version_survives_its_text(version: Version) -> None:
    """parse and str are inverse, and the lenient reader agrees with the strict one."""
    assert str(Version.parse(str(version))) == str(version)
    assert read_version(str(version)).note == ""


@given(versions, st.sampled_from(["major", "minor", "patch"]))
def test_a_raised_version_is_higher_and_a_release(version: Version, part: str) -> None:
    """A bump always goes up."""
    raised = version.bump(part)

    assert raised > version
    assert not raised.is_prerelease


@given(versions, versions)
def test_comparators_agree_with_precedence(version: Version, bound: Version) -> None:
    """Among releases, every comparator says what the order says."""
    version, bound = Version(*version.release), Version(*bound.release)

    for operator, holds in {
        ">=": version >= bound,
        ">": version > bound,
        "<": version < bound,
        "<=": version <= bound,
        "=": version == bound,
        "!=": version != bound,
    }.items():
        assert (version in VersionRange.parse(f"{operator}{bound}")) is holds


@given(st.text(max_size=30))
def test_any_text_is_a_range_or_a_value_error(text: str) -> None:
    """Nothing else is ever raised."""
    for read in (Version.parse, VersionRange.parse, read_version):
        try:
            read(text)
        except ValueError:
            pass


@pytest.mark.parametrize(
    "version_range", ["1.2.3+build", "=1.2.3+other.7", ">=1.2.0+b <2.0.0+c", "1.2.x+b"]
)
def test_build_metadata_in_a_range_does_not_count(version_range: str) -> None:
    """SemVer 2.0.0, section 10: it has no precedence."""
    assert satisfies("1.2.3+mine", version_range)
