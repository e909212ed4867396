"""Build the environments of scripts that declare packages (PEP 723): one for each lock,
by ``skillruntime prepare``.

`uv` builds them outside any call and from wheels only, so that no code of a package
runs at that time. A call only runs the interpreter of the environment, without uv and
without the network.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from skillruntime.catalog.skill import Skill
from skillruntime.derive.inline_metadata import parse_inline_metadata
from skillruntime.errors import (
    InvalidSkillError,
    ResourceNotFoundError,
    ToolNotAvailableError,
)
from skillruntime.lazy_patterns import lazy_pattern
from skillruntime.runtime.files.temporary import remove_tree

__all__ = ["environment_of", "lock_name", "prepare_script", "scripts_with_packages"]

_TIMEOUT = 600.0  # seconds for uv: it may download hundreds of megabytes
# The host's credentials reach uv only through uv's own variables, because a lock may
# name any server.
_PASSED = lazy_pattern(
    r"UV_\w+|(?:HTTPS?|ALL|NO)_PROXY|SSL_CERT_\w+"
    r"|PATH|HOME|XDG_\w+|LANG|LC_ALL|SYSTEMROOT",
    re.IGNORECASE,
)


def lock_name(script: str) -> str:
    """Return the name of the lock that ``uv lock --script`` writes beside *script*."""
    return f"{script}.lock"


def environment_of(lock: bytes) -> Path | None:
    """Return the interpreter of the environment that was prepared for *lock*; None if
    it was not prepared.
    """
    interpreter = _directory(lock) / "bin" / "python"
    if not interpreter.is_file():
        return None
    return interpreter


def scripts_with_packages(skill: Skill) -> list[str]:
    """Return the scripts of *skill* that declare packages: the scripts of its
    contracts, and those beside them.
    """
    paths = []
    for contract in skill.contracts.values():
        if "script" in contract.run:
            paths.append(str(contract.run["script"]))
    paths += [resource.path for resource in skill.resources()]
    scripts = []
    for path in dict.fromkeys(paths):
        if not path.endswith(".py"):
            continue
        with suppress(ResourceNotFoundError):
            source = skill.read_resource_bytes(path).decode("utf-8", "replace")
            if parse_inline_metadata(source).dependencies:
                scripts.append(path)
    return scripts


def prepare_script(skill: Skill, script: str, *, uv: str = "uv") -> Path:
    """Build the environment of the *script* of *skill* from its lock, and return its
    interpreter.

    The environment is rebuilt only for another lock or another Python. Only wheels are
    installed, and no Python is downloaded.

    Raises:
        ToolNotAvailableError: uv is not installed, or could not build the environment.
        InvalidSkillError: the script has no lock, or the lock is out of date or needs
            more than wheels.
        ResourceNotFoundError: there is no such script.
    """
    source = skill.read_resource_bytes(script)
    lock = _lock_of(skill, script)
    prepared = environment_of(lock)
    if prepared is not None:
        return prepared
    program = shutil.which(uv)
    if program is None:
        raise ToolNotAvailableError(
            f"{uv!r}, which builds the environments of scripts, is not installed",
            suggested_action="Install it, for example with: pip install uv",
        )
    _require_wheels(lock)
    target = _directory(lock)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Build under another name, so that an environment at its final place is complete
    # even if this process is killed.
    import tempfile  # only here

    building = Path(tempfile.mkdtemp(dir=target.parent, prefix="building-"))
    try:
        # uv reads copies of exactly the bytes whose digest names the environment.
        path = building / "script.py"
        path.write_bytes(source)
        Path(lock_name(str(path))).write_bytes(lock)
        environment = building / "environment"
        options = ["--quiet", "--no-config", "--no-python-downloads"]
        _run([program, "venv", *options, "--python", sys.executable], environment)
        options += ["--active", "--locked", "--no-build"]
        _run([program, "sync", *options, "--script", str(path)], environment)
        try:
            environment.rename(target)
        except OSError:
            if environment_of(lock) is None:  # else another process was faster
                raise
    finally:
        remove_tree(building)
    return target / "bin" / "python"


def _run(command: list[str], environment: Path) -> None:
    variables = {
        name: value for name, value in os.environ.items() if _PASSED.fullmatch(name)
    }
    done = subprocess.run(
        command,
        env={**variables, "VIRTUAL_ENV": str(environment)},
        cwd=environment.parent,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIMEOUT,
        check=False,
    )
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines()]
        reason = " ".join(line for line in lines if line)[-600:]
        raise ToolNotAvailableError(
            "uv could not build the environment: "
            f"{reason or f'exit code {done.returncode}'}",
            suggested_action="Run: uv lock --script SCRIPT, and check that each "
            "package has a wheel for this machine",
        )


def _lock_of(skill: Skill, script: str) -> bytes:
    try:
        return skill.read_resource_bytes(lock_name(script))
    except ResourceNotFoundError:
        raise InvalidSkillError(
            f"{script} declares packages and has no lock ({lock_name(script)})",
            suggested_action=f"Run: uv lock --script {script}",
        ) from None


def _directory(lock: bytes) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    # The lock was approved by its bytes, and another Python needs other wheels.
    parts = (
        lock,
        sys.version.encode(),
        os.path.realpath(sys.executable).encode(),
        platform.machine().encode(),
    )
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
    return Path(cache, "skillruntime", "environments", digest[:32])


def _parsed(lock: bytes) -> dict[str, object]:
    import tomllib  # most scripts have no lockfile

    try:
        return tomllib.loads(lock.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InvalidSkillError(
            "The lock of the script is not one that uv wrote",
            suggested_action="Run: uv lock --script SCRIPT",
        ) from None


def _require_wheels(lock: bytes) -> None:
    """Refuse a lock with a package that is not a wheel of an index, because building a
    package runs its code.

    Raises:
        InvalidSkillError: the lock has such a package; the message names it.
    """
    packages = _parsed(lock).get("package", ())
    if not isinstance(packages, list):
        return
    for package in packages:
        source = package.get("source", {})
        if _is_index(source) and package.get("wheels"):
            continue
        raise InvalidSkillError(
            f"The lock takes {package.get('name')!r} from somewhere other than an "
            "index of wheels",
            suggested_action="Declare only packages that have wheels, and run: uv lock "
            "--script SCRIPT",
        )


def _is_index(source: dict[str, object]) -> bool:
    """Return whether the *source* of a package is an address or an absolute path."""
    if "url" in source:
        return True
    registry = str(source.get("registry", ""))
    # A path relative to the script's directory would mean another path where uv reads
    # the lock.
    return "://" in registry or os.path.isabs(registry)  # noqa: PTH117
