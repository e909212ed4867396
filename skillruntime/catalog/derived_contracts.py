"""The scripts of a skill as tools, without a written contract: read on activation, never run."""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Callable, Iterable

from skillruntime.catalog.derivation_cache import derive_cached
from skillruntime.catalog.resources import SCRIPT_SUFFIXES, Resource
from skillruntime.derive import Derivation
from skillruntime.derive.draft import tool_name
from skillruntime.errors import ResourceNotFoundError

__all__ = ["MAX_SCRIPTS", "derive_scripts"]

MAX_SCRIPTS = 64
"""Scripts of one skill that are read."""

MAX_SCRIPT_BYTES = 400_000
"""Bytes of a script that is read; a longer one is data, or generated."""

_log = logging.getLogger("skillruntime.catalog")
_ASIDE = re.compile(
    r"(^|/)(__init__|__main__|setup|conftest|test_[^/]*|[^/]*_test)\.\w+$|(^|/)(tests?|lib|node_modules)/"
)


Read = Callable[[str], bytes]


def derive_scripts(resources: Iterable[Resource], read: Read) -> dict[str, Derivation]:
    """Return what can be read of the scripts in ``scripts/`` and next to SKILL.md, by the name of the tool.

    *resources* are the skill's files, *read* gives the bytes of one by its path or raises `ResourceNotFoundError`.
    Tests, packages' own files and modules that only others import are left out; so is what cannot be read at all.
    """
    found: dict[str, Derivation] = {}
    scripts = [each for each in resources if _is_script(each.path) and each.bytes <= MAX_SCRIPT_BYTES]
    for resource in scripts[:MAX_SCRIPTS]:
        try:
            source = read(resource.path)
        except ResourceNotFoundError:
            continue
        try:
            derivation = derive_cached(source, path=resource.path, neighbours=_beside(read, resource.path, source))
        except Exception:  # a script that breaks the reader costs its own tool, never the skill
            _log.exception("%s could not be read", resource.path)
            continue
        if derivation is None:
            continue
        name, number = tool_name(resource.path), 2
        while name in found:
            name, number = f"{tool_name(resource.path)}-{number}", number + 1
        found[name] = derivation
    return found


def _is_script(path: str) -> bool:
    directory, _, file = path.rpartition("/")
    in_place = directory in ("", "scripts") or directory.startswith("scripts/")
    return in_place and file.endswith(SCRIPT_SUFFIXES) and _ASIDE.search(path) is None


def _beside(read: Read, path: str, source: bytes) -> Callable[[str], str | None]:
    """Return what gives the source of a module that the script at *path* imports, inside the skill and nowhere else.

    Python looks next to the script; one that changes ``sys.path`` may mean the directories above it too.
    """
    directories = [posixpath.dirname(path)]
    while b"sys.path" in source and directories[-1]:
        directories.append(posixpath.dirname(directories[-1]))

    def module(name: str) -> str | None:
        for directory in directories:
            try:
                data = read(posixpath.join(directory, f"{name.replace('.', '/')}.py"))
            except ResourceNotFoundError:
                continue
            return data.decode("utf-8-sig", "replace") if len(data) <= MAX_SCRIPT_BYTES else None
        return None

    return module
