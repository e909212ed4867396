"""Find the skills in installed packages: ``PACKAGE/.agents/skills/NAME/SKILL.md``, as
FastAPI, Typer and Streamlit ship them.

They are untrusted, and only searched for when a host asks. A skill counts only if its
distribution's RECORD lists its SKILL.md (PyPA, "Recording installed projects"), and
only while the file has the digest in the RECORD. The same applies to every other file
of the skill when it is read, or copied to run.
"""

from __future__ import annotations

import os
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from skillruntime.catalog.discovery.root_snapshot import Entry, Root, Snapshot
from skillruntime.catalog.file_opening import read_inside, read_regular
from skillruntime.contract.closest_names import closest_names
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError

if TYPE_CHECKING:
    from skillruntime.catalog.skill import Skill

__all__ = ["PLACE", "check_recorded", "installed_roots", "with_recorded_only"]

PLACE = ".agents/skills"
"""The directory of a package's skills, relative to the package's directory."""

MAX_RECORD = 64 * 1024 * 1024
MAX_FILE = 4 * 1024 * 1024
_MAX_BESIDE = 256 * 1024 * 1024
# PEP 427: "sha256 or better"; in practice always sha256.
_ALGORITHMS = frozenset({"sha256", "sha384", "sha512"})

Recorded = tuple[str, str]
"""An algorithm and a digest, as written in a RECORD."""


def installed_roots(
    packages: bool | str | Iterable[str] = True, *, missing_ok: bool = False
) -> list[Root]:
    """Return the roots of the skills in installed packages, in the order of
    ``sys.path`` and of the packages' names.

    *packages* is the name of a distribution, several names in the wanted order, or
    ``True`` for all.

    Raises:
        FileNotFoundError: a named package has no skills; with *missing_ok* it is left
            out.
    """
    if packages is False:
        return []
    roots_of = _roots_by_distribution()
    if packages is True:
        return list(chain.from_iterable(roots_of.values()))
    if isinstance(packages, str):
        packages = [packages]
    names = {_normalized(name): name for name in packages}
    for name, written in names.items():
        if name not in roots_of and not missing_ok:
            close = closest_names(name, roots_of, 3)
            if close:
                hint = f"did you mean {', '.join(close)}?"
            else:
                hint = "install it, or pass missing_ok=True"
            raise FileNotFoundError(
                f"No installed package {written!r} has skills in {PLACE} in its "
                f"RECORD; {hint}"
            )
    return list(chain.from_iterable(roots_of.get(name, ()) for name in names))


def _roots_by_distribution() -> dict[str, list[Root]]:
    """Return the roots of each distribution on ``sys.path``, by its normalized name."""
    directories: dict[str, None] = {}
    for path in sys.path:
        if path and os.path.isdir(path):
            directories[os.path.abspath(path)] = None
    roots_of: dict[str, list[Root]] = {}
    for directory in directories:
        # A distribution can hold several packages.
        roots_here: dict[str, list[Root]] = {}
        for root in _roots_in(directory):
            roots_here.setdefault(root.scope, []).append(root)
        for name, roots in roots_here.items():
            # As in Python's imports, the first distribution on the path wins.
            roots_of.setdefault(name, roots)
    return roots_of


def with_recorded_only(snapshot: Snapshot) -> Snapshot:
    """Return *snapshot* without the skills that differ from the RECORD of their
    distribution, and with the distribution's version in each entry.
    """
    root = snapshot.root
    if not root.record:
        return snapshot
    recorded = dict(_lines(root.record, _below(root)))
    faults: dict[int, Diagnostic] = {}
    entries: list[Entry] = []
    for position, entry in enumerate(snapshot.entries):
        version = root.version or entry.version
        entries.append(entry._replace(version=version, root=root))
        if not entry.name:
            continue  # already reported as invalid
        fault = _fault(entry.file, recorded.get(_relative(entry.file, root)))
        if fault is None:
            continue
        faults[position] = Diagnostic(
            "record-mismatch",
            Severity.ERROR,
            entry.file,
            f"{fault}; skipped",
            hint=_HINT,
        )
    return snapshot._replace(entries=entries).without(faults, faults.values())


def check_recorded(root: Root, skill: Skill) -> Mapping[str, str]:
    """Return the SHA-256 of each file of *skill* that the RECORD of *root*'s
    distribution lists, by its path.

    Raises:
        InvalidSkillError: the SKILL.md differs from the RECORD.
    """
    import hashlib

    directory, own_name = os.path.split(skill.metadata.path)
    below = f"{_relative(directory, root)}/"
    digests: dict[str, str] = {}
    for path, recorded in _lines(root.record, below):
        name = path.removeprefix(below)
        algorithm, digest = recorded
        try:
            if name == own_name:
                data = skill.data
            elif algorithm == "sha256":
                digests[name] = urlsafe_b64decode(f"{digest}=").hex()
                continue
            else:
                data = read_inside(directory, name, _MAX_BESIDE)
            if _digest(data, algorithm) == recorded:
                digests[name] = hashlib.sha256(data).hexdigest()
        except (OSError, ValueError):
            continue  # a file without a usable digest is refused when it is read
    if own_name not in digests:
        raise InvalidSkillError(
            f"The SKILL.md of {skill.name!r} differs from the RECORD of its package",
            suggested_action="Continue without this skill",
        )
    return digests


_HINT = "reinstall the package"


def _fault(path: str, recorded: Recorded | None) -> str | None:
    if recorded is None:
        return "the RECORD of its package does not list it"
    try:
        data = read_regular(path, MAX_FILE)
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    algorithm, _ = recorded
    if _digest(data, algorithm) == recorded:
        return None
    shown = algorithm.upper().replace("SHA", "SHA-")
    return f"its bytes differ from the {shown} in the RECORD of its package"


def _digest(data: bytes, algorithm: str) -> Recorded:
    import hashlib

    digest = hashlib.new(algorithm, data).digest()
    return algorithm, urlsafe_b64encode(digest).rstrip(b"=").decode()


def _site(record: str) -> str:
    """Return the directory of packages that contains the dist-info of *record*."""
    return os.path.dirname(os.path.dirname(record))


def _below(root: Root) -> str:
    return f"{_relative(root.path, root)}/"


def _relative(path: str, root: Root) -> str:
    return path.removeprefix(f"{_site(root.record)}/")


def _lines(record: str, below: str) -> Iterator[tuple[str, Recorded]]:
    """Yield the paths in a RECORD that begin with *below*, each with its digest. Paths
    without a digest are left out.
    """
    import csv

    try:
        data = read_regular(record, MAX_RECORD)
    except OSError:
        return
    # Search the bytes first, because decoding them would take ten times as long.
    if os.fsencode(below) not in data:
        return
    lines = data.decode("utf-8", "replace").splitlines()
    for path, *rest in csv.reader([line for line in lines if below in line]):
        if not rest or not path.startswith(below):
            continue
        algorithm, _, digest = rest[0].partition("=")
        if digest and algorithm in _ALGORITHMS:
            yield path, (algorithm, digest.rstrip("="))


def _names_in(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as children:
            return sorted(child.name for child in children)
    except (OSError, ValueError):
        return []


def _roots_in(directory: str) -> Iterator[Root]:
    """Yield the roots in one directory of packages, sorted by the package's name."""
    names = _names_in(directory)
    metadata = {
        name: _distribution(name) for name in names if name.endswith(".dist-info")
    }
    if not metadata:
        return
    for holder in names:
        place = f"{directory}/{holder}/{PLACE}"
        # Ask the file system once for each package; reading every RECORD would take a
        # hundred times as long.
        if "." in holder or not os.path.isdir(place):
            continue
        missing = {
            f"{holder}/{PLACE}/{name}/SKILL.md"
            for name in _names_in(place)
            if os.path.isfile(f"{place}/{name}/SKILL.md")
        }
        for candidate in _likely_first(metadata, holder):
            if not missing:
                break  # the distribution of every skill is known
            record = f"{directory}/{candidate}/RECORD"
            listed = dict(_lines(record, f"{holder}/{PLACE}/"))
            if listed:
                version = candidate.removesuffix(".dist-info").partition("-")[2]
                yield Root(
                    place, scope=metadata[candidate], version=version, record=record
                )
                missing -= listed.keys()


def _likely_first(metadata: Mapping[str, str], package: str) -> Iterable[str]:
    """Return the keys of *metadata*, starting with those whose distribution probably
    contains *package*.

    Usually the distribution has the package's name, or a longer one, such as
    pydantic-ai-slim.
    """
    wanted = _normalized(package)
    equal: list[str] = []
    longer: list[str] = []
    for name, distribution in metadata.items():
        if distribution == wanted:
            equal.append(name)
        elif distribution.startswith(f"{wanted}-"):
            longer.append(name)
    return dict.fromkeys((*equal, *longer, *metadata))


def _distribution(metadata: str) -> str:
    """Return the normalized name of the distribution whose ``NAME-VERSION.dist-info``
    is *metadata*.
    """
    return _normalized(metadata.removesuffix(".dist-info").partition("-")[0])


def _normalized(name: str) -> str:
    """Return *name* as PEP 503 normalizes it."""
    text = name.lower().replace("_", "-").replace(".", "-")
    while "--" in text:
        text = text.replace("--", "-")
    return text
