"""Read the contracts for ``skillruntime diff``: from a file, a skill, a directory of
skills, or any of them in git.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import click

from skillruntime.catalog.contracts.contract_files import (
    decode_text,
    read_contract_files,
)
from skillruntime.catalog.frontmatter.yaml_reader import load_yaml
from skillruntime.contract import Contract
from skillruntime.errors import InvalidSkillError

__all__ = ["Source", "parse_document", "read_sources"]

_OWN = ("contract.json", "contract.yaml", "contract.yml", "contracts")
_GIT_SECONDS = (
    60  # a network file system may be slow; a prompt for a password would wait forever
)


@dataclass(frozen=True, slots=True)
class Source:
    """The contracts of one side by callable name, and the version of each; *is_single*:
    one file, or one skill. *broken* are the contracts of a directory of skills that
    cannot be read, with the reasons.
    """

    contracts: dict[str, Contract]
    versions: dict[str, str] = field(default_factory=dict)
    is_single: bool = False
    broken: dict[str, str] = field(default_factory=dict)


def read_sources(old: str, new: str) -> tuple[Source, Source]:
    """Return the contracts of both sides; a revision without a path (``v1.0``) means
    the other side's path in it.

    Raises:
        click.UsageError: one of them is neither a path nor a revision.
        InvalidSkillError: the contract of a file or a skill cannot be read; those of a
            directory of skills are in `Source.broken`.
    """
    # "diff v1.0 skills/digest": the revision alone means the same path in it.
    existing = new if os.path.exists(new) else old  # noqa: PTH110 - False for any text
    with tempfile.TemporaryDirectory(prefix="skillruntime-diff-") as scratch:
        # The new side first: "diff HEAD nope.json" is not about HEAD.
        after, before = (
            _read(_located(spec, existing, Path(scratch, str(n))))
            for n, spec in enumerate((new, old))
        )
    return before, after


def _located(spec: str, existing: str, scratch: Path) -> Path:
    # A path wins over a revision of the same name, as in "git checkout".
    if os.path.exists(spec):  # noqa: PTH110
        return Path(spec)
    revision, _, path = spec.partition(":")
    wanted = Path(path or existing).absolute()
    start = next(
        (parent for parent in (wanted, *wanted.parents) if parent.is_dir()), Path.cwd()
    )
    root = Path(_git(start, "rev-parse", "--show-toplevel").decode().strip() or ".")
    # --end-of-options: a revision that starts with "-" must not become an option of
    # git.
    commit = _git(
        start,
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        f"{revision}^{{commit}}",
    )
    if not revision or not commit:
        raise click.UsageError(
            f"{spec[:200]!r} is neither a file, a directory nor a git revision "
            "(REVISION or REVISION:PATH)"
        )
    relative = wanted.resolve().relative_to(root.resolve()).as_posix()
    # An archive, and not a checkout: the work tree stays as it is, and a bare
    # repository works too.
    archive = _git(
        root, "archive", "--format=tar", commit.decode().strip(), "--", relative
    )
    if not archive:
        raise click.UsageError(f"{relative!r} is not in revision {revision!r}")
    scratch.mkdir()
    _write_files(archive, scratch)
    return scratch / relative


def _write_files(archive: bytes, directory: Path) -> None:
    """Write the regular files of the tar *archive* below *directory*.

    The revision may be untrusted: no link is made, and no path leaves the directory.
    `TarFile.extractall` has a filter for that (PEP 706) only since Python 3.11.4.
    """
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        for member in members:
            name = PurePosixPath(member.name)
            content = members.extractfile(member) if member.isfile() else None
            if content is None or name.is_absolute() or ".." in name.parts:
                continue
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())


def _git(directory: Path, *arguments: str) -> bytes:
    """Return the output of git; empty if it fails."""
    command = ["git", "-C", str(directory), *arguments]
    try:
        return subprocess.run(
            command, capture_output=True, check=False, timeout=_GIT_SECONDS
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return b""


def _read(path: Path) -> Source:
    if path.is_file():
        try:
            data = path.read_bytes()
        except OSError as unread:
            raise InvalidSkillError(
                f"{path.name} cannot be read: {unread.strerror or unread}"
            ) from None
        contract = Contract.from_dict(parse_document(data, path.name), name=path.stem)
        versions = {}
        if contract.version:
            versions[contract.name] = contract.version
        return Source({contract.name: contract}, versions, is_single=True)
    # A skill, or a directory of skills; deeper nesting is left to several calls.
    source = Source({}, is_single=_is_skill(path))
    skills = [path]
    if not source.is_single:
        children = sorted(path.iterdir())
        skills = [child for child in children if child.is_dir() and _is_skill(child)]
    for directory in skills:
        files = read_contract_files(str(directory), directory.resolve().name)
        # A broken contract cannot be compared, and leaving it out would look like a
        # removal.
        for name, error in files.broken.items():
            if source.is_single:
                raise InvalidSkillError(f"{name}: {error}", details=error.details)
            source.broken[name] = str(error)
        for name, contract in files.contracts.items():
            source.contracts[name] = contract
            version = contract.version or files.descriptor_version
            if version:
                source.versions[name] = version
    return source


def _is_skill(directory: Path) -> bool:
    return any((directory / name).exists() for name in (*_OWN, "SKILL.md"))


def parse_document(data: bytes, name: str) -> Any:
    """Parse *data*, the content of the file *name*, as JSON or YAML.

    Raises:
        InvalidSkillError: it holds none.
    """
    try:
        text = decode_text(data)
        if name.endswith(".json"):
            return json.loads(text)
        return load_yaml(text)
    except (ValueError, RecursionError) as error:  # YamlFault is a ValueError
        raise InvalidSkillError(
            f"{name} cannot be read: {' '.join(str(error).split())[:200]}"
        ) from None
