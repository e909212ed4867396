"""A skill at its three stages: metadata, instructions, resources.

The modules for the second and the third stage are imported inside functions: at the top
they would double the time of every start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from skillruntime.catalog.file_opening import (
    FileTooLargeError,
    Identity,
    read_beside,
    read_regular,
)
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError, SkillNotFoundError

if TYPE_CHECKING:
    from pathlib import Path

    from skillruntime.catalog.contracts.contract_files import ContractFiles
    from skillruntime.catalog.contracts.derived_contracts import DerivedContracts
    from skillruntime.catalog.frontmatter.frontmatter import Frontmatter
    from skillruntime.catalog.frontmatter.skill_frontmatter import SkillFrontmatter
    from skillruntime.catalog.resources import Resource
    from skillruntime.contract.contract import Contract

__all__ = ["MAX_SKILL_BYTES", "Skill", "SkillMetadata", "read_skill"]

MAX_SKILL_BYTES = 4 * 1024 * 1024
"""The maximum size in bytes of a SKILL.md: about eight hundred times the recommended
size.
"""


@dataclass(frozen=True, slots=True)
class SkillMetadata:
    """The metadata of one skill, read at discovery; `read_frontmatter` reads the other
    fields.

    ``path`` is the path of the SKILL.md, ``version`` the one in its frontmatter,
    ``scope`` the one of its root. If it is ``installed``, as a part of a package,
    ``scope`` and ``version`` are those of the distribution.
    """

    name: str
    description: str
    path: str
    version: str | None = None
    trusted: bool = False
    model_invocable: bool = True
    user_invocable: bool = True
    scope: str = ""
    installed: bool = False

    @property
    def directory(self) -> Path:
        """The directory of the skill."""
        from pathlib import Path  # importing pathlib takes a third of a start

        return Path(self.path).parent

    def read_frontmatter(self) -> SkillFrontmatter:
        """Return all fields of the frontmatter, read from the file now; empty if it is
        gone or no longer readable.
        """
        from skillruntime.catalog.frontmatter.skill_frontmatter import SkillFrontmatter

        return SkillFrontmatter(_frontmatter(self.path).fields)


class Skill:
    """An activated skill: its SKILL.md is in memory; its contracts and files are read
    on demand.
    """

    __slots__ = (
        "_body",
        "_check",
        "_contracts",
        "_data",
        "_derive",
        "_derived",
        "_identity",
        "_parsed",
        "_pinned",
        "_written",
        "metadata",
    )

    def __init__(
        self,
        metadata: SkillMetadata,
        data: bytes,
        *,
        derive: bool = True,
        identity: Identity | None = None,
    ) -> None:
        self.metadata: SkillMetadata = metadata
        self._data = data
        # Taken from the file when first read, because a call needs only the contract.
        self._written = ""
        self._body: str | None = None
        self._check: Callable[[Skill], Mapping[str, str]] | None = None
        self._pinned: Mapping[str, str] | None = None
        # From the bytes that were read, not from the file, which may have changed.
        self._parsed: Frontmatter | None = None
        self._contracts: ContractFiles | None = None
        self._derived: DerivedContracts | None = None
        self._derive = derive
        # The files of an activated skill are read from this directory only, even if its
        # path is replaced later.
        self._identity = identity

    @classmethod
    def from_text(
        cls,
        name: str,
        description: str,
        instructions: str,
        *,
        files: Mapping[str, str | bytes] | None = None,
    ) -> Skill:
        """Return a skill that is written in code, with further *files* by their paths
        in it; give it to `discover`.

        Its files are in a private directory until this process ends, so make it once
        and not for each request.

        >>> skill = Skill.from_text("brand-voice", "How we write.", "Write briefly.")
        >>> skill.body
        'Write briefly.'

        Raises:
            ValueError: *name* is not usable, or the path of a file leads out of the
                skill.
        """
        from skillruntime.catalog.discovery.sources import write_skill

        path = write_skill(name, description, instructions, files or {})
        return read_skill(SkillMetadata(name, description, path))

    def __repr__(self) -> str:
        return f"Skill({self.name!r}, {self.metadata.path!r})"

    @property
    def data(self) -> bytes:
        """The bytes of the SKILL.md, as they were when the skill was activated."""
        return self._data

    @property
    def body(self) -> str:
        """The instructions, without hidden characters."""
        if self._body is None:
            from skillruntime.catalog.frontmatter.frontmatter import cut
            from skillruntime.catalog.visibility import visible_text

            self._written = cut(self._data, self.metadata.path).body
            self._body = visible_text(self._written)
        return self._body

    @property
    def name(self) -> str:
        """The name in the catalog."""
        return self.metadata.name

    @property
    def description(self) -> str:
        """What the skill does and when to use it."""
        return self.metadata.description

    @property
    def directory(self) -> Path:
        """The directory of the skill."""
        return self.metadata.directory

    @property
    def identity(self) -> Identity | None:
        """The identity of its directory at the activation; its files are read only from
        this directory.
        """
        return self._identity

    @property
    def trusted(self) -> bool:
        """Whether its scripts may run without approval."""
        return self.metadata.trusted

    @property
    def frontmatter(self) -> SkillFrontmatter:
        """All fields of the frontmatter, as they were when the skill was activated."""
        from skillruntime.catalog.frontmatter.skill_frontmatter import SkillFrontmatter

        return SkillFrontmatter(self._frontmatter.fields)

    @property
    def execution(self) -> dict[str, str]:
        """How its author wants it to run: ``{"context": "fork", "agent": "Explore"}``;
        the host decides what to do.
        """
        return self.frontmatter.execution

    @property
    def _frontmatter(self) -> Frontmatter:
        if self._parsed is None:
            self._parsed = _read_frontmatter(self._data, self.metadata.path, True)
        return self._parsed

    @property
    def contracts(self) -> Mapping[str, Contract]:
        """The contracts by callable name: ``pdf`` for contract.json, ``pdf/extract``
        for contracts/extract.json.

        They are read at the first access. An invalid file is left out: see
        ``diagnostics`` and `contract`. If there is no contract, each script whose
        interface can be derived is a tool, named after its file.
        """
        files = self._read_contracts()
        if self._derived is not None:
            return MappingProxyType(self._derived.all())
        return MappingProxyType(files.contracts)

    def callable_names(self) -> tuple[str, ...]:
        """Return the names of the callables, without deriving a contract. The names of
        derived tools are those of scripts that look like tools; about one in a hundred
        turns out to have no contract.
        """
        files = self._read_contracts()
        if self._derived is not None:
            return self._derived.names
        return tuple(files.contracts)

    def contract(self, name: str) -> Contract:
        """Return the contract of the callable *name*, ``skill`` or ``skill/tool``.

        Raises:
            InvalidSkillError: its file is invalid.
            SkillNotFoundError: there is no contract of this name.
        """
        files = self._read_contracts()
        if name in files.contracts:
            return files.contracts[name]
        if self._derived is not None:
            derived = self._derived.find(name)
            if derived is not None:
                return derived
        # The error of the invalid file, not "no such callable": the author needs the
        # reason.
        if name in files.broken:
            raise files.broken[name]
        callables = sorted(self.contracts)
        if not callables:
            # "has no contract" would hide the error from a caller of a derived tool.
            for error in files.broken.values():
                raise error
            raise SkillNotFoundError(
                f"The skill {self.name!r} has no contract: it has instructions to "
                "follow, but nothing to call",
                suggested_action=f"Load the skill {self.name!r} and follow its "
                "instructions",
            )
        raise SkillNotFoundError(
            f"The skill {self.name!r} has no callable {name!r}",
            suggested_action=f"Call one of: {', '.join(callables[:5])}",
        )

    @property
    def version(self) -> str | None:
        """The version of the skill: the contract's, else the descriptor's,
        ``metadata.version``, a top-level ``version``.

        For a part of an installed package it is the version of the distribution.
        """
        versions = self._versions()  # in order of precedence
        return versions[0][1] if versions else None

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics of its frontmatter, its contracts and its versions."""
        from skillruntime.catalog.visibility import hidden_characters, listed_kinds

        path = self.metadata.path
        findings = [*self._frontmatter.diagnostics]
        # `visible_text` returns the same object if nothing is hidden in it.
        if self.body is not self._written:
            hidden = hidden_characters(self._written)
            if hidden:
                message = f"the instructions have {listed_kinds(hidden)}; removed"
                findings.append(
                    Diagnostic("hidden-characters", Severity.WARNING, path, message)
                )
        findings += self._read_contracts().diagnostics
        versions = self._versions()
        if len({version for _, version in versions}) > 1:
            stated = ", ".join(f"{version} ({where})" for where, version in versions)
            message = f"the versions disagree: {stated}; the first one is used"
            findings.append(
                Diagnostic("version-disagreement", Severity.WARNING, path, message)
            )
        return tuple(findings)

    def digest(self) -> str:
        """Return 16 hexadecimal digits that identify this edition of the skill.

        They change with the bytes of SKILL.md, of the contracts and of the scripts;
        nothing is parsed for them.
        """
        import hashlib

        from skillruntime.catalog.resources import digest_of_code

        # Bytes, not their meaning: a digest must not depend on how this version reads
        # YAML.
        own = hashlib.sha256(self._data)
        # All code of the skill, because a script can import or start any file next to
        # it.
        own.update(digest_of_code(os.path.dirname(self.metadata.path)))
        return own.hexdigest()[:16]

    def with_check(self, check: Callable[[Skill], Mapping[str, str]]) -> Skill:
        """Return this skill after *check* accepted it; `verify` asks again.

        *check* returns the SHA-256 of each file by its path; a file that is read later
        must have it.
        """
        self._check = check
        self.verify()
        return self

    def verify(self) -> Mapping[str, str] | None:
        """Check the skill again, if it was locked or is part of a package: before a
        script starts, for example.

        Return the SHA-256 of each file by its path, and ``None`` for any other skill. A
        file must have this digest when it is used, because it can be changed after it
        was hashed.

        Raises:
            InvalidSkillError: it is not what was locked or installed.
        """
        if self._check is not None:
            self._pinned = self._check(self)
        return self._pinned

    def resources(self) -> list[Resource]:
        """Return the files of the skill by path, without SKILL.md and the contracts."""
        from skillruntime.catalog.resources import list_resources

        return list_resources(os.path.dirname(self.metadata.path))

    def read_resource(self, path: str) -> str:
        """Return the text of the file that *path* means (see `find_resource`), without
        hidden characters.

        Raises:
            ResourceNotFoundError: there is no such file in the skill, or it is not
                text.
        """
        from skillruntime.catalog.resources import decode_text
        from skillruntime.catalog.visibility import visible_text

        path = self.find_resource(path) or path
        return visible_text(decode_text(self.read_resource_bytes(path), path))

    def find_resource(self, path: str) -> str | None:
        """Return the listed path of the file that *path* means; None if it does not
        mean exactly one.

        *path* may be written in another case or with a backslash, after ``./``, the
        skill's name, a variable, ``skill://NAME/`` or the skill's directory, or before
        a ``#part``.
        """
        from skillruntime.catalog.resources import find_file

        return find_file(os.path.dirname(self.metadata.path), path, [self.name])

    def find_resource_directory(self, path: str) -> str | None:
        """Return the directory of the skill's files that *path* means, ``""`` for its
        own; None if it does not mean exactly one.
        """
        from skillruntime.catalog.resources import find_directory

        return find_directory(os.path.dirname(self.metadata.path), path, [self.name])

    def read_resource_bytes(self, path: str, *, limit: int | None = None) -> bytes:
        """Return the bytes of the file *path*, relative to the skill's directory, at
        most *limit*; by default 10 MB.

        Raises:
            ResourceNotFoundError: there is no such file in the skill.
            InvalidSkillError: it is not the file that was locked, or that the skill's
                package installed.
        """
        from skillruntime.catalog.resources import MAX_RESOURCE_BYTES

        return self._read_bytes(path, limit or MAX_RESOURCE_BYTES)

    def _read_bytes(self, path: str, limit: int) -> bytes:
        from skillruntime.catalog.resources import read_bytes

        data = read_bytes(
            os.path.dirname(self.metadata.path), path, limit, identity=self._identity
        )
        if self._pinned is not None:
            import hashlib

            # Lockfiles write paths with "/" and without "." parts; a caller may write
            # the same path in another way.
            parts = path.replace(os.sep, "/").split("/")
            pinned_path = "/".join(part for part in parts if part not in ("", "."))
            if self._pinned.get(pinned_path) != hashlib.sha256(data).hexdigest():
                raise InvalidSkillError(
                    f"The file {path[:120]!r} of the skill {self.name!r} is refused: "
                    "it differs from the file that was locked or installed",
                    suggested_action="Continue without this skill",
                )
        return data

    def _read_contracts(self) -> ContractFiles:
        if self._contracts is None:
            from skillruntime.catalog.unforeseen import refusing_unforeseen

            with refusing_unforeseen(self.metadata.path):
                self._contracts = self._found_contracts()
        return self._contracts

    def _found_contracts(self) -> ContractFiles:
        from skillruntime.catalog.contracts.contract_files import read_contract_files

        files = read_contract_files(
            os.path.dirname(self.metadata.path),
            self.name,
            trusted=self.trusted,
            read=self._read_bytes,
        )
        # A broken contract is not replaced by a derived one, which would accept
        # arguments that its author refuses.
        is_written = files.contracts or files.broken
        if self._derive and not is_written:
            from skillruntime.catalog.contracts.derived_contracts import (
                DerivedContracts,
            )
            from skillruntime.catalog.resources import list_scripts

            self._derived = DerivedContracts(
                list_scripts(os.path.dirname(self.metadata.path)),
                self.read_resource_bytes,
                skill=self.name,
                one_line=not self.trusted,
            )
        return files

    def _versions(self) -> list[tuple[str, str]]:
        # The version that a package manager resolved; the one in the skill's files is
        # often an old one.
        if self.metadata.installed and self.metadata.version:
            return [("distribution", self.metadata.version)]
        files = self._read_contracts()
        own = files.contracts.get(self.name)
        stated = {
            "contract": own.version if own else None,
            "descriptor": files.descriptor_version,
            **self.frontmatter.versions,
        }
        return [(where, version) for where, version in stated.items() if version]


def read_skill(metadata: SkillMetadata, *, derive: bool = True) -> Skill:
    """Return the skill whose SKILL.md is at ``metadata.path``; with *derive*, its
    scripts get contracts if it has none.

    Raises:
        SkillNotFoundError: the file no longer exists.
        InvalidSkillError: it cannot be read, or is larger than `MAX_SKILL_BYTES`.
    """
    data, identity = _read_file(metadata)
    return Skill(metadata, data, derive=derive, identity=identity)


def _read_file(metadata: SkillMetadata) -> tuple[bytes, Identity]:
    """Return the bytes of the SKILL.md, and the identity of its directory."""
    directory, name = os.path.split(metadata.path)
    try:
        return read_beside(directory, name, MAX_SKILL_BYTES)
    except FileTooLargeError:
        raise InvalidSkillError(
            f"The SKILL.md of {metadata.name!r} is larger than "
            f"{MAX_SKILL_BYTES // 1024**2} MiB",
            suggested_action="Continue without this skill",
        ) from None
    except FileNotFoundError:
        raise SkillNotFoundError(
            f"The skill {metadata.name!r} no longer exists",
            suggested_action="Continue without this skill",
        ) from None
    except OSError as error:
        raise InvalidSkillError(
            f"The SKILL.md of {metadata.name!r} cannot be read: {error.strerror}"
        ) from None


def _frontmatter(path: str) -> Frontmatter:
    from skillruntime.catalog.frontmatter.frontmatter import Frontmatter

    try:
        state = os.stat(path)
        return _cached_frontmatter(path, state.st_size, state.st_mtime_ns)
    except (OSError, ValueError):
        # The file is gone, replaced by a FIFO or a link, or its path is not valid.
        return Frontmatter(None, "")


@lru_cache(maxsize=64)
def _cached_frontmatter(path: str, size: int, modified: int) -> Frontmatter:
    """Return the frontmatter of the file; *size* and *modified* are part of the cache
    key.
    """
    from skillruntime.catalog.frontmatter.frontmatter import MAX_FRONTMATTER

    limit = 2 * MAX_FRONTMATTER
    return _read_frontmatter(read_regular(path, limit, cut=True), path, size <= limit)


@lru_cache(maxsize=8)
def _read_frontmatter(data: bytes, path: str, is_whole: bool) -> Frontmatter:
    """Return the frontmatter in *data*.

    It is cached, because code that lists skills reads it twice: with the metadata, and
    with the skill.
    """
    from skillruntime.catalog.frontmatter.frontmatter import read_frontmatter

    return read_frontmatter(data, path, is_whole=is_whole)
