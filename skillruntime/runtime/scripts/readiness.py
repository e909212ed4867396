"""Find what a script lacks before it is called: an interpreter, packages, commands,
variables, or a grant of the host.
"""

from __future__ import annotations

import errno
import os
import posixpath
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from skillruntime.catalog.checks.environment_check import Surroundings, unmet
from skillruntime.catalog.file_opening import Identity, open_inside
from skillruntime.catalog.visibility import visible_line
from skillruntime.contract.contract import Contract
from skillruntime.contract.schemas.secret_names import is_secret_name
from skillruntime.derive.inline_metadata import parse_inline_metadata
from skillruntime.derive.script_variables import script_variables
from skillruntime.errors import (
    AccessDeniedError,
    InvalidSkillError,
    ResourceNotFoundError,
    SkillRuntimeError,
    ToolNotAvailableError,
)
from skillruntime.runtime.grants import (
    Grants,
    Requirements,
    how_to_grant,
    requirements_of,
)
from skillruntime.runtime.presentation.skill_directory import DIRECTORY_VARIABLES
from skillruntime.runtime.scripts.environments import environment_of, lock_name
from skillruntime.runtime.scripts.interpreters import (
    GIVEN_VARIABLES,
    SANDBOX_PATH,
    SESSION_VARIABLES,
    command_names,
    find_interpreter,
)

__all__ = [
    "Missing",
    "Source",
    "interpreter_from_lock",
    "missing_of",
    "needed_variables",
    "read_head",
    "refuse_if_missing",
    "withheld_variables",
    "without_grant",
]

Source = Callable[[str], bytes]
"""Returns the bytes of a file of the skill by its path (see `read_head`), or raises
`ResourceNotFoundError`.
"""

_MAX_HEAD = 10 * 1024**2


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that a script lacks: its kind, a sentence, and what to do about it.

    ``kind`` is ``script``, ``interpreter``, ``package``, ``requirement``,
    ``environment`` or ``grant``.
    """

    kind: str
    message: str
    action: str

    def __post_init__(self) -> None:
        # Both quote the contract.
        object.__setattr__(self, "message", visible_line(self.message))
        object.__setattr__(self, "action", visible_line(self.action))

    def to_dict(self) -> dict[str, str]:
        """Return its fields."""
        return {"kind": self.kind, "message": self.message, "action": self.action}


def read_head(directory: str, identity: Identity | None, path: str) -> bytes:
    """Return the first 10 MiB of a file: declarations stand at its beginning, and a
    program may be larger.

    Raises:
        ResourceNotFoundError: the file does not exist inside *directory*, or is not
            regular; the reason completes a sentence.
    """
    try:
        with os.fdopen(open_inside(directory, path, identity=identity), "rb") as file:
            return file.read(_MAX_HEAD)
    except FileNotFoundError:
        raise ResourceNotFoundError("is not there") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise ResourceNotFoundError("is reached through a symbolic link") from None
        if error.errno == errno.EINVAL and ".." in path.split("/"):
            raise ResourceNotFoundError("lies outside the skill") from None
        raise ResourceNotFoundError(f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise ResourceNotFoundError("is not a valid path") from None


def missing_of(
    contract: Contract,
    read: Source,
    grants: Grants,
    *,
    is_trusted: bool,
    skill: str,
    passed: Sequence[str],
    dotfiles: Sequence[str],
) -> tuple[Missing, ...]:
    """Return what the script of *contract* lacks on this machine; empty if it is ready,
    or if the contract has no script.

    A trusted skill needs no grants for its contract's requirements, but needs one for a
    secret that only its script asks for. *skill* is the name to type in a command.
    *passed* are the variables that the host gives every script; *dotfiles* are the
    workspace's dotfiles that the call names and the host has not granted.
    """
    script = contract.run.get("script")
    if not isinstance(script, str):
        return ()
    # "./scripts/run.py" and "scripts/run.py" in a contract are one file with one lock.
    script = posixpath.normpath(script)
    try:
        source = read(script)
    except ResourceNotFoundError as error:
        incomplete = Missing(
            "script",
            f"the contract's run.script {script!r} {error}",
            "Tell the user that the skill is incomplete; no other arguments will help",
        )
        return (incomplete,)
    missing = [*_interpreter(script, source)]
    missing += _requirements(contract, is_trusted=is_trusted)
    asked = requirements_of(contract)
    needed = needed_variables(contract, source, script)
    given = [*grants.environment, *passed]
    if is_trusted:
        # It gets the variables of its contract, and those that need no grant.
        given += [*asked.environment, *asked.optional, *without_grant(needed)]
        asked = Requirements()
    if script.endswith(".py"):
        # PEP 723 declares dependencies only for Python; for another language only the
        # interpreter can be checked.
        missing += _packages(script, source, read, skill)
    withheld = _withheld((*asked.environment, *needed), given)
    missing += _not_granted(asked, withheld, dotfiles, grants, skill)
    return tuple(missing)


def needed_variables(contract: Contract, source: bytes, script: str) -> tuple[str, ...]:
    """Return the variables that *script* needs beyond those that every script gets."""
    # The author of a contract knows better what is optional.
    known = {*GIVEN_VARIABLES, *requirements_of(contract).optional}
    found = script_variables(source, script).needed
    return tuple(name for name in found if name not in known)


def without_grant(needed: Iterable[str]) -> tuple[str, ...]:
    """Return the *needed* variables that a trusted skill's script gets without being
    named in a contract: all except those named like secrets.
    """
    return tuple(name for name in needed if not is_secret_name(name))


def withheld_variables(
    source: bytes, script: str, given: Iterable[str]
) -> tuple[str, ...]:
    """Return the optional variables of *script* that are set on this machine and not
    *given* to it.
    """
    known = {*given, *GIVEN_VARIABLES, *SESSION_VARIABLES, *DIRECTORY_VARIABLES}
    read = script_variables(source, script).read
    return tuple(name for name in read if name in os.environ and name not in known)


def interpreter_from_lock(script: str, read: Source) -> str | None:
    """Return the interpreter of the environment that was prepared for *script*; None if
    it has no lock.
    """
    try:
        lock = read(lock_name(posixpath.normpath(script)))
    except ResourceNotFoundError:
        return None
    interpreter = environment_of(lock)
    if interpreter is None:
        return None
    return str(interpreter)


def refuse_if_missing(missing: tuple[Missing, ...]) -> None:
    """Raise an error that names everything in *missing*, with the remedies.

    Raises:
        AccessDeniedError: only grants of the host are missing.
        InvalidSkillError: the script does not exist.
        ToolNotAvailableError: something is not installed, or not set.
    """
    if not missing:
        return
    kinds = {each.kind for each in missing}
    # One error for several causes: first those that neither a grant nor an installation
    # removes.
    error: type[SkillRuntimeError] = ToolNotAvailableError
    if "script" in kinds:
        error = InvalidSkillError
    elif kinds == {"grant"}:
        error = AccessDeniedError
    messages = [each.message for each in missing]
    actions = dict.fromkeys(each.action for each in missing)
    raise error(
        f"The skill is not ready to run: {'; '.join(messages)}",
        details={"missing": messages},
        suggested_action="; ".join(actions),
    )


def _interpreter(script: str, source: bytes) -> Iterator[Missing]:
    names = command_names(script, source[:256].split(b"\n", 1)[0])
    if names is not None and find_interpreter(names) is None:
        message = (
            f"{names[0]!r}, which runs {posixpath.basename(script)!r}, is not installed"
        )
        yield Missing("interpreter", message, f"Ask the user to install {names[0]!r}")


def _requirements(contract: Contract, *, is_trusted: bool) -> Iterator[Missing]:
    """Yield the missing commands, packages and platforms of ``requires``, and its unset
    variables.
    """
    # Search the PATH of the script: the host's own PATH does not apply in a sandbox.
    path = None
    if not is_trusted:
        directory = os.path.dirname(sys.executable)  # noqa: PTH120
        path = f"{directory}{os.pathsep}{SANDBOX_PATH}"
    surroundings = Surroundings(partial(shutil.which, path=path), {})
    # Variables are named below with their own remedy, and "runtime" is a range of this
    # library, checked at loading.
    required = dict(contract.requires)
    for key in ("environment", "env", "runtime"):
        required.pop(key, None)
    for sentence in unmet(required, surroundings):
        yield Missing("requirement", sentence, f"Tell the user: {sentence}")
    for name in requirements_of(contract).environment:
        if name not in os.environ and name not in DIRECTORY_VARIABLES:
            message = f"the environment variable {name} is not set"
            yield Missing(
                "environment", message, f"Ask the user to set {name} and to try again"
            )


def _packages(
    script: str, source: bytes, read: Source, skill: str
) -> Iterator[Missing]:
    declared = parse_inline_metadata(source.decode("utf-8", "replace"))
    yield from _python_version(declared.requires_python)
    missing = missing_packages(declared.dependencies)
    if not missing:
        return
    listed = ", ".join(missing)
    try:
        # `uv lock --script` writes the lock beside the script, under this name.
        lock = read(lock_name(script))
    except ResourceNotFoundError:
        verb = "is" if len(missing) == 1 else "are"
        yield Missing(
            "package",
            f"it needs {listed}, which {verb} not installed, and has no lock",
            f"Ask the user to run: uv lock --script {script} and then skillruntime "
            f"prepare {skill}, or: {install_command(missing)}",
        )
        return
    if environment_of(lock) is None:
        message = f"it needs {listed}, and its environment is not prepared"
        yield Missing(
            "package", message, f"Ask the user to run: skillruntime prepare {skill}"
        )


def _python_version(required: str | None) -> Iterator[Missing]:
    if required is None:
        return
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    present = ".".join(map(str, sys.version_info[:3]))
    try:
        fits = SpecifierSet(required).contains(present, prereleases=True)
    except InvalidSpecifier:
        return  # unknown: PEP 723 lets a tool ignore an unreadable block
    if not fits:
        message = f"it needs Python {required}, and this is {present}"
        yield Missing("interpreter", message, f"Tell the user: {message}")


def _withheld(names: Iterable[str], given: Iterable[str]) -> list[str]:
    """Return the *names* that are set in this process and not *given* to the script."""
    known = {*given, *DIRECTORY_VARIABLES}
    withheld = []
    for name in dict.fromkeys(names):
        # A variable that is not set is reported as missing, or by the script itself; a
        # grant would not help there.
        if name in os.environ and name not in known:
            withheld.append(name)
    return withheld


def _not_granted(
    asked: Requirements,
    withheld: Sequence[str],
    dotfiles: Sequence[str],
    grants: Grants,
    skill: str,
) -> Iterator[Missing]:
    """Yield each missing grant: for the contract's requirements, for variables
    *withheld* from the script, and for *dotfiles* that the call names.
    """
    needs_network = bool(asked.network) and not grants.network
    needs_write = bool(asked.write) and not grants.write
    lacking = Grants(needs_network, tuple(withheld), dotfiles=tuple(dotfiles))
    # One sentence that grants everything, because separate lines of code would replace
    # each other's grants.
    action = how_to_grant(skill, grants | lacking, write=needs_write)
    if needs_network:
        yield Missing(
            "grant",
            f"it needs the network ({', '.join(asked.network)}), which is not granted",
            action,
        )
    for name in withheld:
        yield Missing(
            "grant",
            f"it needs the environment variable {name}, which is not granted",
            action,
        )
    if needs_write:
        yield Missing(
            "grant",
            f"it needs to write to {', '.join(asked.write)}, which is not granted",
            action,
        )
    for path in dotfiles:
        yield Missing(
            "grant",
            f"the call names {path!r}, which begins with a dot and is not granted",
            action,
        )


def missing_packages(dependencies: tuple[str, ...]) -> list[str]:
    """Return the *dependencies* that are missing for this interpreter, or installed in
    an unfit version.

    >>> missing_packages(("packaging>=20", "no-such-package-anywhere>=2"))
    ['no-such-package-anywhere>=2']
    >>> missing_packages(("windows-only; sys_platform == 'none'",))
    []
    """
    return [text for text in dependencies if not _is_installed(text)]


def install_command(requirements: list[str]) -> str:
    """Return the command that installs *requirements*, quoted for a shell.

    >>> install_command(["feedparser>=6,<7", "pypdf"])
    "pip install 'feedparser>=6,<7' pypdf"
    """
    return shlex.join(["pip", "install", *requirements])


def _is_installed(text: str) -> bool:
    # They take 20 ms, and most scripts require no package.
    import importlib.metadata

    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    try:
        requirement = Requirement(text)
    # Report it as missing: an unreadable requirement must not count as met.
    except InvalidRequirement:
        return False
    # PEP 508: where its marker is false, a requirement does not apply.
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    try:
        version = importlib.metadata.version(canonicalize_name(requirement.name))
    except importlib.metadata.PackageNotFoundError:
        return False
    # Accept pre-releases, because someone chose to install them (PEP 440 excludes them
    # only when pip chooses).
    return requirement.specifier.contains(version, prereleases=True)
