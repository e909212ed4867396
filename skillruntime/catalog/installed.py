"""Skills in installed packages: ``PACKAGE/.agents/skills/NAME/SKILL.md``, as FastAPI, Typer and Streamlit ship them.

They are untrusted, and only looked for when a host asks. A skill counts only if its distribution's RECORD lists its
SKILL.md (PyPA, "Recording installed projects"), and only while the file has the SHA-256 that is written there.
"""

from __future__ import annotations

import os
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from dataclasses import replace

from skillruntime.catalog.file_opening import read_regular
from skillruntime.catalog.root_snapshot import Root, Snapshot
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["PLACE", "installed_roots", "is_recorded", "with_recorded_only"]

PLACE = ".agents/skills"
"""Where a package keeps its skills, below its directory."""

MAX_RECORD = 64 * 1024 * 1024
MAX_FILE = 4 * 1024 * 1024


def installed_roots(
    packages: bool | str | Iterable[str] = True,
    *,
    environment: str | os.PathLike[str] | None = None,
    missing_ok: bool = False,
) -> list[Root]:
    """Return the roots of the skills in installed packages, in the order of ``sys.path`` and of the packages' names.

    *packages* is the name of a distribution, or several in the order that they shall have, or ``True`` for all.
    *environment* is the directory of a virtual environment; by default it is the running one.

    Raises:
        FileNotFoundError: *environment* does not exist, or a package that is named has no skills; with *missing_ok* it
            is left out.
    """
    if packages is False:
        return []
    found: dict[str, list[Root]] = {}
    for directory in _site_directories(environment):
        here: dict[str, list[Root]] = {}
        for root in _roots_in(directory):
            here.setdefault(root.scope, []).append(root)  # a distribution can hold several packages
        for name, roots in here.items():
            found.setdefault(name, roots)  # as Python imports: the first on the path
    if packages is True:
        return [root for roots in found.values() for root in roots]
    names = {_normalized(name): name for name in ([packages] if isinstance(packages, str) else packages)}
    for name, written in names.items():
        if name not in found and not missing_ok:
            raise FileNotFoundError(_why_missing(name, written, found, environment))
    return [root for name in names for root in found.get(name, ())]


def with_recorded_only(snapshot: Snapshot) -> Snapshot:
    """Return *snapshot* without the skills that differ from the RECORD of their distribution, and with its version."""
    root = snapshot.root
    if not root.record:
        return snapshot
    digests = _recorded(root)
    faults: dict[int, Diagnostic] = {}
    for position, entry in enumerate(snapshot.entries):
        # An entry without a name is invalid anyway, and reported.
        if entry.name and (fault := _fault(entry.file, digests.get(_relative(entry.file, root)))) is not None:
            message = f"{fault}; skipped"
            faults[position] = Diagnostic("record-mismatch", Severity.ERROR, entry.file, message, hint=_HINT)
    kept = snapshot.without(faults, faults.values())
    own = [each._replace(version=root.version or each.version, root=root) for each in kept.entries]
    return replace(kept, entries=own)


def is_recorded(root: Root, path: str, data: bytes) -> bool:
    """Whether *data* are what the RECORD of *root*'s distribution has for the file *path*; true without a RECORD."""
    return not root.record or _recorded(root).get(_relative(path, root)) == _digest(data)


def _why_missing(name: str, written: str, found: Iterable[str], environment: str | os.PathLike[str] | None) -> str:
    from importlib.metadata import distributions  # a hundred times slower than the search, and only for an error

    from skillruntime.catalog.closest_names import closest_names

    there = {_normalized(each.name) for each in distributions(path=_site_directories(environment)) if each.name}
    if name in there:
        return (
            f"The package {written!r} is installed, but its RECORD lists no {PLACE}/NAME/SKILL.md; of an editable "
            "install, pass the directory of its skills as a root"
        )
    close = closest_names(name, found, 3) or closest_names(name, there, 3)
    hint = f"did you mean {', '.join(close)}?" if close else "install it, or pass missing_ok=True"
    return f"There is no installed package {written!r}; {hint}"


_HINT = "reinstall the package"


def _fault(path: str, digest: str | None) -> str | None:
    if digest is None:
        return "the RECORD of its package does not list it"
    try:
        data = read_regular(path, MAX_FILE)
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    return None if _digest(data) == digest else "its bytes differ from the SHA-256 in the RECORD of its package"


def _digest(data: bytes) -> str:
    import hashlib

    return urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _recorded(root: Root) -> dict[str, str]:
    """Return the SHA-256 of each file below *root*, by its path from the directory that holds the packages."""
    prefix = f"{os.path.basename(os.path.dirname(os.path.dirname(root.path)))}/{PLACE}/"  # noqa: PTH119, PTH120
    return dict(_lines(root.record, prefix))


def _lines(record: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the digest of the lines of a RECORD that begin with *prefix*."""
    import csv

    try:
        text = read_regular(record, MAX_RECORD).decode("utf-8", "replace")
    except OSError:
        return
    wanted = [line for line in text.splitlines() if line.startswith((prefix, f'"{prefix}'))]
    for row in csv.reader(wanted):
        if len(row) >= 2 and row[1].startswith("sha256="):
            yield row[0], row[1].removeprefix("sha256=")


def _relative(path: str, root: Root) -> str:
    above = os.path.dirname(os.path.dirname(os.path.dirname(root.path)))  # noqa: PTH120
    return path.removeprefix(above).lstrip("/")


def _roots_in(directory: str) -> Iterator[Root]:
    """Yield the roots in one directory of packages, by the name of the package."""
    try:
        with os.scandir(directory) as children:
            names = sorted(child.name for child in children)
    except (OSError, ValueError):
        return
    # One question to the file system for each package; reading every RECORD would take a hundred times as long.
    holders = [name for name in names if "." not in name and os.path.isdir(f"{directory}/{name}/{PLACE}")]  # noqa: PTH112
    if not holders:
        return
    metadata = [name for name in names if name.endswith(".dist-info")]
    for holder in holders:
        # Usually the distribution has the package's name: it is asked first.
        own = [name for name in metadata if _normalized(name.partition("-")[0]) == _normalized(holder)]
        for candidate in dict.fromkeys((*own, *metadata)):
            record = f"{directory}/{candidate}/RECORD"
            if next(_lines(record, f"{holder}/{PLACE}/"), None) is not None:
                name, _, version = candidate.removesuffix(".dist-info").partition("-")
                path = f"{directory}/{holder}/{PLACE}"
                yield Root(path, scope=_normalized(name), version=version, record=record)
                break


def _site_directories(environment: str | os.PathLike[str] | None) -> list[str]:
    if environment is None:
        return list(dict.fromkeys(os.path.abspath(path) for path in sys.path if path and os.path.isdir(path)))  # noqa: PTH100, PTH112
    base = os.path.abspath(os.path.expanduser(os.fsdecode(environment)))  # noqa: PTH100, PTH111
    if not os.path.isdir(base):  # noqa: PTH112
        raise FileNotFoundError(f"There is no virtual environment {base!r}")
    places = [f"{base}/Lib/site-packages"]  # Windows
    for library in ("lib", "lib64"):
        if os.path.isdir(f"{base}/{library}"):  # noqa: PTH112
            versions = sorted(name for name in os.listdir(f"{base}/{library}") if name.startswith("python"))  # noqa: PTH208
            places += [f"{base}/{library}/{version}/site-packages" for version in versions]
    real = {os.path.realpath(place): place for place in reversed(places) if os.path.isdir(place)}  # noqa: PTH112
    return list(real.values())[::-1]


def _normalized(name: str) -> str:
    """Return *name* as PEP 503 normalizes it."""
    text = name.lower().replace("_", "-").replace(".", "-")
    while "--" in text:
        text = text.replace("--", "-")
    return text
