"""Parse and compare versions and version ranges: Semantic Versioning 2.0.0, and the
other forms that people write.

`Version.parse` accepts only SemVer; `read_version` also accepts other common forms and
reports how it read them. SemVer does not define ranges: a `VersionRange` is written as
in the contract document (``>=3.0.0,<4.0.0``) or as in npm (``^1.2``, ``~1.2.3``,
``1.x``, ``1.2.3 - 2.3.4``, ``||``).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import total_ordering
from typing import Any, NamedTuple, TypeAlias

from skillruntime.lazy_patterns import lazy_pattern

__all__ = [
    "Version",
    "VersionRange",
    "check_skill_compatibility",
    "read_version",
    "same_line",
    "satisfies",
]

_MAX_LENGTH = 256
_NUMBER = r"0|[1-9][0-9]*"
# SemVer 2.0.0, section 9: a numeric identifier has no leading zero.
_IDENTIFIER = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_PRERELEASE = rf"(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?"
_BUILD = r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
_VERSION = lazy_pattern(rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER}){_PRERELEASE}{_BUILD}")


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """One version, ordered by precedence (SemVer 2.0.0, section 11).

    Build metadata does not count (section 10): two versions that differ only in it are
    equal, but each keeps its text.

    >>> Version.parse("1.0.0-rc.1") < Version.parse("1.0.0")
    True
    >>> Version.parse("1.0.0") == Version.parse("1.0.0+build.7")
    True
    >>> str(Version.parse("1.2.3-beta.2+5").bump("minor"))
    '1.3.0'
    """

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()
    _order: tuple[Any, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # SemVer 2.0.0, section 11.4: numbers sort below words, a longer list above its
        # own beginning, and a release above its prereleases.
        identifiers = tuple(map(_identifier_order, self.prerelease))
        object.__setattr__(
            self,
            "_order",
            (self.major, self.minor, self.patch, not self.prerelease, identifiers),
        )

    @classmethod
    def parse(cls, text: str) -> Version:
        """Parse *text*, of at most 256 characters, as a version.

        Raises:
            ValueError: *text* is not a version by SemVer 2.0.0.
        """
        match = None
        if isinstance(text, str) and len(text) <= _MAX_LENGTH:
            match = _VERSION.fullmatch(text)
        if match is None:
            raise ValueError(
                f"{str(text)[:60]!r} is not a semantic version; write "
                "MAJOR.MINOR.PATCH, such as 1.4.0"
            )
        major, minor, patch, prerelease, build = match.groups()
        return cls(
            int(major),
            int(minor),
            int(patch),
            tuple(map(_identifier, prerelease.split("."))) if prerelease else (),
            tuple(build.split(".")) if build else (),
        )

    @property
    def release(self) -> tuple[int, int, int]:
        """``(major, minor, patch)``."""
        return (self.major, self.minor, self.patch)

    @property
    def is_prerelease(self) -> bool:
        """Whether the version comes before the release of the same numbers."""
        return bool(self.prerelease)

    def bump(self, part: str) -> Version:
        """Return the next version with *part* (``major``, ``minor`` or ``patch``)
        raised, without labels.

        A prerelease becomes its own release if that already raises *part*: 2.0.0-rc.1
        -> 2.0.0.
        """
        major, minor, patch = self.release
        match part.lower():
            case "major":
                is_announced = self.is_prerelease and (minor, patch) == (0, 0)
                return Version(major if is_announced else major + 1, 0, 0)
            case "minor":
                is_announced = self.is_prerelease and patch == 0
                return Version(major, minor if is_announced else minor + 1, 0)
            case "patch":
                return Version(major, minor, patch if self.is_prerelease else patch + 1)
            case _:
                raise ValueError(
                    f"{part!r} is not a part of a version; send major, minor or patch"
                )

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        if self.build:
            text += "+" + ".".join(self.build)
        return text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self._order == other._order

    def __lt__(self, other: Version) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self._order < other._order

    def __hash__(self) -> int:
        return hash(self._order)


def _identifier(text: str) -> int | str:
    """Return an identifier of a prerelease, as a number if it is numeric."""
    return int(text) if text.isdecimal() else text


def _identifier_order(identifier: int | str) -> tuple[int, int, str]:
    if isinstance(identifier, int):
        return (0, identifier, "")
    return (1, 0, identifier)


def same_line(current: Version, stated: Version) -> bool:
    """Return whether *stated* and *current* have the same MAJOR, and below 1.0.0 also
    the same MINOR.
    """
    if current.major != stated.major:
        return False
    # SemVer 2.0.0, section 4: below 1.0.0 anything may change, in practice with a new
    # minor version.
    return current.major > 0 or current.minor == stated.minor


class VersionReading(NamedTuple):
    """The version read from an informal text or number; ``note`` says how it was read,
    and is empty for a proper version.
    """

    version: Version
    note: str = ""


_LOOSE = lazy_pattern(
    r"[vV=]{0,2}\.?\s*([0-9]{1,18})(?:\.([0-9]{1,18}))?(?:\.([0-9]{1,18}))?"
    r"(?:[-._]?(a|b|c|rc|alpha|beta|pre|preview|dev)[-._]?([0-9]{0,18})"
    r"|-([0-9A-Za-z.-]+))?"
    r"(?:\+([0-9A-Za-z.-]+))?",
    re.IGNORECASE,
)
_LABELS = {"a": "alpha", "b": "beta", "c": "rc", "pre": "rc", "preview": "rc"}


def read_version(value: Any) -> VersionReading:
    """Return the version meant by *value*, and a note if *value* is not a proper
    version.

    Accepted forms are ``1``, ``1.0``, ``v2``, ``1.0.0rc1``, ``2024.01.05``, and the
    numbers and dates that YAML reads from such texts.

    >>> read_version("1.2.3").note, str(read_version("v2").version)
    ('', '2.0.0')
    >>> read_version(2).note
    "the number 2 was read as 2.0.0; write it in quotes, as '2.0.0'"

    Raises:
        ValueError: *value* cannot be a version.
    """
    if isinstance(value, str):
        text = value.strip()
        label = f"{value[:60]!r}"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        text = repr(value)
        label = f"the number {value!r}"
    elif type(value).__name__ == "date":
        # A date, which YAML reads from 2024-01-05; importing datetime only for this is
        # not worth it.
        text = f"{value.year}.{value.month}.{value.day}"
        label = f"the date {value}"
    else:
        raise _not_a_version(str(value))
    try:
        version = Version.parse(text)
    except ValueError:
        version = _read_loosely(text)
    if value == str(version):
        return VersionReading(version)
    note = f"{label} was read as {version}; write "
    note += f"{version}" if isinstance(value, str) else f"it in quotes, as '{version}'"
    if isinstance(value, float):
        note += f" (as numbers, {value!r} and {value!r}0 are the same)"
    return VersionReading(version, note)


def _read_loosely(text: str) -> Version:
    match = None
    if len(text) <= _MAX_LENGTH:
        match = _LOOSE.fullmatch(text)
    if match is None:
        raise _not_a_version(text)
    *numbers, label, counter, prerelease, build = match.groups()
    version = ".".join(str(int(number or 0)) for number in numbers)
    if label:
        prerelease = _LABELS.get(label.lower(), label.lower())
        if counter:
            prerelease += f".{int(counter)}"
    if prerelease:
        version += f"-{prerelease}"
    if build:
        version += f"+{build}"
    return Version.parse(version)


def _not_a_version(text: str) -> ValueError:
    return ValueError(
        f"{text[:60]!r} is not a version; write MAJOR.MINOR.PATCH, such as 1.4.0"
    )


_HOLDS: dict[str, Callable[[Version, Version], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
}
# A version must satisfy every one of these comparisons.
_Comparators: TypeAlias = tuple[tuple[str, Version], ...]
_NOTHING: _Comparators = (("<", Version(0, 0, 0, (0,))),)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A set of versions that keeps its text as it was written.

    A prerelease lies in a range only if one of the bounds is a prerelease of the same
    MAJOR.MINOR.PATCH.

    >>> Version.parse("3.1.2") in VersionRange.parse(">=3.0.0,<4.0.0")
    True
    >>> "2.0.0-rc.1" in VersionRange.parse("^1.2 || 2.x")
    False
    """

    text: str
    _alternatives: tuple[_Comparators, ...] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """Parse *text* as a range; an empty text or ``*`` means every release.

        Comparators ``< <= > >= = == != ^ ~ ~>`` are joined by commas or spaces,
        alternatives by ``||``; ``1.2 - 2.3`` includes both ends; a missing part or
        ``x`` matches any number.

        Raises:
            ValueError: *text* is not a range.
        """
        if not isinstance(text, str):
            raise ValueError(
                f"{text!r:.60} is not a version range; write one such as "
                "'>=1.0.0,<2.0.0'"
            )
        if len(text) > _MAX_LENGTH * 4:
            raise ValueError(f"a version range of {len(text)} characters is too long")
        alternatives = text.split("||")
        if len(alternatives) > 1 and not all(map(str.strip, alternatives)):
            raise ValueError(
                f"{text[:60]!r} is not a version range: one side of '||' is empty"
            )
        parsed = [_parse_alternative(alternative, text) for alternative in alternatives]
        return cls(text, tuple(parsed))

    @classmethod
    def between(cls, low: Version | None, high: Version) -> VersionRange:
        """Return the range from *low* (by default the lowest version) up to but
        excluding *high*.
        """
        if low is None:
            return cls.parse(f"<{high}")
        return cls.parse(f">={low},<{high}")

    def __contains__(self, version: Version | str) -> bool:
        return self.holds(version)

    def holds(self, version: Version | str) -> bool:
        """Return whether *version* lies in the range."""
        if not isinstance(version, Version):
            version = Version.parse(version)
        for comparators in self._alternatives:
            if version.is_prerelease and not _names_prerelease(comparators, version):
                continue
            if all(_HOLDS[sign](version, bound) for sign, bound in comparators):
                return True
        return False

    def __str__(self) -> str:
        return self.text

    @property
    def bounds(self) -> tuple[Version, ...]:
        """All versions at which a part of the range begins or ends."""
        bounds: list[Version] = []
        for comparators in self._alternatives:
            bounds += [bound for _, bound in comparators]
        return tuple(bounds)


def _names_prerelease(comparators: _Comparators, version: Version) -> bool:
    """Return whether a bound is a prerelease of the same numbers as *version*."""
    for sign, bound in comparators:
        if bound.is_prerelease and sign != "!=" and bound.release == version.release:
            return True
    return False


def satisfies(version: str, version_range: str) -> bool:
    """Return whether *version* is in *version_range*, both as text; see `VersionRange`.

    >>> satisfies("1.9.0", "^1.2.3")
    True
    """
    return version in VersionRange.parse(version_range)


def check_skill_compatibility(
    skill_hermes_requirement: str, current_hermes_version: str
) -> tuple[bool, str]:
    """Return whether a skill fits the current runtime version, and if not, why.

    This uses `packaging`, as the contract document does. SemVer decides instead where
    PEP 440 reads a prerelease or build differently or not at all (``1.0.0-alpha.beta``,
    ``1.0.0-1``), and for npm's ranges.

    >>> check_skill_compatibility(">=3.0.0,<4.0.0", "3.1.2")
    (True, '')
    >>> check_skill_compatibility(">=3.0.0,<4.0.0", "4.0.0")
    (False, 'Skill requires Hermes >=3.0.0,<4.0.0, but current version is 4.0.0')

    Raises:
        ValueError: the requirement or the version is invalid by both readings.
    """
    for text in (skill_hermes_requirement, current_hermes_version):
        if not isinstance(text, str):
            raise TypeError(
                "a requirement and a version are texts, such as '>=3.0.0' and '3.1.2'"
            )
    if not current_hermes_version.strip():
        raise ValueError("the current version is empty; give one such as '3.1.2'")
    if _is_within(current_hermes_version, skill_hermes_requirement):
        return True, ""
    return (
        False,
        f"Skill requires Hermes {skill_hermes_requirement}, but current version is "
        f"{current_hermes_version}",
    )


def _is_within(version: str, requirement: str) -> bool:
    # Imported here, because the imports take 15 ms that a plain start does not need.
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import Version as PythonVersion

    try:
        current = Version.parse(version)
        if current.prerelease or current.build:
            return current in VersionRange.parse(requirement)
    except ValueError:  # a form of PEP 440 only
        pass
    try:
        return PythonVersion(version) in SpecifierSet(requirement)
    except InvalidSpecifier:
        return satisfies(version, requirement)


_WILD = ("x", "X", "*")
_PART = rf"({_NUMBER}|[xX*])"
_PARTIAL = lazy_pattern(
    rf"[vV]?{_PART}(?:\.{_PART})?(?:\.{_PART}(?:{_PRERELEASE}{_BUILD}))?"
)
_COMPARATOR = lazy_pattern(r"(<=|>=|<|>|==?|!=|\^|~>|~)?\s*([^\s,<>=!^~]+)")
_SEPARATOR = lazy_pattern(r"\s*,\s*|\s+")
_HYPHEN = lazy_pattern(r"\s*(\S+)\s+-\s+(\S+)\s*")


def _parse_alternative(text: str, whole: str) -> _Comparators:
    try:
        hyphen = _HYPHEN.fullmatch(text)
        if hyphen:
            return (
                *_comparators(">=", _Partial.parse(hyphen[1])),
                *_comparators("<=", _Partial.parse(hyphen[2])),
            )
        return _parse_comparators(text.strip())
    except ValueError as error:
        raise ValueError(f"{whole[:60]!r} is not a version range: {error}") from None


def _parse_comparators(text: str) -> _Comparators:
    comparators: list[tuple[str, Version]] = []
    position = 0
    while position < len(text):
        match = _COMPARATOR.match(text, position)
        if match is None:
            raise ValueError(
                f"{text[position : position + 20]!r} is not a comparator with a version"
            )
        sign = match[1] or "="
        if sign == "==":
            sign = "="
        comparators += _comparators(sign, _Partial.parse(match[2]))
        position = match.end()
        separator = _SEPARATOR.match(text, position)
        if separator:
            position = separator.end()
            if position == len(text):
                raise ValueError("nothing follows the comma")
    return tuple(comparators)


class _Partial(NamedTuple):
    """A version whose last parts may be left open: ``1``, ``1.2``, ``1.2.x``,
    ``1.2.3-rc.1``, ``*``.
    """

    first: Version
    known: int

    @classmethod
    def parse(cls, text: str) -> _Partial:
        match = _PARTIAL.fullmatch(text)
        if match is None:
            raise ValueError(f"{text[:60]!r} is not a version")
        parts = [part for part in match.groups()[:3] if part is not None]
        numbers = [int(part) for part in parts if part not in _WILD]
        if parts[: len(numbers)] != [str(number) for number in numbers]:
            raise ValueError(f"{text[:60]!r} has a number after an open part")
        if len(numbers) == 3:
            return cls(Version.parse(text.lstrip("vV")), 3)
        # Build metadata is ignored: it does not affect precedence (SemVer, section 10).
        prerelease = match[4]
        if prerelease:
            raise ValueError(
                f"{text[:60]!r} has a prerelease label, but not all three numbers"
            )
        major, minor, patch = (*numbers, 0, 0, 0)[:3]
        return cls(Version(major, minor, patch), len(numbers))

    def raised(self, part: int) -> Version:
        """Return the lowest version whose *part* (1 major, 2 minor, 3 patch) is one
        higher: for ``1.2`` and 2, 1.3.0-0.
        """
        major, minor, patch = self.first.release
        match part:
            case 1:
                return Version(major + 1, 0, 0, (0,))
            case 2:
                return Version(major, minor + 1, 0, (0,))
            case _:
                return Version(major, minor, patch + 1, (0,))

    @property
    def leading(self) -> int:
        """The first part that is not 0 (1 major, 2 minor, 3 patch), else the last known
        part.
        """
        for part, number in enumerate(self.first.release[: self.known], start=1):
            if number:
                return part
        return self.known


def _comparators(sign: str, partial: _Partial) -> _Comparators:
    """Return the comparisons that *sign* before *partial* stands for; `*` matches every
    version, and no version is above or below it.
    """
    first = partial.first
    known = partial.known
    if known == 0:
        return _NOTHING if sign in ("<", ">", "!=") else ()
    # Allow versions up to the next change of the first part that is not 0.
    if sign == "^":
        return (">=", first), ("<", partial.raised(partial.leading))
    # Allow changes of the patch, or of the minor if only the major is given.
    if sign in ("~", "~>"):
        return (">=", first), ("<", partial.raised(min(known, 2)))
    if known == 3:
        return ((sign, first),)
    after = partial.raised(known)
    match sign:
        case "=":
            return (">=", first), ("<", after)
        case "<=":
            return (("<", after),)
        case ">":
            return ((">=", Version(*after.release)),)
        case "<":
            return (("<", Version(*first.release, (0,))),)
        case "!=":
            raise ValueError("'!=' needs all three numbers")
    return ((sign, first),)
